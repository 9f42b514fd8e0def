package e2e

import (
	"context"
	"io"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	fields "github.com/postern-io/postern/cloud/check"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/cloud/server"
	"github.com/postern-io/postern/edge"
	"github.com/postern-io/postern/edge/scanner"
	simboard "github.com/postern-io/postern/firmware-sim/board"
	"github.com/postern-io/postern/internal/ring"
	"github.com/postern-io/postern/protocol/otep"
	"github.com/postern-io/postern/protocol/wire"
)

// post is a device without doors, at which labels are scanned. It does not run yet.
func (w *world) post(code string, scanners ...scanner.Config) (*cabinet, *scanned) {
	results := &scanned{}
	return &cabinet{w: w, code: code, dir: filepath.Join(w.dir, code), stays: map[uint]bool{}, scanners: scanners, scanned: results.add}, results
}

// scanned are the results that a post has shown.
type scanned struct {
	mu  sync.Mutex
	all []scanner.Result
}

func (s *scanned) add(r scanner.Result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, r)
}

func (s *scanned) outcomes() (out []scanner.Outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.all {
		out = append(out, r.Outcome)
	}
	return out
}

// received are the moments of a parcel's events of its reception, and their places, types and sources.
func (w *world) received(number string) (at []time.Time, places []string) {
	timeline, err := w.cloud.Store.FindTimeline(context.Background(), number, nil)
	events := timeline.Events
	require.NoError(w.t, err)
	for _, e := range events {
		if e.Event.StatusCode == otep.Received {
			at, places = append(at, e.Event.OccurredAt.Time), append(places, e.Event.Location.Name+", "+e.Event.Location.Type+", by "+e.Event.Source.Type)
		}
	}
	return at, places
}

// scans are the scan records that a device's store holds.
func (c *cabinet) scans() (out []wire.Scan) {
	run, err := c.agent.Store().Read(wire.Telemetry, 1, 1000, 1<<20)
	require.NoError(c.w.t, err)
	for _, raw := range run.Records {
		var r wire.Record
		require.NoError(c.w.t, wire.Decode(raw, &r))
		if r.Kind == wire.KindScan {
			var scan wire.Scan
			require.NoError(c.w.t, wire.Decode(r.Body, &scan))
			out = append(out, scan)
		}
	}
	return out
}

// A hand terminal over TCP at a warehouse post without doors: a scan while the
// network is cut is one event on the parcel's timeline, at its own time, also when
// it was scanned twice and the agent was killed before it could send; the parcel is
// named by its SSCC. The terminal goes and comes back, and a code of a cabinet
// leaves no trace.
func TestAScanAtAWarehousePost(t *testing.T) {
	if !ring.Check() {
		t.Skip("real time: in check")
	}
	t.Parallel()
	const sscc = "340123450000000017"
	w := newWorld(t, 1, 1, server.SandboxDevice{Code: "POST-1", Name: "Hall 2", Type: cloud.TypeScanPost})
	defer w.close()
	w.create("R-1", 0, "PK-1")
	require.NoError(t, w.cloud.Store.Decide(t.Context(), 0, func(v cloud.View) (*cloud.Changes, error) {
		x, err := v.ShipmentByNumber("PK-1")
		x.SSCC = sscc
		return &cloud.Changes{TrackingChanges: cloud.TrackingChanges{Shipments: []cloud.Shipment{x}}}, err
	}))
	terminal, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer terminal.Close()
	dock, err := net.Listen("tcp", "127.0.0.1:0") // of a scanner that keeps its scans
	require.NoError(t, err)
	defer dock.Close()
	columns, err := scanner.ParseBatch([]string{"code", "DD/MM/YYYY", "HH:mm:ss"}, "", "UTC")
	require.NoError(t, err)
	c, shown := w.post("POST-1", scanner.Config{Name: "dock", Port: "tcp://" + terminal.Addr().String(), Use: scanner.UseLabels, Post: "Dock 3", Step: otep.Received},
		scanner.Config{Name: "hand", Port: "tcp://" + dock.Addr().String(), Use: scanner.UseLabels, Post: "Yard", Step: otep.Received, Batch: columns})
	c.start()
	defer func() { c.halt(); c.drop() }()
	w.awaits("the post is online", time.Minute, func() bool {
		return c.agent.Link().Connected() && w.cloud.Devices.Online(c.code) && c.agent.Now().Clock == wire.ClockSynced
	})
	w.awaits("it has the configuration of a post", time.Minute, func() bool { return c.agent.Loop().State().Config.Version == 1 })
	require.Empty(t, c.agent.Loop().State().Config.Layout)
	accept := func(l net.Listener) net.Conn {
		conn, err := l.Accept()
		require.NoError(t, err)
		return conn
	}
	plug := func() net.Conn { return accept(terminal) }
	send := func(to net.Conn, text string, want ...scanner.Outcome) {
		t.Helper()
		before := len(shown.outcomes())
		_, err := io.WriteString(to, text)
		require.NoError(t, err)
		w.awaits("shown", 10*time.Second, func() bool { return len(shown.outcomes()) >= before+len(want) })
		require.Equal(t, want, shown.outcomes()[before:])
	}
	hand := plug()
	accept(dock)
	c.setCut(true)
	began := time.Now()
	send(hand, "]C100"+sscc+"\r\n]C100"+sscc+"400PO1\r\nPU:CAB-1:482913\r\n", scanner.Accepted, scanner.Repeated, scanner.Refused)
	ended := time.Now()
	require.NoError(t, hand.Close())
	hand = plug()
	send(hand, "\xff\xfe\x00]rubbish\x07\r", scanner.Unreadable)
	c.kill()
	c.cut.Store(false)
	time.Sleep(time.Second)
	c.start()
	hand = plug()
	docked := accept(dock)
	w.awaits("one event", time.Minute, func() bool { at, _ := w.received("PK-1"); return len(at) > 0 })
	at, places := w.received("PK-1")
	require.Len(t, at, 1)
	require.WithinRange(t, at[0], began.Add(-time.Second), ended.Add(time.Second), "its own time")
	require.Equal(t, []string{"Dock 3, warehouse, by warehouse"}, places)
	w.awaits("nothing waits", time.Minute, func() bool { b := c.agent.Store().Backlog(); return b == [2]uint64{} })
	at, _ = w.received("PK-1")
	require.Len(t, at, 1)

	c.setCut(true)
	send(hand, "PK-1\r]C100340123450000000018\r\xff\x01rubbish\r12345678\r", scanner.Accepted, scanner.Unreadable, scanner.Unreadable, scanner.Refused)
	require.Subset(t, rawOf(c.scans()), []string{"\xff\xfe\x00]rubbish\x07", "PK-1", "]C100340123450000000018", "\xff\x01rubbish"}, "rubbish is kept as it came")
	require.NotContains(t, strings.Join(rawOf(c.scans()), " "), "482913")
	c.cut.Store(false)
	w.awaits("the second event", time.Minute, func() bool { at, _ := w.received("PK-1"); return len(at) == 2 })

	// The scans of yesterday come when their scanner is docked, at their own times, and once.
	yesterday := time.Now().UTC().AddDate(0, 0, -1).Truncate(time.Second)
	lines := "PK-1," + yesterday.Format("02/01/2006,15:04:05") + "\r\n]C100" + sscc + "," + yesterday.Add(time.Hour).Format("02/01/2006,15:04:05") + "\r\n"
	send(docked, lines, scanner.Accepted, scanner.Accepted)
	w.awaits("both", time.Minute, func() bool { at, _ := w.received("PK-1"); return len(at) == 4 })
	c.kill()
	c.start()
	docked = accept(dock)
	send(docked, lines, scanner.Accepted, scanner.Accepted)
	w.awaits("nothing waits", time.Minute, func() bool { b := c.agent.Store().Backlog(); return b == [2]uint64{} })
	at, places = w.received("PK-1")
	require.Len(t, at, 4)
	require.Subset(t, at, []time.Time{yesterday, yesterday.Add(time.Hour)})
	require.Subset(t, places, []string{"Yard, warehouse, by warehouse"})

	// What is made in the console reaches it as the next configuration; one with doors does not
	// take the former one's place.
	id := w.box.Devices[1].DeviceID
	edited, err := w.cloud.Lockers.EditDevice(t.Context(), w.staff, locker.DeviceEdit{Device: id, Hours: &[]fields.HoursInput{{Day: new(1), Open: "06:00", Close: "22:00"}}})
	require.NoError(t, err)
	w.awaits("its hours", time.Minute, func() bool {
		conf := c.agent.Loop().State().Config
		return conf.Version == edited.Device.ConfigVersion && len(conf.Hours) == 1
	})
	require.NoError(t, w.cloud.Store.Decide(t.Context(), id, func(v cloud.View) (*cloud.Changes, error) {
		d, err := v.Device(id)
		if err != nil {
			return nil, err
		}
		var conf wire.Config
		if err := wire.Decode(d.Config, &conf); err != nil {
			return nil, err
		}
		conf.Version++
		conf.Layout = []wire.LayoutDoor{{Door: 1, Board: "A", Channel: 1, Size: "M"}}
		d.Config, d.ConfigVersion = wire.MustEncode(conf), conf.Version
		return &cloud.Changes{DeviceChanges: cloud.DeviceChanges{Devices: []cloud.Device{d}}}, nil
	}))
	c.agent.Link().Again() // a connection brings what is newer
	w.awaits("it is refused", time.Minute, func() bool {
		out, err := w.cloud.Lockers.FindDevice(t.Context(), w.staff, id)
		require.NoError(t, err)
		return slices.ContainsFunc(out.Device.Exceptions, func(x locker.DeviceExceptionBody) bool {
			return x.Type == cloud.DevConfigRefused && strings.Contains(x.Detail, "a warehouse post has no doors")
		})
	})
	require.Equal(t, edited.Device.ConfigVersion, c.agent.Loop().State().Config.Version)
}

func rawOf(scans []wire.Scan) (out []string) {
	for _, s := range scans {
		out = append(out, string(s.Raw))
	}
	return out
}

// A serial scanner of codes at a cabinet, at a real pseudo-terminal: the code opens
// the door as at the page, and nothing of it is kept.
func TestAScannerOfCodesOpensTheDoor(t *testing.T) {
	if !ring.Check() {
		t.Skip("real time: in check")
	}
	t.Parallel()
	pty, err := simboard.OpenPTY()
	if err != nil {
		t.Skipf("no pseudo-terminals here: %v", err)
	}
	defer pty.Close()
	w := newWorld(t, 1, 1)
	defer w.close()
	c, results := w.cabinets[0], &scanned{}
	c.halt()
	c.scanners, c.scanned = []scanner.Config{{Name: "codes", Port: pty.Path, Use: scanner.UseCodes}}, results.add
	c.start()
	w.ready(c)
	code, door := w.deposited(c, "R-1")
	w.awaits("the code is known", time.Minute, func() bool { return len(c.agent.Loop().State().Codes) > 0 })
	c.drained()
	c.setCut(true)
	_, err = io.WriteString(pty, "482913\rPU:CAB-1:"+code+"\r\n")
	require.NoError(t, err)
	w.awaits("both tried", time.Minute, func() bool { return len(results.outcomes()) == 2 })
	results.mu.Lock()
	require.Error(t, results.all[0].Err, "a scanner reads the symbol, as at the page")
	require.NoError(t, results.all[1].Err)
	require.Equal(t, wire.CodeOK, results.all[1].Answer.Outcome)
	results.mu.Unlock()
	w.awaits("the door opens", time.Minute, func() bool { return c.agent.Loop().State().Doors[edge.DoorNumber(door)].Open })
	require.NoError(t, c.sim.CloseDoor(door))
	require.Empty(t, c.scans())
	c.cut.Store(false)
}
