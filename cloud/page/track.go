package page

import (
	"context"
	"errors"
	"net/url"
	"regexp"
	"slices"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/locale"
	"github.com/postern-io/postern/cloud/tracking"
	"github.com/postern-io/postern/protocol/otep"
)

// quietAfter is how long without news makes a page say so.
const quietAfter = 48 * time.Hour

type trackPage struct {
	frame
	Parcel    tracking.PublicOutput
	Tone      string // of the status: going, ready, done, trouble
	Headline  string // the status in words; "" before there is one
	Next      string
	Due       *moment
	Confirmed *moment
	Events    []trackEvent
	Warning   string // why this may be out of date
	LastSeen  *moment
	Steps     []step
	Collect   *collectPanel // nil: the visitor has no link, or the parcel goes to no locker
	Chat      *chatPanel    // nil: there is none
	Asks      bool          // for proof: digits would show more
	Offer     string        // what proof is good for; "" where nothing is
	Problem   string        // with the proof that was given
}

type trackEvent struct {
	tracking.Event
	When   *moment
	Where  string
	Newest bool
}

// step is one phase of a parcel's way.
type step struct {
	Done, Now bool
}

func (p trackingPages) track(ctx *fasthttp.RequestCtx) {
	if key := ctx.QueryArgs().Peek("k"); len(key) > 0 {
		p.enter(ctx, string(key))
		return
	}
	c, cancel := visit(ctx)
	defer cancel()
	if f, out, ok := p.parcel(c, ctx, ""); ok {
		p.showParcel(c, ctx, f, out, nil, nil)
	}
}

// keyCookie holds the proof that its visitor is a parcel's recipient. It goes to
// the page of that parcel only.
const keyCookie = "postern_parcel"

// keyLife is how long a browser keeps it.
const keyLife = 30 * 24 * time.Hour

// usableKey is the form of a link's secret and of what is as good.
var usableKey = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// enter takes the secret of a link out of the address, where it would stay in
// histories and be shared with the page. Whether it is good shows then.
func (p trackingPages) enter(ctx *fasthttp.RequestCtx, key string) {
	path := string(ctx.URI().PathOriginal())
	if usableKey.MatchString(key) {
		p.setCookie(ctx, keyCookie, key, path, keyLife, fasthttp.CookieSameSiteLaxMode)
	}
	seeOther(ctx, withLanguage(ctx, path))
}

// visit is the context of a visitor without a login.
func visit(ctx *fasthttp.RequestCtx) (context.Context, context.CancelFunc) {
	return visitFor(ctx, readTime)
}

func visitFor(ctx *fasthttp.RequestCtx, most time.Duration) (context.Context, context.CancelFunc) {
	c := cloud.WithCall(context.Background(), &cloud.Call{Operation: "tracking.public", Surface: "web", IP: ctx.RemoteIP().String()})
	return context.WithTimeout(c, most)
}

// parcel finds what a tracking page is about; otherwise it has answered. digits
// are what a visitor gave as proof.
func (p trackingPages) parcel(c context.Context, ctx *fasthttp.RequestCtx, digits string) (f frame, out tracking.PublicOutput, ok bool) {
	raw, _ := ctx.UserValue("number").(string)
	number, err := url.PathUnescape(raw)
	if err != nil {
		p.missing(ctx)
		return f, out, false
	}
	f = p.frame(ctx, "track.title")
	out, err = p.cfg.Tracking.Public(c, cloud.Caller{Language: f.Lang}, tracking.PublicInput{Number: number, Verify: digits, Key: string(ctx.Request.Header.Cookie(keyCookie))})
	var shown *cloud.Error
	switch {
	case errors.As(err, &shown) && shown.Kind == cloud.NotFound:
		p.show(ctx, fasthttp.StatusNotFound, "home.html", homePage{frame: f, Number: number, Missing: f.T("track.check")})
		return f, out, false
	case err != nil:
		p.trouble(ctx, err)
		return f, out, false
	}
	return f, out, true
}

// showParcel shows a parcel, and its chat with what a form has brought.
func (p trackingPages) showParcel(c context.Context, ctx *fasthttp.RequestCtx, f frame, out tracking.PublicOutput, in *chatForm, tried error) {
	view := trackView(f, out)
	if p.cfg.Chats && out.Chat.Token != nil {
		panel, err := p.recipientPanel(c, ctx, view.frame, out)
		if err != nil { // the parcel is what people come for
			p.why(f, err)
		} else {
			view.Kit, view.Chat = []string{"chat"}, panel
			ctx.Response.Header.Set("Content-Security-Policy", p.chatPolicy)
		}
	}
	collect, err := p.collectPanel(c, ctx, view.frame, out)
	if err != nil {
		p.why(f, err)
	}
	view.Collect = collect
	view.offerProof(p.cfg.Chats)
	if collect != nil && len(collect.Parcels) > 0 && !slices.ContainsFunc(collect.Parcels, func(x collectParcel) bool { return x.Handover == nil }) {
		view.Next = "" // it says how the visitor's own code is used, which does not work
	}
	var closed *notOpened
	var handover *handed
	if errors.As(tried, &handover) {
		if tried = handover.error; tried != nil {
			handover.Problem = p.whyNotHanded(ctx, f, tried)
		}
	}
	switch {
	case tried == nil && handover == nil:
	case handover != nil && collect != nil:
		collect.Handing = handover.handing
	case handover != nil:
		view.Warning = handover.Problem
	case errors.As(tried, &closed) && collect != nil:
		collect.Problem, collect.Token = p.whyClosed(ctx, f, tried), closed.token
	case errors.As(tried, &closed):
		view.Warning = p.whyClosed(ctx, f, tried)
	case view.Chat == nil:
		view.Warning = p.why(f, tried)
	default:
		view.Chat.tried(p.why(f, tried), in)
	}
	if tried == nil && handover == nil {
		p.followParcel(ctx, &view.frame, out)
	}
	p.show(ctx, statusFor(tried), "track.html", view)
}

// trackView is what the page shows of an answer.
func trackView(f frame, out tracking.PublicOutput) trackPage {
	f.Zone = out.Zone
	v := trackPage{frame: f, Parcel: out, Tone: "going", Events: []trackEvent{}}
	confirmed := out.LastAt
	if s := out.OTEPStatus; s != nil {
		v.Next, v.Tone = locale.Next(f.Lang, *s), tone(*s)
		v.Steps = steps(*s)
		v.Headline = locale.Headline(f.Lang, *s)
	}
	v.plan(out)
	if l := out.Locker; l != nil {
		v.Due = f.Time(l.Due)
		if (l.Status == "waiting" || l.Status == "overdue") && out.Device.LastSeenAt.After(confirmed) {
			confirmed = out.Device.LastSeenAt
		}
	}
	v.Confirmed = f.Time(confirmed)
	switch d := out.Device; {
	case out.Terminal:
	case d != nil && !d.Online:
		v.Warning, v.LastSeen = f.T("track.offline"), f.Time(d.LastSeenAt)
	case !confirmed.IsZero() && f.Made.Sub(confirmed) > quietAfter:
		v.Warning = f.T("track.quiet")
	}
	for i, e := range out.Events {
		x := trackEvent{Event: e, When: f.Time(e.At), Newest: i == 0}
		if words := locale.Headline(f.Lang, e.Key); words != locale.Status(f.Lang, e.Key) {
			x.Description = words
		}
		if e.Location != nil {
			x.Where = place(*e.Location)
		}
		v.Events = append(v.Events, x)
	}
	return v
}

// planWords are the keys of what is said about a planned stop.
type planWords struct{ headline, open, day, window string }

var (
	deliveryWords = planWords{"plan.delivery", "plan.delivery.open", "plan.delivery.day", "plan.delivery.window"}
	pickupWords   = planWords{"plan.pickup", "plan.pickup.open", "plan.pickup.day", "plan.pickup.window"}
)

// plan says what is planned for an order, where its latest event is older than that or says less.
func (v *trackPage) plan(out tracking.PublicOutput) {
	plan, words := out.Plan, deliveryWords
	if out.Terminal || plan == (tracking.Plan{}) {
		return
	}
	if out.Type != nil && *out.Type == string(cloud.PickupOrder) {
		words = pickupWords
	}
	if s := out.OTEPStatus; s == nil || *s == otep.InformationSubmitted || *s == otep.AwaitingPickup || *s == otep.BookingConfirmed {
		switch {
		case plan.Driver:
			v.Headline = v.T("plan.driver")
		case plan.Routed:
			v.Headline = v.T(words.headline)
		default:
			v.Headline = v.T("plan.partner")
		}
	}
	if plan.Partner {
		v.Next = v.T("plan.partner.next")
		return
	}
	v.Next = v.T(words.open)
	day, err := time.ParseInLocation(time.DateOnly, plan.Day, v.zone())
	if err != nil || plan.Day < v.Made.In(v.zone()).Format(time.DateOnly) {
		return
	}
	v.Next = v.T(words.day, locale.DayMonth(v.Lang, day))
	if w := out.TimeWindow; w != nil {
		v.Next = v.T(words.window, locale.DayMonth(v.Lang, day), v.hour(day, w.Start), v.hour(day, w.End))
	}
}

// hour is a time of day as HH:MM in words.
func (f frame) hour(day time.Time, clock string) string {
	t, err := time.ParseInLocation(time.DateOnly+" 15:04", day.Format(time.DateOnly)+" "+clock, day.Location())
	if err != nil {
		return clock
	}
	return locale.TimeOfDay(f.Lang, t)
}

// offerProof says to a visitor what the link of the message and the last digits of the telephone
// number are good for. The code of a parcel that waits in a locker needs the link: digits never
// show it.
func (v *trackPage) offerProof(chats bool) {
	out := v.Parcel
	waits := out.Locker != nil && (out.Locker.Status == "waiting" || out.Locker.Status == "overdue")
	writes := chats && out.Chat.Enabled
	if out.Access.Level == tracking.LevelRecipient {
		if waits && v.Collect == nil {
			v.Offer = v.T("track.codelink")
		}
		return
	}
	switch {
	case waits && writes:
		v.Offer, v.Asks = v.T("track.codelink")+" "+v.T("track.digitsdoorwrite"), true
	case waits:
		v.Offer, v.Asks = v.T("track.codelink")+" "+v.T("track.digitsdoor"), true
	case writes:
		v.Offer, v.Asks = v.T("track.digitswrite"), true
	case out.Access.Level == tracking.LevelReduced:
		v.Offer, v.Asks = v.T("track.digitsmore"), true
	case out.Device != nil && !out.Terminal && out.Locker == nil:
		v.Offer = v.T("track.codelater")
	}
}

func place(l tracking.Place) string {
	out := ""
	for _, part := range []*string{l.Name, l.City, l.Province, l.Country} {
		if part != nil && *part != "" {
			if out != "" {
				out += ", "
			}
			out += *part
		}
	}
	return out
}

// tone sorts a status by what it asks of the recipient.
func tone(c otep.Code) string {
	s, _ := otep.Lookup(c)
	switch {
	case c == otep.AvailableForPickup:
		return "ready"
	case c == otep.Delivered:
		return "done"
	case s.Phase == otep.PhaseException, s.Phase == otep.PhaseReturn, s.Phase == otep.PhaseCancelled:
		return "trouble"
	}
	return "going"
}

var order = []string{otep.PhasePreShipment, otep.PhasePickup, otep.PhaseInbound, otep.PhaseTransit, otep.PhaseOutForDelivery, otep.PhaseDelivered}

// steps are the ordered phases up to a status; none beside the order.
func steps(c otep.Code) []step {
	s, _ := otep.Lookup(c)
	for i, phase := range order {
		if phase == s.Phase {
			out := make([]step, len(order))
			for j := range out {
				out[j] = step{Done: j < i, Now: j == i}
			}
			return out
		}
	}
	return nil
}
