package page_test

import (
	"bufio"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/auth"
	"github.com/postern-io/postern/cloud/locale"
	"github.com/postern-io/postern/cloud/page"
	"github.com/postern-io/postern/cloud/webtest"
)

// crowd are browsers that read what they are sent.
type crowd struct {
	b     *testing.B
	r     *rig
	heard chan time.Time
	bytes atomic.Int64
}

// join opens a stream with cookies and reads it.
func (c *crowd) join(ticket string, cookies map[string]string) {
	c.b.Helper()
	conn, err := c.r.ln.Dial()
	require.NoError(c.b, err)
	c.b.Cleanup(func() { _ = conn.Close() })
	ask := "GET /live?t=" + ticket + " HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n"
	for name, value := range cookies {
		ask += "Cookie: " + name + "=" + value + "\r\n"
	}
	_, err = conn.Write([]byte(ask + "\r\n"))
	require.NoError(c.b, err)
	in := bufio.NewReaderSize(conn, 512)
	var head fasthttp.ResponseHeader
	require.NoError(c.b, head.Read(bufio.NewReaderSize(in, 4096)))
	require.Equal(c.b, 200, head.StatusCode())
	go func() {
		n := 0
		for {
			line, err := in.ReadSlice('\n')
			if err != nil && err != bufio.ErrBufferFull {
				return
			}
			if n > 0 || strings.HasPrefix(string(line[:min(len(line), 16)]), "data: {") {
				if n += len(line); err == nil {
					c.bytes.Add(int64(n))
					c.heard <- time.Now()
					n = 0
				}
			}
		}
	}()
}

// cpu is what the process has used.
func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkWatchersOfAParcel is a change of a parcel that 10,000 visitors look at, in six
// languages and at two levels, until the last has it: one read and twelve renderings.
// Their browsers run in the same process.
func BenchmarkWatchersOfAParcel(b *testing.B) {
	const n = 10_000
	r := newRig(b, nil)
	c := &crowd{b: b, r: r, heard: make(chan time.Time, 4*n)}
	var tickets []string
	key := linkKey.OfShipment(shipmentOf(b, r, webtest.Waiting), 0)
	for _, l := range locale.All() {
		for _, proof := range []string{"", key} {
			v := newRigAt(r)
			v.cookies["postern_lang"] = l.Code
			if proof != "" {
				v.cookies["postern_parcel"] = proof
			}
			tickets = append(tickets, v.ticket("/track/"+webtest.Waiting))
		}
	}
	for i := range n {
		c.join(tickets[i%len(tickets)], nil)
	}
	settle(c.heard)
	used, at := cpu(), time.Now()
	time.Sleep(6 * time.Second)
	idle := 100 * float64(cpu()-used) / float64(time.Since(at))
	var all []time.Duration
	before, bytes, changes := r.f.pages.Live(), c.bytes.Load(), 0
	for b.Loop() {
		time.Sleep(250 * time.Millisecond) // the pace of the topic
		changes++
		start := time.Now()
		r.w.Write(b, cloud.Changes{DeviceChanges: cloud.DeviceChanges{Sessions: []cloud.Session{{DeviceID: 88, Generation: int64(changes + 5), Node: "test", Online: changes%2 == 0, LastSeenAt: start.UTC(), ConnectedAt: start.UTC()}}}})
		for range n {
			all = append(all, (<-c.heard).Sub(start))
		}
	}
	after := r.f.pages.Live()
	slices.Sort(all)
	b.ReportMetric(idle, "%core-idle")
	b.ReportMetric(float64(after.Reads-before.Reads)/float64(changes), "reads/change")
	b.ReportMetric(float64(after.Renders-before.Renders)/float64(changes), "renders/change")
	b.ReportMetric(float64(all[len(all)*99/100].Milliseconds()), "ms-p99")
	b.ReportMetric(float64(c.bytes.Load()-bytes)/float64(changes)/n/1024, "KB/reader")
}

// settle waits until nothing has been heard for a second.
func settle(heard <-chan time.Time) {
	for {
		select {
		case <-heard:
		case <-time.After(time.Second):
			return
		}
	}
}

// BenchmarkBoards is 256 home pages of 100 businesses while 100 doors a second move: what
// that takes of a core beyond the writes themselves. Their browsers run in the same
// process.
func BenchmarkBoards(b *testing.B) {
	const businesses, boards = 100, 256
	r := newRig(b, func(c *page.Config) {})
	now := time.Now().UTC()
	var ch cloud.Changes
	tokens := make([]string, businesses)
	for i := range businesses {
		id := 1000 + i
		tokens[i] = auth.NewToken()
		ch.Businesses = append(ch.Businesses, cloud.Business{ID: cloud.BusinessID(id), Code: fmt.Sprint("b", id), Name: fmt.Sprint("Business ", id), Timezone: "America/Toronto"})
		ch.Accounts = append(ch.Accounts, cloud.Account{ID: cloud.AccountID(id), BusinessID: cloud.BusinessID(id), Type: cloud.ClientAdmin, Name: "Admin", Email: fmt.Sprintf("a@%d.example", id), Enabled: true, CreatedAt: now})
		ch.Tokens = append(ch.Tokens, cloud.Token{Hash: auth.Hash(tokens[i]), AccountID: cloud.AccountID(id), Name: "console", CreatedAt: now, ExpiresAt: now.Add(time.Hour)})
		d := cloud.DeviceID(id)
		ch.Devices = append(ch.Devices, cloud.Device{ID: d, BusinessID: cloud.BusinessID(id), Code: fmt.Sprint("D-", id), Name: "Lobby", CreatedAt: now})
		ch.Sessions = append(ch.Sessions, cloud.Session{DeviceID: d, Generation: 1, Online: true, Node: "test", ConnectedAt: now, LastSeenAt: now})
		for k := range 12 {
			ch.Compartments = append(ch.Compartments, cloud.Compartment{DeviceID: d, GridID: cloud.GridID(id*100 + k), Door: uint(k + 1), ShelfCode: "A", GridCode: fmt.Sprintf("A%02d", k+1), Size: "M", Column: k/6 + 1, Row: k%6 + 1, State: cloud.GridFree, DoorStatus: "closed"})
		}
	}
	r.w.Write(b, ch)
	door := func(n int) {
		r.w.Write(b, cloud.Changes{LockerChanges: cloud.LockerChanges{Doors: []cloud.DoorPresent{{DeviceID: cloud.DeviceID(1000 + n*37%businesses), Door: uint(n/businesses%12 + 1), DoorStatus: []string{"open", "closed"}[n/businesses/12%2]}}}})
	}
	second := func(n *int) time.Duration {
		used, next := cpu(), time.NewTicker(10*time.Millisecond)
		defer next.Stop()
		for range 100 {
			<-next.C
			door(*n)
			*n++
		}
		return cpu() - used
	}
	n, alone := 0, time.Duration(0)
	for range 3 {
		alone += second(&n)
	}
	alone /= 3
	c := &crowd{b: b, r: r, heard: make(chan time.Time, 1<<16)}
	for i := range boards {
		v := newRigAt(r)
		v.cookies["postern_session"] = tokens[i%businesses]
		c.join(v.ticket("/console"), v.cookies)
	}
	settle(c.heard)
	before, used, seconds := r.f.pages.Live(), time.Duration(0), 0
	for b.Loop() {
		seconds++
		used += second(&n)
		for len(c.heard) > 0 {
			<-c.heard
		}
	}
	after := r.f.pages.Live()
	b.ReportMetric((used.Seconds()-alone.Seconds()*float64(seconds))/float64(seconds), "cores")
	b.ReportMetric(float64(after.Reads-before.Reads)/float64(seconds), "reads/s")
	b.ReportMetric(float64(after.Events-before.Events)/float64(seconds), "events/s")
}
