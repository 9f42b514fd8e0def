package page

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/auth"
	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/page/stream"
	"github.com/postern-io/postern/cloud/tracking"
)

// Topics of pages. A topic is a kind, what it is about, and behind a question mark the
// query of the page:
//
//	list:{noun}?{query}       a generated list
//	record:{noun}:{id}        a generated record
//	board:{business}          Home
//	cabinet:{id}?tab={tab}    a cabinet
//	work                      the counts of the navigation
//	work:{show}               the work list
//	day:{date}                the day board
//	job:{id}                  how far a job over many records is
//	track:{number}:{level}    a tracking page
//
// A topic is read as its page is: by the operations of the interface, with the visitor's
// rights at that time.

// watcher is who follows topics: a person who is signed in, or a visitor of a tracking
// page.
type watcher struct {
	visitor
	hash   [32]byte // of the session
	rights string   // that change what is shown
	proof  string
}

// watcherOf is the watcher with a session and a ticket.
func (p livePages) watcherOf(c context.Context, s auth.Session, t ticket) (watcher, error) {
	w := watcher{visitor: visitor{frame: frame{Lang: t.Lang, Version: p.version, Zone: time.UTC, Desk: &desk{}}}, hash: s.Token.Hash, proof: t.Proof}
	if s.Account.ID == 0 {
		return w, nil
	}
	w.c, w.rights = caller(s, t.Lang, p.cfg.BaseURL), rightsOf(s)
	if s.Account.BusinessID == 0 {
		return w, nil
	}
	return w, p.cfg.Store.Look(c, func(view cloud.View) error {
		b, err := view.Business(s.Account.BusinessID)
		w.business, w.Zone = b.Name, b.Location()
		return err
	})
}

// rightsOf are the rights of a session as far as they change what pages show.
func rightsOf(s auth.Session) string {
	scopes := slices.Clone(s.Account.Permissions)
	slices.Sort(scopes)
	return fmt.Sprint(s.Account.BusinessID, " ", s.Account.Type, " ", strings.Join(scopes, ","), " ", strings.Join(s.Account.PriceHidden, ","), " ", s.Pass)
}

// check says whether a session still has the rights that a topic was joined with.
func (p livePages) check(w watcher) func(context.Context) error {
	return func(c context.Context) error {
		s, err := p.cfg.FindToken(c, w.hash)
		switch {
		case errors.Is(err, cloud.ErrNotFound):
			return stream.ErrEnded
		case err != nil:
			return err
		case !auth.Valid(s.Token, time.Now()) || !lets(s, &forWork) || rightsOf(s) != w.rights:
			return stream.ErrEnded
		}
		return nil
	}
}

// liveRead is how a page is read for its topics. It gets a request like that of a
// browser, for the page's own address.
type liveRead struct {
	path, query string
	values      map[string]string // of the path
	operation   string            // that the visitor must be allowed
	personal    bool              // what is shown depends on the person
	read        func(c context.Context, ctx *fasthttp.RequestCtx, v visitor) (any, error)
	sections    func(data any) ([]stream.Section, error)
	wants       []stream.Want
	pace        time.Duration // between reads; 0: that of the hub
}

// topicOf is a topic for a watcher. Errors are those of reading the page.
func (p livePages) topicOf(c context.Context, w watcher, name string) (stream.Topic, error) {
	kind, rest, _ := strings.Cut(name, ":")
	if kind == "track" {
		return p.trackTopic(w, name, rest)
	}
	if w.c.Account.ID == 0 {
		return stream.Topic{}, cloud.E(cloud.Forbidden, "FORBIDDEN")
	}
	rest, query, _ := strings.Cut(rest, "?")
	x, err := p.liveReadOf(w, kind, rest)
	if err != nil {
		return stream.Topic{}, err
	}
	if x.operation != "" {
		if err := p.cfg.Pipeline.May(c, p.cfg.Catalog.Find(x.operation), w.c); err != nil {
			return stream.Topic{}, err
		}
	}
	x.query = query
	key := name + "|" + w.Lang + "|" + w.rights
	if x.personal || !slices.Contains(staff, w.c.Account.Type) {
		key += fmt.Sprint("|", w.c.Account.ID)
	}
	read := func(c context.Context) (any, error) {
		v := w.visitor
		v.Path, v.Made = x.path, time.Now().UTC()
		data, err := x.read(catalog.Admitted(c, v.c), x.request(), v)
		var shown *cloud.Error
		if errors.As(err, &shown) && (shown.Kind == cloud.Forbidden || shown.Kind == cloud.NotFound || shown.Kind == cloud.Unauthenticated) {
			err = stream.ErrEnded
		}
		return data, err
	}
	return stream.Topic{Name: name, Key: key, Wants: x.wants, Read: read, Render: x.sections, Check: p.check(w), Look: p.look(15 * time.Second), Pace: x.pace}, nil
}

// look is how often topics are read without a notice. Other nodes commit without one.
func (p livePages) look(alone time.Duration) time.Duration {
	if p.cfg.Peers != nil && p.cfg.Peers() {
		return 5 * time.Second
	}
	return alone
}

// request is a request for the page.
func (x liveRead) request() *fasthttp.RequestCtx {
	var req fasthttp.Request
	req.SetRequestURI(x.path + "?" + x.query)
	ctx := &fasthttp.RequestCtx{}
	ctx.Init(&req, nil, nil)
	for name, value := range x.values {
		ctx.SetUserValue(name, value)
	}
	return ctx
}

// about is the changes of some kinds at the watcher's business; nil: of all.
func (w watcher) about(kinds ...string) []stream.Want {
	return []stream.Want{{Subject: cloud.Touch{Business: w.c.Account.BusinessID}, Kinds: kinds}}
}

// Kinds of changes.
var (
	cabinetKinds = []string{"Devices", "Sessions", "Doors", "Compartments", "Shelves", "Openings", "Deliveries", "Exceptions", "DeviceFaults", "DeviceOrders", "Commands"}
	workKinds    = []string{"Exceptions", "DeviceFaults", "Deliveries", "Sessions", "Devices", "Endpoints", "Approvals", string(cloud.WorkMarkIDs), "Accounts", "Compartments"}
	dayKinds     = []string{"Orders", "Routes", "Drivers", "Assignments", "ThirdParties", "DroppedOrders"}
)

// jobPace is the least time between two reads of a job, whose rows are done by the
// hundred a second.
const jobPace = 500 * time.Millisecond

func (p livePages) liveReadOf(w watcher, kind, rest string) (liveRead, error) {
	missing := cloud.E(cloud.NotFound, "NOT_FOUND")
	drawn := slices.Contains(staff, w.c.Account.Type)
	switch kind {
	case "list", "record":
		name, id, _ := strings.Cut(rest, ":")
		n := p.cfg.Catalog.Noun(name)
		if n == nil || n.List == "" {
			return liveRead{}, missing
		}
		return p.liveNoun(w, n, kind, id), nil
	case "board":
		if !drawn || rest != fmt.Sprint(int64(w.c.Account.BusinessID)) {
			return liveRead{}, missing
		}
		return liveRead{path: ConsolePath, wants: w.about(slices.Concat(cabinetKinds, workKinds, dayKinds, []string{"Outbox", "ProofGuesses", "Interceptions"})...), read: func(c context.Context, ctx *fasthttp.RequestCtx, v visitor) (any, error) {
			return consolePages{p.kit}.readHome(c, ctx, v)
		}, sections: p.homeSections}, nil
	case "cabinet":
		id, err := strconv.ParseInt(rest, 10, 64)
		if err != nil || !drawn {
			return liveRead{}, missing
		}
		wants := append(w.about(), stream.Want{Subject: cloud.Touch{Device: cloud.DeviceID(id)}})
		return liveRead{path: fmt.Sprintf("%s/cabinets/%d", ConsolePath, id), values: map[string]string{"id": rest}, operation: findsDevice, wants: wants[1:], read: func(c context.Context, ctx *fasthttp.RequestCtx, v visitor) (any, error) {
			return p.standing(c, ctx, v)
		}, sections: p.executed("cabhead", "cabbody")}, nil
	case "work":
		if rest == "" {
			return liveRead{path: workPath, personal: true, wants: w.about(append(slices.Clone(workKinds), "Conversations", "ChatMessages")...), read: func(c context.Context, ctx *fasthttp.RequestCtx, v visitor) (any, error) {
				return countWaiting(c, p.kit, ctx, v)
			}, sections: countSections}, nil
		}
		return liveRead{path: workPath, personal: true, operation: "work_items.list", wants: w.about(workKinds...), read: func(c context.Context, ctx *fasthttp.RequestCtx, v visitor) (any, error) {
			return p.workList(c, ctx, v, rest)
		}, sections: p.executed("workbody")}, nil
	case "job":
		id := unescape(rest)
		return liveRead{path: jobsPath + "/" + rest, personal: true, operation: "jobs.find", pace: jobPace, wants: w.about("Jobs", "JobSteps"), read: func(c context.Context, ctx *fasthttp.RequestCtx, v visitor) (any, error) {
			return jobPages{p.nounPages}.readJob(c, ctx, v, id)
		}, sections: p.executed("jobbody")}, nil
	case "day":
		return liveRead{path: dayPath, operation: "routes.list", wants: w.about(dayKinds...), read: func(c context.Context, ctx *fasthttp.RequestCtx, v visitor) (any, error) {
			return p.dayOf(c, ctx, v, rest)
		}, sections: p.executed("daybody")}, nil
	}
	return liveRead{}, missing
}

// liveNoun reads a generated list or record.
func (p livePages) liveNoun(w watcher, n *catalog.Noun, kind, id string) liveRead {
	x := liveRead{path: ConsolePath + "/" + n.Path, values: map[string]string{"noun": n.Path}, operation: n.List, personal: n.Live == nil, wants: w.about(n.Live...)}
	if kind == "list" {
		x.read = func(c context.Context, ctx *fasthttp.RequestCtx, v visitor) (any, error) {
			return p.list(c, ctx, v, n)
		}
		x.sections = p.executed("listtotal", "listbody")
		return x
	}
	if x.path += "/" + id; n.Find != "" {
		x.operation = n.Find
	}
	x.wants = w.about() // what is related to a record is of any kind
	x.values["id"] = id
	x.read = func(c context.Context, ctx *fasthttp.RequestCtx, v visitor) (any, error) {
		return p.wholeRecord(c, ctx, v, n, unescape(id))
	}
	x.sections = p.executed("recordhead", "recordbody")
	return x
}

// executed renders templates, each as a section of its name.
func (p livePages) executed(names ...string) func(any) ([]stream.Section, error) {
	return func(data any) (out []stream.Section, err error) {
		for _, name := range names {
			html, err := p.execute(name, data)
			if err != nil {
				return nil, err
			}
			out = append(out, stream.Section{Name: name, HTML: html})
		}
		return out, nil
	}
}

func (p livePages) execute(name string, data any) (string, error) {
	var b bytes.Buffer
	if err := p.tmpl.ExecuteTemplate(&b, name, data); err != nil {
		return "", fmt.Errorf("render section %s: %w", name, err)
	}
	return b.String(), nil
}

// followTopics lets a page of a visitor follow topics.
func followTopics(p *kit, ctx *fasthttp.RequestCtx, f *frame, topics ...string) {
	if f.Desk != nil {
		topics = append(topics, "work")
	}
	about := sessionOf(ctx)
	if about == "" {
		return
	}
	f.Live = tickets{p.cfg.DigestKey}.seal(about, ticket{Topics: topics, Lang: f.Lang, Since: f.since, Until: time.Now().Add(ticketLife).Unix()})
}

// sessionOf is the hash of a request's session as tickets have it.
func sessionOf(ctx *fasthttp.RequestCtx) string {
	token := ctx.Request.Header.Cookie(forStaff.session)
	if len(token) == 0 {
		return ""
	}
	hash := auth.Hash(string(token))
	return hex.EncodeToString(hash[:])
}

// followParcel lets a tracking page follow its parcel.
func (p trackingPages) followParcel(ctx *fasthttp.RequestCtx, f *frame, out tracking.PublicOutput) {
	level := out.Access.Level
	if level == tracking.LevelOwner {
		return
	}
	a := out.About
	q := url.Values{}
	for name, id := range map[string]int64{"s": int64(a.Shipment), "o": int64(a.Order), "d": int64(a.Delivery), "c": int64(a.Device)} {
		if id != 0 {
			q.Set(name, strconv.FormatInt(id, 10))
		}
	}
	t := ticket{Topics: []string{"track:" + url.PathEscape(out.TrackingNumber) + ":" + string(level) + "?" + q.Encode()}, Lang: f.Lang, Since: f.since, Until: time.Now().Add(visitorTicketLife).Unix()}
	if level == tracking.LevelRecipient {
		t.Proof = string(ctx.Request.Header.Cookie(keyCookie))
	}
	f.Live = tickets{p.cfg.DigestKey}.seal(visitorTicket, t)
}

// trackTopic is the topic of a tracking page. All its visitors share one read; each
// level and language is rendered once. Who was the recipient must still be able to show
// it when something is read.
func (p livePages) trackTopic(w watcher, name, rest string) (stream.Topic, error) {
	rest, query, _ := strings.Cut(rest, "?")
	escaped, level, _ := strings.Cut(rest, ":")
	number, err := url.PathUnescape(escaped)
	q, err2 := url.ParseQuery(query)
	if err != nil || err2 != nil || number == "" {
		return stream.Topic{}, cloud.E(cloud.NotFound, "NOT_FOUND")
	}
	id := func(name string) int64 { n, _ := strconv.ParseInt(q.Get(name), 10, 64); return n }
	t := stream.Topic{Name: "track:" + escaped + ":" + level, Key: "track:" + strings.ToUpper(number), View: level + "|" + w.Lang, Look: p.look(time.Minute),
		Read: func(c context.Context) (any, error) {
			x, err := p.cfg.Tracking.Watch(c, number)
			var shown *cloud.Error
			if errors.As(err, &shown) && shown.Kind == cloud.NotFound {
				err = stream.ErrEnded
			}
			return x, err
		},
		Render: func(data any) ([]stream.Section, error) {
			f := w.frame
			f.Desk, f.Made = nil, time.Now().UTC()
			return p.executed("parcel")(trackView(f, data.(tracking.Watched).Public(w.Lang, tracking.Level(level))))
		}}
	if level == string(tracking.LevelRecipient) {
		t.Sees = func(data any) bool { return data.(tracking.Watched).Proves(w.proof, time.Now()) }
	}
	for _, want := range []stream.Want{{Subject: cloud.Touch{Shipment: cloud.ShipmentID(id("s"))}}, {Subject: cloud.Touch{Order: cloud.OrderID(id("o"))}}, {Subject: cloud.Touch{Delivery: cloud.DeliveryID(id("d"))}}, {Subject: cloud.Touch{Device: cloud.DeviceID(id("c"))}, Kinds: []string{"Sessions", "Devices"}}} {
		if want.Subject != (cloud.Touch{}) {
			t.Wants = append(t.Wants, want)
		}
	}
	return t, nil
}
