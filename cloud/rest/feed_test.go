package rest

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/auth"
)

const changes = otepBase + "/changes"

// feedRig has a parcel of a customer's order beside those of otepRig.
func feedRig(t testing.TB) *rig {
	r := otepRig(t)
	r.w.Write(t, cloud.Changes{TrackingChanges: cloud.TrackingChanges{Shipments: []cloud.Shipment{{ID: 104, BusinessID: 42, Number: "SR104", OrderID: 900104, CustomerID: 5, Profile: "parcel"}}}})
	r.w.Write(t, cloud.Changes{AccountChanges: cloud.AccountChanges{Providers: []cloud.Provider{{ID: 19, BusinessID: 42, Code: "all", Name: "All", Services: []string{"otep"}, Scope: cloud.ScopeAll}},
		Accounts: []cloud.Account{{ID: 29, BusinessID: 42, Type: cloud.ProviderType, ProviderID: 19, Name: "all", Enabled: true}},
		Tokens:   []cloud.Token{{Hash: auth.Hash("token-of-all"), AccountID: 29, Name: "test", ExpiresAt: time.Now().Add(time.Hour)}}}})
	return r
}

// end is the cursor behind all that is there.
func (r *rig) end(token string) string {
	r.t.Helper()
	next := ""
	for {
		g := r.do("GET", changes+"?limit=1000&after="+next, token, "")
		require.Equal(r.t, 200, g.status, "%s", g.body)
		next = g.json["next"].(string)
		if g.json["more"] == false {
			return next
		}
	}
}

// add has an event of a parcel ingested by the provider of everything.
func (r *rig) add(number, id string) {
	r.t.Helper()
	g := r.do("POST", ingest, "token-of-all", timelineOf(number, eventOf("in_transit", "2026-06-10T11:30:00-04:00", fmt.Sprintf(`,"event_id":%q,"message":"to <the> owner"`, id))))
	require.Equal(r.t, 1.0, g.json["accepted"], "%s", g.body)
}

func (r *rig) changed(query, token string, headers ...string) (lines []string, g got) {
	r.t.Helper()
	g = r.do("GET", changes+"?"+query, token, "", headers...)
	require.Equal(r.t, 200, g.status, "%s", g.body)
	require.Equal(r.t, true, g.json["result"])
	for _, x := range g.json["changes"].([]any) {
		line := dig(x, "kind").(string) + " " + dig(x, "tracking_number").(string)
		if e, ok := dig(x, "event").(map[string]any); ok {
			line += " " + e["event_id"].(string)
		}
		lines = append(lines, line)
	}
	return lines, g
}

func TestChangesOfAFeed(t *testing.T) {
	t.Parallel()
	r := feedRig(t)
	admin := r.w.Tokens[cloud.ClientAdmin]
	began := r.end(admin)
	lines, g := r.changed("after="+began, admin)
	require.Empty(t, lines)
	require.Contains(t, string(g.body), `"changes":[]`)
	require.Equal(t, "no-store", g.header("Cache-Control"))

	r.add("SR123456789", "e1")
	r.add("SR123456789", "e2")
	require.Equal(t, 1.0, r.do("POST", ingest, "token-of-all", timelineOf("SR123456789", eventOf("in_transit", "2026-06-10T11:30:00-04:00", `,"event_id":"e2","message":"to <the> owner"`))).json["duplicates"], "it is no change")
	r.do("POST", ingest, "token-of-all", fmt.Sprintf(`{"otep_version":"0.1","profile":"parcel","subject":{"tracking_number":"SR123456789"},"events":[%s],"withdrawals":[{"event_id":"e1","reason":"did_not_occur"}]}`,
		eventOf("arrival_scan", "2026-06-11T11:30:00-04:00", `,"event_id":"e3","corrects":"e2"`)))
	r.do("POST", ingest, "token-of-all", `{"otep_version":"0.1","profile":"parcel","subject":{"tracking_number":"SR123456789"},"estimated_delivery_at":"2027-06-12T12:00:00Z","events":[]}`)
	want := []string{"event.recorded SR123456789 e1", "event.recorded SR123456789 e2", "event.corrected SR123456789 e2", "event.recorded SR123456789 e3", "event.withdrawn SR123456789 e1", "estimate.changed SR123456789"}
	lines, g = r.changed("after="+began, admin)
	require.ElementsMatch(t, want, lines)
	require.Less(t, slices.Index(lines, want[2]), slices.Index(lines, want[3]), "the event that takes the place of another one follows")
	require.Equal(t, false, g.json["more"])
	list := g.json["changes"].([]any)
	e := list[0]
	require.Equal(t, "to <the> owner", dig(e, "event", "message"))
	require.Contains(t, string(g.body), "to <the> owner", "nothing is escaped for HTML")
	require.Equal(t, "In transit", dig(e, "event", "status_label"))
	require.Equal(t, "all", dig(e, "event", "source", "provider"))
	require.Nil(t, dig(e, "package_tracking_number"))
	require.NotContains(t, dig(e, "event"), "withdrawn")
	corrected := list[slices.Index(lines, want[2])]
	require.Equal(t, "e3", dig(corrected, "event", "withdrawn", "corrected_by"))
	require.Equal(t, "all", dig(corrected, "event", "withdrawn", "by"))
	taken := list[slices.Index(lines, want[4])]
	require.Equal(t, "did_not_occur", dig(taken, "event", "withdrawn", "reason"))
	require.Nil(t, dig(taken, "event", "withdrawn", "corrected_by"))
	require.Equal(t, "2027-06-12T12:00:00Z", dig(list[slices.Index(lines, want[5])], "estimated_delivery_at"))
	require.Nil(t, dig(list[slices.Index(lines, want[5])], "event"))
	at, err := time.Parse(time.RFC3339Nano, dig(e, "recorded_at").(string))
	require.NoError(t, err)
	require.WithinDuration(t, time.Now(), at, time.Minute)

	var one []string // page by page, by next and by the cursor of the last change
	for next, n := began, 0; ; n++ {
		part, g := r.changed("limit=1&after="+next, admin)
		one = append(one, part...)
		if next = g.json["next"].(string); n%2 == 1 && len(part) > 0 {
			next = dig(g.json, "changes", 0, "cursor").(string)
		}
		if g.json["more"] == false {
			break
		}
		require.Len(t, part, 1)
	}
	require.Equal(t, lines, one)
	all, _ := r.changed("limit=1000", admin)
	require.Equal(t, lines, all[len(all)-len(lines):], "without a cursor it begins with the oldest")
	german, _ := r.changed("after="+began, admin, "Accept-Language", "de")
	require.Equal(t, lines, german)
	require.NotEqual(t, "In transit", dig(r.do("GET", changes+"?after="+began, admin, "", "Accept-Language", "de").json, "changes", 0, "event", "status_label"))
	packed := r.do("GET", changes+"?limit=1000", admin, "", "Accept-Encoding", "gzip")
	require.Equal(t, "gzip", packed.header("Content-Encoding"))
}

func TestAFeedHasWhatItsReaderOwns(t *testing.T) {
	t.Parallel()
	r := feedRig(t)
	tokens := r.w.Tokens
	began := r.end(tokens[cloud.ClientAdmin])
	r.add("SR123456789", "e1") // of the provider
	r.add("SR2", "e2")         // of none
	r.add("SR104", "e3")       // of a customer's order
	r.add("SR123456789", "e4")
	own, mine := []string{"event.recorded SR123456789 e1", "event.recorded SR123456789 e4"}, []string{"event.recorded SR104 e3"}
	all := []string{own[0], "event.recorded SR2 e2", mine[0], own[1]}
	for name, c := range map[string]struct {
		token string
		want  []string
	}{
		"admin": {tokens[cloud.ClientAdmin], all}, "provider": {tokens[cloud.ProviderType], own}, "provider of everything": {"token-of-all", all},
		"customer": {tokens[cloud.Customer], mine},
	} {
		lines, g := r.changed("after="+began, c.token)
		require.Equal(t, c.want, lines, name)
		require.Equal(t, false, g.json["more"], name)
		var one []string
		for next, more := began, true; more; {
			var part []string
			part, g = r.changed("limit=1&after="+next, c.token)
			one = append(one, part...)
			next, more = g.json["next"].(string), g.json["more"] == true
		}
		require.Equal(t, c.want, one, name)
	}
	for _, token := range r.w.Others { // the other business has nothing, and the cursor is not its
		g := r.do("GET", changes+"?limit=1000", token, "")
		require.NotContains(t, string(g.body), "SR123456789")
		require.NotContains(t, string(g.body), "SR104")
		if g.status == 200 {
			r.refused(r.do("GET", changes+"?after="+began, token, ""), 422, "OTEP_INVALID_REQUEST")
		}
	}
	r.refused(r.do("GET", changes, "", ""), 401, "OTEP_CREDENTIALS_REQUIRED")
	r.refused(r.do("GET", changes, r.w.Expired, ""), 401, "OTEP_CREDENTIALS_REQUIRED")
	r.refused(r.do("GET", changes, tokens[cloud.ClientEmployee], ""), 403, "FORBIDDEN")
	for _, typ := range []cloud.AccountType{cloud.DriverAccount, cloud.Broker, cloud.PlatformAdmin} {
		r.refused(r.do("GET", changes, tokens[typ], ""), 403, "OTEP_PROVIDER_FORBIDDEN")
		r.refused(r.do("GET", changes, tokens[typ], "", "Accept", "text/event-stream"), 403, "OTEP_PROVIDER_FORBIDDEN")
	}
}

func TestCursorsOfAFeed(t *testing.T) {
	t.Parallel()
	r := feedRig(t)
	admin := r.w.Tokens[cloud.ClientAdmin]
	good := r.end(admin)
	for _, bad := range []string{"x", "AAAA", "%00", good + "A", good[1:], good[:len(good)-2], strings.ToLower(good) + "_", strings.Repeat("A", 4000)} {
		g := r.do("GET", changes+"?after="+bad, admin, "")
		if g.status == 400 {
			require.Equal(t, "BAD_REQUEST", g.code(), bad)
			continue
		}
		r.refused(g, 422, "OTEP_INVALID_REQUEST")
		require.Contains(t, fmt.Sprint(dig(g.json, "errors", "after")), "next of an answer", bad)
	}
	for _, query := range []string{"limit=0", "limit=1001", "limit=x", "wait=31", "wait=-1"} {
		r.refused(r.do("GET", changes+"?"+query, admin, ""), 422, "VALIDATION_FAILED")
	}
	g := r.do("GET", changes, admin, "", "Accept", "text/event-stream", "Last-Event-ID", "x")
	r.refused(g, 422, "OTEP_INVALID_REQUEST")
	require.NotEmpty(t, dig(g.json, "errors", "Last-Event-ID"))
	old := expiredCursor(t, good)
	r.refused(r.do("GET", changes+"?after="+old, admin, ""), 410, "CURSOR_EXPIRED")
	r.refused(r.do("GET", changes, admin, "", "Accept", "text/event-stream", "Last-Event-ID", old), 410, "CURSOR_EXPIRED")
}

func TestWaitingForChanges(t *testing.T) {
	t.Parallel()
	r := feedRig(t)
	admin := r.w.Tokens[cloud.ClientAdmin]
	began := r.end(admin)
	start := time.Now()
	lines, g := r.changed("wait=1&after="+began, admin)
	require.Empty(t, lines)
	require.InDelta(t, 1, time.Since(start).Seconds(), 0.9)
	require.GreaterOrEqual(t, time.Since(start), time.Second)
	next := g.json["next"].(string)

	type answer struct {
		lines []string
		at    time.Time
	}
	wait := func(token, after string) <-chan answer {
		out := make(chan answer, 1)
		go func() {
			lines, _ := r.changed("wait=20&after="+after, token)
			out <- answer{lines, time.Now()}
		}()
		return out
	}
	one, two, other := wait(admin, began), wait(r.w.Tokens[cloud.ProviderType], next), wait(r.w.Tokens[cloud.Customer], next)
	time.Sleep(100 * time.Millisecond)
	r.add("SR2", "for staff alone")
	a := <-one
	require.Equal(t, []string{"event.recorded SR2 for staff alone"}, a.lines)
	r.add("SR123456789", "for the provider")
	committed := time.Now()
	a = <-two
	require.Equal(t, []string{"event.recorded SR123456789 for the provider"}, a.lines)
	require.Less(t, a.at.Sub(committed), time.Second)
	r.add("SR104", "for the customer")
	require.Equal(t, []string{"event.recorded SR104 for the customer"}, (<-other).lines)

	ended := make(chan int, 21)
	after := r.end(admin)
	for range 21 {
		go func() { ended <- r.do("GET", changes+"?wait=20&after="+after, admin, "").status }()
	}
	require.Equal(t, 429, <-ended, "one of them is one too many")
	r.add("SR2", "goes on")
	for range 20 {
		require.Equal(t, 200, <-ended)
	}
	g = r.do("GET", changes+"?wait=1&after="+r.end(admin), admin, "")
	require.Equal(t, 200, g.status, "those that ended count no more")
}

// eventStream is an open event stream.
type eventStream struct {
	t    testing.TB
	conn net.Conn
	in   *bufio.Reader
	head string
}

func (r *rig) stream(token string, headers ...string) *eventStream {
	r.t.Helper()
	conn, err := r.ln.Dial()
	require.NoError(r.t, err)
	text := "GET " + changes + " HTTP/1.1\r\nHost: cloud.test\r\nAuthorization: Bearer " + token + "\r\nAccept: text/event-stream\r\n"
	for i := 0; i < len(headers); i += 2 {
		text += headers[i] + ": " + headers[i+1] + "\r\n"
	}
	_, err = conn.Write([]byte(text + "\r\n"))
	require.NoError(r.t, err)
	s := &eventStream{t: r.t, conn: conn, in: bufio.NewReader(conn)}
	s.head = s.block()
	return s
}

// block reads until an empty line.
func (s *eventStream) block() string {
	s.t.Helper()
	require.NoError(s.t, s.conn.SetReadDeadline(time.Now().Add(20*time.Second)))
	var b strings.Builder
	for {
		line, err := s.in.ReadString('\n')
		if err != nil {
			return b.String() + "EOF"
		}
		if line = strings.TrimRight(line, "\r\n"); line == "" {
			return b.String()
		}
		b.WriteString(line + "\n")
	}
}

// event is the next one, as its id and its kind with its data.
func (s *eventStream) event() (id, text string) {
	s.t.Helper()
	for {
		b := s.block()
		if strings.HasPrefix(b, "retry:") || strings.HasPrefix(b, ":") {
			continue
		}
		lines := strings.SplitN(strings.TrimSuffix(b, "\n"), "\n", 3)
		require.Len(s.t, lines, 3, "%q", b)
		return strings.TrimPrefix(lines[0], "id: "), strings.TrimPrefix(lines[1], "event: ") + " " + strings.TrimPrefix(lines[2], "data: ")
	}
}

func TestChangesAsAStream(t *testing.T) {
	t.Parallel()
	r := feedRig(t)
	admin := r.w.Tokens[cloud.ClientAdmin]
	began := r.end(admin)
	s := r.stream(admin, "Last-Event-ID", began)
	require.Contains(t, s.head, "200 OK")
	require.Contains(t, s.head, "Content-Type: text/event-stream")
	require.Contains(t, s.head, "X-Request-Id: ")
	r.add("SR2", "e1")
	r.add("SR123456789", "e2")
	first, text := s.event()
	require.Contains(t, text, `event.recorded {"cursor":"`+first+`","kind":"event.recorded","recorded_at":"`)
	require.Contains(t, text, `"event_id":"e1"`)
	_, text = s.event()
	require.Contains(t, text, `"event_id":"e2"`)
	require.NoError(t, s.conn.Close())

	r.add("SR2", "e3")
	s = r.stream(admin, "Last-Event-ID", first) // it was cut, and goes on behind what it knows
	for _, id := range []string{"e2", "e3"} {
		_, text = s.event()
		require.Contains(t, text, `"event_id":"`+id+`"`)
	}
	lines, _ := r.changed("after="+first, admin)
	require.Len(t, lines, 2, "ids are cursors")

	own := r.stream(r.provider(), "Last-Event-ID", began)
	_, text = own.event()
	require.Contains(t, text, `"event_id":"e2"`)
	r.add("SR2", "e4")
	r.add("SR123456789", "e5")
	_, text = own.event()
	require.Contains(t, text, `"event_id":"e5"`)
	require.NotContains(t, text, "e4")
	require.NoError(t, own.conn.Close())
	require.NoError(t, s.conn.Close())

	head := r.do("HEAD", changes, admin, "", "Accept", "text/event-stream")
	require.Equal(t, 200, head.status)
	require.Equal(t, "text/event-stream", head.header("Content-Type"))
}

// Streams count as readers that wait, and end with the rights of their token and with the
// server.
func TestStreamsAreBounded(t *testing.T) {
	t.Parallel()
	r := feedRig(t)
	token := r.provider()
	began := r.end(token)
	var open []*eventStream
	for range 20 {
		open = append(open, r.stream(token, "Last-Event-ID", began))
	}
	require.Contains(t, r.stream(token).head, "429 Too Many Requests")
	for _, s := range open[:10] {
		require.NoError(t, s.conn.Close())
	}
	require.Eventually(t, func() bool {
		s := r.stream(token, "Last-Event-ID", began)
		defer s.conn.Close()
		return strings.Contains(s.head, "200 OK")
	}, 5*time.Second, 20*time.Millisecond)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	require.NoError(t, r.s.Shutdown(ctx))
	for open[10].block() != "EOF" {
	}
}

// expiredCursor is a cursor with the time of one that is as old as changes are kept.
func expiredCursor(t *testing.T, text string) string {
	raw, err := base64.RawURLEncoding.DecodeString(text)
	require.NoError(t, err)
	raw = raw[:len(raw)-crc32.Size]
	out, values := []byte(nil), 0
	for len(raw) > 0 {
		v, n := binary.Varint(raw)
		require.Positive(t, n)
		if values++; values == 6 {
			require.InDelta(t, time.Now().UnixMilli(), v, float64(time.Minute.Milliseconds()))
			v -= cloud.FeedLife.Milliseconds() + 1
		}
		out, raw = binary.AppendVarint(out, v), raw[n:]
	}
	require.Equal(t, 6, values)
	return base64.RawURLEncoding.EncodeToString(binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(out)))
}
