package page_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/auth"
	"github.com/postern-io/postern/cloud/webtest"
	"github.com/postern-io/postern/internal/ring"
	protocol "github.com/postern-io/postern/protocol/wire"
)

// sse is a page that follows its topics.
type sse struct {
	t    testing.TB
	in   *bufio.Reader
	done func()
}

var ticketOf = regexp.MustCompile(`data-ticket="([^"]+)"`)

// ticket is that of a page.
func (r *rig) ticket(path string) string {
	r.t.Helper()
	g := r.do("GET", path, nil)
	require.Equal(r.t, 200, g.status, path)
	m := ticketOf.FindStringSubmatch(g.body)
	require.NotNil(r.t, m, "%s follows nothing", path)
	return m[1]
}

// dial asks for a stream and gives the status of the answer.
func (r *rig) dial(ticket string, headers ...string) (int, sse) {
	r.t.Helper()
	c, err := r.ln.Dial()
	require.NoError(r.t, err)
	ask := "GET /live?t=" + ticket + " HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n"
	for name, value := range r.cookies {
		ask += "Cookie: " + name + "=" + value + "\r\n"
	}
	for _, h := range headers {
		ask += h + "\r\n"
	}
	_, err = c.Write([]byte(ask + "\r\n"))
	require.NoError(r.t, err)
	in := bufio.NewReader(c)
	var head fasthttp.ResponseHeader
	require.NoError(r.t, head.Read(in))
	s := sse{r.t, in, func() { c.Close() }}
	r.t.Cleanup(s.done)
	if head.StatusCode() == 200 {
		require.Equal(r.t, "text/event-stream", string(head.ContentType()))
		require.Equal(r.t, "no-store", string(head.Peek("Cache-Control")))
	}
	return head.StatusCode(), s
}

func (r *rig) follow(path string) sse {
	r.t.Helper()
	status, s := r.dial(r.ticket(path))
	require.Equal(r.t, 200, status)
	return s
}

// event is what a page gets of a topic.
type event struct {
	Topic    string            `json:"topic"`
	At       string            `json:"at"`
	Sections map[string]string `json:"sections"`
	id       string
}

// next reads until the next event of a kind of topics.
func (s sse) next(topic string) event {
	s.t.Helper()
	late := time.AfterFunc(20*time.Second, s.done) // so that the read fails
	defer late.Stop()
	id := ""
	for {
		line, err := s.in.ReadString('\n')
		require.NoError(s.t, err)
		if x, ok := strings.CutPrefix(line, "id: "); ok {
			id = strings.TrimSpace(x)
		}
		if data, ok := strings.CutPrefix(line, "data: {"); ok {
			e := event{id: id}
			require.NoError(s.t, json.Unmarshal([]byte("{"+data), &e))
			if strings.HasPrefix(e.Topic, topic) {
				return e
			}
		}
	}
}

// rest reads until the stream ends and gives the events.
func (s sse) rest() string {
	s.t.Helper()
	late := time.AfterFunc(20*time.Second, s.done)
	defer late.Stop()
	b, err := io.ReadAll(s.in)
	require.NoError(s.t, err)
	out := ""
	for line := range strings.Lines(string(b)) {
		if strings.HasPrefix(line, "data: {") {
			out += line
		}
	}
	return out
}

func (r *rig) door(status string) {
	r.t.Helper()
	r.w.Write(r.t, cloud.Changes{LockerChanges: cloud.LockerChanges{Doors: []cloud.DoorPresent{{DeviceID: 88, Door: 7, DoorStatus: status}}}})
}

func TestHomeFollowsChanges(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.signedIn()
	s := r.follow("/console")
	first := s.next("board:42")
	require.Contains(t, first.Sections["cabinets"], "s-open")
	require.NotContains(t, first.Sections, "cab-88", "it is in the section of all cabinets")
	r.door("closed")
	next := s.next("board:42")
	require.Contains(t, next.Sections, "cab-88")
	require.NotContains(t, next.Sections["cab-88"], "s-open")
	require.NotContains(t, next.Sections, "cabinets", "one cabinet looks different")
	require.NotContains(t, next.Sections, "webhooks", "what stayed the same is not sent")
	r.ask(r.w.Tokens[cloud.Broker], nil)
	require.Equal(t, "1", s.next("work").Sections["n-approvals"], "an agent has asked for something")
	for _, e := range []event{first, next} {
		for _, html := range e.Sections {
			require.NotContains(t, html, webtest.PickupCode)
			require.NotContains(t, html, webtest.Secret)
		}
	}
	s.done()
	ring.Await(t, func() bool { return r.f.pages.Live().Readers == 0 })
}

// Each page that follows something is sent what its own address shows.
func TestPagesFollowTheirTopics(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.signedIn()
	r.do("GET", "/console", nil)
	require.NotEmpty(t, r.cookies["postern_form"])
	for path, want := range map[string][2]string{
		"/console/cabinets": {"list:cabinet", "listbody"}, "/console/orders": {"list:order", "listbody"}, "/console/day": {"day:", "daybody"}, "/console/cabinets?status=online": {"list:cabinet?status=online", "listbody"}, "/console/work": {"work:all", "workbody"},
		"/console/cabinets/88": {"cabinet:88", "cabbody"}, "/console/cabinets/88?tab=health": {"cabinet:88?tab=health", "cabbody"}, "/console/people/1": {"record:user:1", "recordbody"}, "/track/" + webtest.Waiting: {"track:" + webtest.Waiting + ":", "parcel"},
	} {
		s := r.follow(path)
		e := s.next(want[0])
		require.NotEmpty(t, e.Sections[want[1]], path)
		shown := r.do("GET", path, nil).body
		for name, html := range e.Sections {
			require.Contains(t, shown, `data-live="`+name+`"`, path)
			if !strings.Contains(html, `name="form"`) {
				require.Contains(t, shown, html, "%s: section %s looks as on the page", path, name)
			}
		}
		require.NotContains(t, fmt.Sprint(e.Sections), r.cookies["postern_form"], "no form of one browser is in what all get")
		s.done()
	}
	ring.Await(t, func() bool { return r.f.pages.Live().Readers == 0 })
	status, s := r.dial(r.ticket("/console/cabinets?status=offline"))
	require.Equal(t, 200, status)
	require.NotContains(t, s.next("list:cabinet?status=offline").Sections["listbody"], "Front St Lobby")
}

// A hundred who look at the same cost one read and one rendering; a change of another
// business costs none.
func TestOneReadForAllWhoLook(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	const n = 40
	all := []sse{r.follow("/track/" + webtest.Waiting)}
	all[0].next("track:") // the others have it on their pages
	for range n - 1 {
		all = append(all, r.follow("/track/"+webtest.Waiting))
	}
	ring.Await(t, func() bool { return r.f.pages.Live().Renders == 1 })
	before := r.f.pages.Live()
	require.Equal(t, n, before.Readers)
	require.Equal(t, 1, before.Sources)
	r.w.Write(t, cloud.Changes{DeviceChanges: cloud.DeviceChanges{Sessions: []cloud.Session{{DeviceID: 88, Generation: 2, Node: "test", LastSeenAt: time.Now().Add(-time.Hour).UTC()}}}})
	for _, s := range all {
		require.Contains(t, s.next("track:").Sections["parcel"], "The locker is not connected right now")
	}
	after := r.f.pages.Live()
	require.Equal(t, 1, after.Reads-before.Reads)
	require.Equal(t, 1, after.Renders-before.Renders)
	r.w.Write(t, cloud.Changes{OrderChanges: cloud.OrderChanges{}, AuditChanges: cloud.AuditChanges{Audits: []cloud.Audit{{BusinessID: 43, At: time.Now().UTC(), Actor: "account:9", Action: "x", Target: "y", Detail: "{}"}}}})
	r.w.Write(t, cloud.Changes{LockerChanges: cloud.LockerChanges{Exceptions: []cloud.Exception{{ID: 990, BusinessID: 43, DeviceID: 90, GridCode: "A01", Source: "s", Type: "door_left_open", Severity: "medium", Status: "open", OpenedAt: time.Now()}}}})
	time.Sleep(300 * time.Millisecond)
	require.Equal(t, after.Reads, r.f.pages.Live().Reads)
}

// A ticket is of use to the session that it was made for, as it was made, and no topic
// of another business can be had.
func TestTicketsCannotBeForged(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.signedIn()
	own := r.ticket("/console/cabinets")
	status := func(ticket string) int {
		code, s := r.dial(ticket)
		s.done()
		return code
	}
	require.Equal(t, 200, status(own))
	for i := 0; i < len(own); i += 7 {
		other := []byte(own)
		other[i] = map[bool]byte{true: 'B', false: 'A'}[other[i] == 'A']
		require.Equal(t, 403, status(string(other)), "altered at %d", i)
	}
	for _, made := range []string{"", "v.", "v." + own, "e30", strings.Repeat("A", 5000), "..%2f", own[:len(own)/2]} {
		require.Equal(t, 403, status(made), made)
	}
	visitor := newRigAt(r).ticket("/track/" + webtest.Waiting)
	require.True(t, strings.HasPrefix(visitor, "v."))
	require.Equal(t, 200, status(visitor), "who is signed in may look at parcels too")
	require.Equal(t, 403, status(strings.TrimPrefix(visitor, "v.")), "but it is no ticket of the session")

	mina := newRigAt(r)
	require.Equal(t, 303, mina.signIn(r.w.Emails[cloud.ClientEmployee]).status)
	code, s := mina.dial(own)
	s.done()
	require.Equal(t, 403, code, "a ticket of another session")
	nobody := newRigAt(r)
	code, s = nobody.dial(own)
	s.done()
	require.Equal(t, 401, code)
	require.Equal(t, 401, nobody.do("GET", "/live?t="+own, nil).status)
}

// newRigAt is another browser at the same server.
func newRigAt(r *rig) *rig {
	return &rig{t: r.t, w: r.w, s: r.s, f: r.f, ln: r.ln, c: r.c, cookies: map[string]string{}}
}

// What ends a right ends the stream before anything more is sent.
func TestStreamsEndWithTheRight(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(r *rig){
		"the business is suspended": func(r *rig) {
			r.w.Write(r.t, cloud.Changes{PlatformChanges: cloud.PlatformChanges{BusinessStates: []cloud.BusinessState{{BusinessID: 42, SuspendedAt: time.Now().UTC(), Reason: "Unpaid"}}}})
		},
		"the session ends": func(r *rig) {
			g := r.do("GET", "/console", nil)
			other := newRigAt(r)
			other.cookies["postern_session"], other.cookies["postern_form"] = r.cookies["postern_session"], r.cookies["postern_form"]
			require.Equal(r.t, 303, other.do("POST", "/console/logout", map[string][]string{"form": {formField.FindStringSubmatch(g.body)[1]}}).status)
		},
		"a permission is taken": func(r *rig) {
			s, err := r.w.FindToken(r.t.Context(), hashOf(r.cookies["postern_session"]))
			require.NoError(r.t, err)
			s.Account.Permissions = []string{"chat:read"}
			r.w.Write(r.t, cloud.Changes{AccountChanges: cloud.AccountChanges{Accounts: []cloud.Account{s.Account}}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			require.Equal(t, 303, r.signIn(r.w.Emails[cloud.ClientEmployee]).status)
			s := r.follow("/console")
			s.next("board:42")
			end(r)
			r.door("closed")
			require.NotContains(t, s.rest(), "cab-88")
			require.Equal(t, 1, min(1, r.f.pages.Live().Ended))
		})
	}
}

// The proof of a recipient counts each time: one that is over ends what it opened.
func TestAStreamOfARecipientEndsWithTheProof(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	over := time.Now().Add(2 * time.Second).Truncate(time.Second)
	r.cookies["postern_parcel"] = linkKey.Until(linkKey.OfShipment(shipmentOf(t, r, webtest.Waiting), 0), over)
	s := r.follow("/track/" + webtest.Waiting)
	require.Contains(t, s.next("track:" + webtest.Waiting + ":recipient").Sections["parcel"], `class="label"`, "the recipient sees the door")
	stranger := newRigAt(r).follow("/track/" + webtest.Waiting)
	require.NotContains(t, stranger.next("track:" + webtest.Waiting + ":public").Sections["parcel"], `class="label"`)
	late := r.ticket("/track/" + webtest.Waiting)
	time.Sleep(time.Until(over))
	r.w.Write(t, cloud.Changes{DeviceChanges: cloud.DeviceChanges{Sessions: []cloud.Session{{DeviceID: 88, Generation: 2, Node: "test", LastSeenAt: time.Now().Add(-time.Hour).UTC()}}}})
	require.Empty(t, s.rest())
	require.Contains(t, stranger.next("track:").Sections["parcel"], "The locker is not connected right now")
	status, again := r.dial(late, "Last-Event-ID: other-1")
	require.Equal(t, 200, status)
	require.Empty(t, again.rest(), "what was read meanwhile is not shown to it either")
}

// A page whose browser has no event streams, or for which there is no place, asks: what
// it has already is not sent again.
func TestPagesPoll(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.signedIn()
	ticket := r.ticket("/console/cabinets/88")
	for range 5 {
		code, _ := r.dial(ticket)
		require.Equal(t, 200, code)
	}
	code, s := r.dial(ticket)
	require.Equal(t, 503, code, "a sixth of one session")
	s.done()
	g := r.do("GET", "/live?t="+ticket, nil, "Accept", "application/json")
	require.Equal(t, 200, g.status)
	var topics []event
	require.NoError(t, json.Unmarshal([]byte(g.body), &topics))
	require.Contains(t, topics[0].Sections["cabbody"], "s-open")
	tag := g.header("ETag")
	require.NotEmpty(t, tag)
	again := r.do("GET", "/live?t="+ticket, nil, "Accept", "application/json", "If-None-Match", tag)
	require.Equal(t, 304, again.status)
	require.Empty(t, again.body)
	r.door("closed")
	ring.Await(t, func() bool {
		g = r.do("GET", "/live?t="+ticket, nil, "Accept", "application/json", "If-None-Match", tag)
		return g.status == 200
	})
	require.NotContains(t, g.body, "s-open")
}

// A cabinet may answer after its page said that it did not: the page takes that back by
// itself, and a person who asked first sees what became of the opening.
func TestACabinetThatAnswersLate(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.signedIn()
	asked := time.Now().UTC().Add(-time.Minute)
	o := cloud.Opening{ID: "opn_late", BusinessID: 42, DeviceID: 88, Kind: protocol.OpenStaff, Requester: cloud.Requester{Type: "console", ID: "9", Name: "Mina"}, Reason: "look inside",
		Doors: []cloud.OpeningDoor{{Door: 7, GridID: 8807, Status: "closed"}}, State: cloud.OpeningRequested, RequestedAt: asked, EndsAt: asked.Add(30 * time.Second)}
	write := func() {
		r.w.Write(t, cloud.Changes{Unaudited: true, LockerChanges: cloud.LockerChanges{Openings: []cloud.Opening{o}}})
	}
	write()
	const page = "/console/cabinets/88?tab=health"
	s := r.follow(page)
	require.Contains(t, s.next("cabinet:88").Sections["cabbody"], "requested")
	const silent = "no answer from the cabinet in time"
	o.State, o.EndReason, o.EndedAt = cloud.OpeningEnded, string(cloud.CommandExpired), asked.Add(30*time.Second)
	write()
	require.Contains(t, s.next("cabinet:88").Sections["cabbody"], silent)
	require.Contains(t, r.do("GET", page, nil).body, silent)
	o.State, o.EndReason, o.EndedAt, o.OpenedAt = cloud.OpeningRunning, "", time.Time{}, asked.Add(40*time.Second)
	o.Doors[0].Status, o.Doors[0].OpenedAt = "open", o.OpenedAt
	write()
	body := s.next("cabinet:88").Sections["cabbody"]
	require.NotContains(t, body, silent)
	require.Contains(t, body, "running")
	require.NotContains(t, r.do("GET", page, nil).body, silent)
	o.State, o.EndReason, o.EndedAt = cloud.OpeningEnded, protocol.EndDone, asked.Add(50*time.Second)
	write()
	require.Contains(t, s.next("cabinet:88").Sections["cabbody"], ">done<")
}

// A browser that comes back with the id of an event gets what changed since.
func TestAStreamGoesOn(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.signedIn()
	ticket := r.ticket("/console/cabinets/88")
	_, s := r.dial(ticket)
	first := s.next("cabinet:88")
	require.Contains(t, first.Sections, "cabhead")
	s.done()
	ring.Await(t, func() bool { return r.f.pages.Live().Readers == 0 })
	r.door("closed")
	_, s = r.dial(ticket, "Last-Event-ID: "+first.id)
	next := s.next("cabinet:88")
	require.Contains(t, next.Sections, "cabbody")
	require.NotContains(t, next.Sections, "cabhead")
	_, s = r.dial(ticket, "Last-Event-ID: other-5")
	require.Contains(t, s.next("cabinet:88").Sections, "cabhead")
}

func TestStreamsEndAtShutdown(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.signedIn()
	r.follow("/console").next("board:42")
	require.NoError(t, r.s.Shutdown(t.Context()))
	ring.Await(t, func() bool { return r.f.pages.Live().Readers == 0 })
}

func hashOf(token string) [32]byte { return auth.Hash(token) }

// shipmentOf is the parcel with a number.
func shipmentOf(t testing.TB, r *rig, number string) (id cloud.ShipmentID) {
	timeline, err := r.w.DB.FindTimeline(t.Context(), number, func(cloud.Shipment) bool { return false })
	sh := timeline.Shipment
	require.NoError(t, err)
	return sh.ID
}

// In a real browser: a row of a list changes by itself and the chosen row stays chosen; a
// page that receives nothing says so, and what can be done from it is off; the sixth page of
// a session asks instead of listening.
func TestLiveInARealBrowser(t *testing.T) {
	w, s, _ := server(t, nil)
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	changer := &fasthttp.Server{Handler: func(ctx *fasthttp.RequestCtx) {
		err := w.DB.Decide(context.Background(), 0, func(v cloud.View) (*cloud.Changes, error) {
			if string(ctx.Path()) == "/person" {
				a, err := v.Account(1)
				a.Name = "Renamed Ann"
				return &cloud.Changes{AccountChanges: cloud.AccountChanges{Accounts: []cloud.Account{a}}}, err
			}
			d, err := v.Device(88)
			d.Name = "Renamed Lobby"
			return &cloud.Changes{DeviceChanges: cloud.DeviceChanges{Devices: []cloud.Device{d}}}, err
		})
		if err != nil {
			ctx.Error(err.Error(), fasthttp.StatusInternalServerError)
		}
	}}
	done := make(chan error, 1)
	go func() { done <- changer.Serve(ln) }()
	t.Cleanup(func() {
		require.NoError(t, ln.Close())
		<-done
	})
	var f struct {
		Console           []string
		State, Said, Lost string
		Row, Off, Menu    bool
		Sight             bool
		Pages             []string
	}
	require.NoError(t, json.Unmarshal(drive(t, s, []string{"CHANGE=http://" + ln.Addr().String() + "/"}, "live.mjs", w.Emails[cloud.ClientAdmin], webtest.Password), &f))
	require.Empty(t, f.Console)
	require.Equal(t, "Live, confirmed TIME", f.State)
	require.True(t, f.Row, "the row is the same, chosen and with the focus")
	require.True(t, f.Sight, "the row with the focus was moved, and is still in sight")
	require.Equal(t, "Updated: Cabinets", f.Said)
	require.Equal(t, "Not connected since TIME. This may be old.", f.Lost)
	require.True(t, f.Menu, "an open menu stays open")
	require.True(t, f.Off, "a verb of an old page leads nowhere")
	require.Equal(t, []string{"Live", "Live", "Live", "Live", "Live", "Checked"}, f.Pages)
}

// A page follows its job while rows are done; it is read twice a second at most, however
// many are done in between, and a job of another business costs nothing.
func TestAPageFollowsItsJob(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.signedIn()
	const rows = 40
	jobs := []cloud.Job{{ID: "bat_live", BusinessID: 42, AccountID: 9, Operation: "orders.hold", Noun: "order", Status: cloud.JobProcessing, Total: rows, CreatedAt: time.Now().UTC(), StartedAt: time.Now().UTC()},
		{ID: "bat_other", BusinessID: r.w.Other.ID, AccountID: 9, Operation: "orders.hold", Noun: "order", Status: cloud.JobProcessing, Total: 1, CreatedAt: time.Now().UTC()}}
	steps := func(j cloud.Job, row int, result []byte) cloud.Changes {
		return cloud.Changes{Unaudited: true, JobChanges: cloud.JobChanges{JobRows: []cloud.JobRow{{JobID: j.ID, Row: row, Input: []byte(`{"ID":"1"}`), Checked: []byte(`{}`), Result: result}}, JobSteps: []cloud.JobProgress{{BusinessID: j.BusinessID, JobID: j.ID}}}}
	}
	r.w.Write(t, cloud.Changes{JobChanges: cloud.JobChanges{Jobs: jobs}})
	s := r.follow("/console/jobs/bat_live")
	s.next("job:bat_live")
	before, began := r.f.pages.Live(), time.Now()
	for row := range rows {
		r.w.Write(t, steps(jobs[0], row+1, []byte(`{"Title":"x"}`)))
	}
	for {
		if e := s.next("job:bat_live"); strings.Contains(e.Sections["jobbody"], fmt.Sprintf(`value="%d"`, rows)) {
			break
		}
	}
	after := r.f.pages.Live()
	require.LessOrEqual(t, float64(after.Reads-before.Reads), 2+time.Since(began).Seconds()*2+1, "of the job and of the counts")
	r.w.Write(t, steps(jobs[1], 1, []byte(`{}`)))
	jobs[0].Status, jobs[0].FinishedAt = cloud.JobCompleted, time.Now().UTC()
	r.w.Write(t, cloud.Changes{JobChanges: cloud.JobChanges{Jobs: jobs[:1]}})
	require.NotContains(t, s.next("job:bat_live").Sections["jobbody"], "value=\"cancel\"")
	require.Equal(t, 1, r.f.pages.Live().Reads-after.Reads)
}
