package page

import (
	"context"
	"errors"
	"fmt"
	"html/template"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/locale"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/cloud/tracking"
)

// collectPanel is what a recipient with a parcel's link needs at the locker. Digits of a
// telephone number are no proof for it.
type collectPanel struct {
	frame
	Parcels []collectParcel
	Returns []returnParcel
	Action  string // address of its forms, with the language that was asked for
	Problem string // with the opening that was asked for, or with the list
	Token   string // as it was typed
	Handing handing
}

// handing is a handover of a parcel's pickup to another person, in the form that a recipient
// fills and as it was answered.
type handing struct {
	Delivery, Name, Phone string
	Problem               string // with what was filled in
	Code                  string // of the person named, in two parts, shown once
}

type collectParcel struct {
	locker.ParcelBody
	Code    string // in two parts, "" while it does not work
	Doors   string
	QR      template.HTML // of the code; "" while it does not work
	Scan    string        // id of its caption
	Opening string        // status of the collection that runs; "": none
}

// returnParcel is what a recipient has collected and can bring back.
type returnParcel struct {
	locker.CollectedBody
	Code  string        // in two parts, "" while there is none that works
	QR    template.HTML // of the code
	Scan  string        // id of its caption
	Until *moment       // until when it can be brought, or a return be asked for
	Said  string        // how far the return has come
}

// returnWords say how far a return has come.
var returnWords = map[cloud.DeliveryStatus]string{cloud.DeliveryDelivered: "return.waits", cloud.DeliveryExpired: "return.waits", cloud.DeliveryCorrecting: "return.waits", cloud.DeliveryPickedUp: "return.collected"}

// returnParcels are what the visitor can bring back.
func (p trackingPages) returnParcels(f frame, list []locker.CollectedBody) (out []returnParcel, err error) {
	for i, x := range list {
		row := returnParcel{CollectedBody: x, Scan: fmt.Sprintf("scan-return-%d", i), Until: f.stamped(x.ReturnBefore)}
		if b := x.Return; b != nil {
			row.Until, row.Said = f.stamped(b.BringBefore), f.T("return.over")
			if words := returnWords[b.Status]; words != "" {
				row.Said = f.T(words)
			}
			if b.DropoffCode != nil {
				row.Said, row.Code = "", halves(*b.DropoffCode)
				if row.QR, err = drawQR(*b.DropoffQR, row.Scan); err != nil {
					return nil, err
				}
			}
		}
		out = append(out, row)
	}
	return out, nil
}

// returnParcel asks for the return of what the visitor has collected.
func (p trackingPages) returnParcel(c context.Context, ctx *fasthttp.RequestCtx) {
	f, out, ok := p.parcel(c, ctx, "")
	if !ok {
		return
	}
	_, err := runByLink[locker.ParcelReturnOutput](c, ctx, p.kit, f.Lang, "customer.parcels.return", map[string]any{"delivery_number": string(ctx.PostArgs().Peek("delivery"))})
	if err == nil {
		seeOther(ctx, withLanguage(ctx, f.Path))
		return
	}
	p.showParcel(c, ctx, f, out, nil, &notOpened{error: err})
}

// handOver gives the pickup of a parcel to the person that its recipient names, whose code is
// shown once, or takes it back: then the recipient's new code stands on the page.
func (p trackingPages) handOver(c context.Context, ctx *fasthttp.RequestCtx, back bool) {
	f, out, ok := p.parcel(c, ctx, "")
	if !ok {
		return
	}
	field := func(name string) string { return strings.TrimSpace(string(ctx.PostArgs().Peek(name))) }
	in, operation := map[string]any{"delivery_number": field("delivery")}, "customer.parcels.take_back"
	if !back {
		in["name"], in["phone"], operation = field("name"), field("phone"), "customer.parcels.hand_over"
	}
	if !back && p.isHandedOver(c, ctx, f, out, field("delivery")) {
		seeOther(ctx, withLanguage(ctx, f.Path)) // the form was sent again: the code that was passed on goes on working
		return
	}
	done, err := runByLink[locker.HandoverOutput](c, ctx, p.kit, f.Lang, operation, in)
	if err == nil && back {
		seeOther(ctx, withLanguage(ctx, f.Path))
		return
	}
	tried := &handed{error: err, handing: handing{Delivery: field("delivery"), Name: field("name"), Phone: field("phone")}}
	if err == nil && done.PickupCode != nil {
		tried.Code = halves(*done.PickupCode)
	}
	p.showParcel(c, ctx, f, out, nil, tried)
}

// isHandedOver reports whether another person collects a delivery already, as far as the visitor
// may know.
func (p trackingPages) isHandedOver(c context.Context, ctx *fasthttp.RequestCtx, f frame, out tracking.PublicOutput, delivery string) bool {
	panel, err := p.collectPanel(c, ctx, f, out)
	return err == nil && panel != nil && slices.ContainsFunc(panel.Parcels, func(x collectParcel) bool { return x.DeliveryNumber == delivery && x.Handover != nil })
}

// halves is a code as it is read aloud.
func halves(code string) string { return code[:len(code)/2] + " " + code[len(code)/2:] }

// handed is how a handover that a recipient asked for was answered; its error is nil for one
// that was made.
type handed struct {
	error
	handing
}

func (e *handed) Unwrap() error { return e.error }

// linkKey is the secret of a parcel's link that the visitor came by; "" without it.
func linkKey(ctx *fasthttp.RequestCtx) string {
	key := string(ctx.Request.Header.Cookie(keyCookie))
	if strings.Contains(key, ".") { // digits were right: as good for a day, but not for doors
		return ""
	}
	return key
}

// collectPanel reads what waits for the visitor; nil: nothing that a link opens.
func (p trackingPages) collectPanel(c context.Context, ctx *fasthttp.RequestCtx, f frame, out tracking.PublicOutput) (*collectPanel, error) {
	if p.cfg.Catalog == nil || linkKey(ctx) == "" || out.Access.Level != tracking.LevelRecipient {
		return nil, nil
	}
	panel := &collectPanel{frame: f, Action: withLanguage(ctx, f.Path), Parcels: []collectParcel{}}
	list, err := runByLink[locker.ParcelsOutput](c, ctx, p.kit, f.Lang, "customer.parcels.list", map[string]any{"tracking_number": out.TrackingNumber})
	var limited *cloud.Error
	if errors.As(err, &limited) && limited.Kind == cloud.Limited {
		if out.Device != nil { // else no locker is known of
			panel.Problem = f.T("collect.unread")
		}
		return panel, nil
	}
	if err != nil {
		return nil, err
	}
	for _, x := range list.Parcels {
		row := collectParcel{ParcelBody: x, Scan: fmt.Sprintf("scan-%d", len(panel.Parcels)), Doors: strings.Join(x.DoorNames, ", ")}
		if x.PickupCode != nil {
			row.Code = halves(*x.PickupCode)
		}
		if x.OpeningStatus != nil {
			row.Opening = *x.OpeningStatus
		}
		if x.PickupQR != nil {
			if row.QR, err = drawQR(*x.PickupQR, row.Scan); err != nil {
				return nil, err
			}
		}
		panel.Parcels = append(panel.Parcels, row)
	}
	panel.Returns, err = p.returnParcels(f, list.Collected)
	return panel, err
}

// openTime is how long a page waits for doors.
const openTime = 25 * time.Second

// openParcel opens the doors of a parcel for its recipient: by the position that the browser
// gives, or by what the locker's screen shows.
func (p trackingPages) openParcel(ctx *fasthttp.RequestCtx) {
	c, cancel := visitFor(ctx, openTime)
	defer cancel()
	f, out, ok := p.parcel(c, ctx, "")
	if !ok {
		return
	}
	form := ctx.PostArgs()
	in := map[string]any{"delivery_number": string(form.Peek("delivery"))}
	if token := strings.TrimSpace(string(form.Peek("on_site_token"))); token != "" {
		in["on_site_token"] = token
	}
	for _, name := range []string{"latitude", "longitude"} {
		if x, err := strconv.ParseFloat(string(form.Peek(name)), 64); err == nil && !math.IsNaN(x) && !math.IsInf(x, 0) {
			in[name] = x
		}
	}
	_, err := runByLink[locker.ParcelOpenOutput](c, ctx, p.kit, f.Lang, "customer.parcels.open", in)
	if err == nil {
		seeOther(ctx, withLanguage(ctx, f.Path))
		return
	}
	p.showParcel(c, ctx, f, out, nil, &notOpened{err, string(form.Peek("on_site_token"))})
}

// runByLink runs an operation for a recipient or a sender: the link that the visitor came by is its proof.
func runByLink[Out any](c context.Context, ctx *fasthttp.RequestCtx, p *kit, lang, operation string, in map[string]any) (Out, error) {
	a, err := answerBound(c, p, p.who(ctx, lang, ""), operation, catalog.Key{}, func(o *catalog.Operation) catalog.Bind {
		return func(x any) error {
			switch x := x.(type) {
			case *locker.ParcelsInput:
				x.Key = linkKey(ctx)
			case *locker.ParcelOpenInput:
				x.Key = linkKey(ctx)
			case *locker.ParcelReturnInput:
				x.Key = linkKey(ctx)
			case *locker.ParcelHandoverInput:
				x.Key = linkKey(ctx)
			case *locker.ParcelTakeBackInput:
				x.Key = linkKey(ctx)
			case *locker.DropoffInput:
				x.Key = linkKey(ctx)
			}
			return o.Values(in)(x)
		}
	})
	return answered[Out](operation, a, err)
}

// withLanguage is the address of a page in the language that the call asks for by its address.
func withLanguage(ctx *fasthttp.RequestCtx, path string) string {
	if lang := string(ctx.QueryArgs().Peek("lang")); locale.Known(lang) {
		return path + "?lang=" + lang
	}
	return path
}

// recipientWords are errors in words for recipients, who know no courier's code, no reference
// numbers and no headers.
var recipientWords = map[string]string{"DEVICE_OFFLINE": "collect.offline", "DELIVERY_NOT_FOUND": "collect.gone", "DELIVERY_STATE_CONFLICT": "collect.gone", "RATE_LIMITED": "collect.often"}

// whyClosed is why doors did not open, in words for a recipient.
func (p trackingPages) whyClosed(ctx *fasthttp.RequestCtx, f frame, err error) string {
	var shown *cloud.Error
	if !errors.As(err, &shown) {
		return p.why(f, err)
	}
	if shown.RetryAfter > 0 {
		ctx.Response.Header.Set("Retry-After", strconv.Itoa(shown.RetryAfter))
	}
	if words := recipientWords[shown.Code]; words != "" {
		return f.T(words)
	}
	return p.why(f, err)
}

// whyNotHanded is why a parcel was not handed over, in words for a recipient.
func (p trackingPages) whyNotHanded(ctx *fasthttp.RequestCtx, f frame, err error) string {
	var shown *cloud.Error
	if errors.As(err, &shown) && shown.Code == "VALIDATION_FAILED" {
		return f.T("handover.wrong")
	}
	return p.whyClosed(ctx, f, err)
}

// notOpened is why doors did not open for a recipient.
type notOpened struct {
	error
	token string
}

func (e *notOpened) Unwrap() error { return e.error }
