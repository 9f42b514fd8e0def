package e2e

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"html"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/device"
	"github.com/postern-io/postern/internal/ring"
	"github.com/postern-io/postern/protocol/wire"
)

var update = flag.Bool("update", false, "draw the pictures of the documentation anew")

const picture = "../../docs/pictures/parcel.svg"

// The picture of the README is drawn from a parcel that goes through a board, an
// agent, a broker, a cloud and an endpoint, twice without a network.
func TestThePictureShowsWhatAParcelDoes(t *testing.T) {
	ring.SkipUnlessCheck(t, "the same rules by the seeds of the quick ring")
	story(t, func(t *testing.T, w *world, c *cabinet) {
		const number = "PARCEL-1"
		var rows []pictureRow
		var from time.Time
		phase := func(title, detail string, cut bool, act func()) {
			from = time.Now()
			c.setCut(cut)
			act()
			rows = append(rows, pictureRow{title: title, detail: detail, cut: cut, from: from, to: time.Now()})
		}
		var out struct {
			door uint
			code string
		}
		phase("Connected", "an app opens a door", false, func() {
			o := w.begin("REF-1", number)
			out.door, out.code = o.Opening.Compartments[0].Door, *o.PickupCode
			time.Sleep(10 * time.Second)
		})
		phase("No network", "the courier closes the door", true, func() {
			require.NoError(t, c.sim.CloseDoor(out.door))
			time.Sleep(30 * time.Second)
			require.Equal(t, cloud.DeliveryDoorsOpened, w.find("REF-1").Status)
			require.NotZero(t, c.agent.Store().Backlog()[0], "the cabinet has settled by itself")
		})
		phase("Connected again", "the cloud gets the records", false, func() {
			w.delivered("REF-1")
			time.Sleep(10 * time.Second)
		})
		phase("No network", "the recipient types the code", true, func() {
			require.Equal(t, wire.CodeOK, c.try(out.code).Outcome)
			time.Sleep(10 * time.Second)
			require.NoError(t, c.sim.CloseDoor(out.door))
			time.Sleep(30 * time.Second)
			require.Equal(t, cloud.DeliveryDelivered, w.find("REF-1").Status)
		})
		phase("Connected again", "the cloud gets the records", false, func() {
			w.awaits("picked up", 5*time.Minute, func() bool { return w.find("REF-1").Status == cloud.DeliveryPickedUp })
			c.drained()
			time.Sleep(10 * time.Second)
		})
		for i := range rows {
			rows[i].fill(t, w, number)
		}
		got := drawn(t, rows)
		if *update {
			require.NoError(t, os.WriteFile(picture, []byte(got), 0o644))
		}
		want, err := os.ReadFile(picture)
		require.NoError(t, err)
		require.Equal(t, string(want), got, "go test ./cmd/e2e -run ThePicture -update draws it anew")
	})
}

// pictureRow is one phase of the parcel's day and what each side wrote in it.
type pictureRow struct {
	title, detail            string
	cut                      bool
	from, to                 time.Time
	cabinet, timeline, calls []string
}

// fill reads the cloud's journal, the parcel's timeline and the endpoint's
// requests: records by the time of their making, events by that of their storing.
func (r *pictureRow) fill(t *testing.T, w *world, number string) {
	in := func(at time.Time) bool { return !at.Before(r.from) && at.Before(r.to) }
	batches, err := w.cloud.Store.JournalAfter(context.Background(), 0, 10000)
	require.NoError(t, err)
	var records []wire.Record
	for _, b := range batches {
		raw, err := device.JournalRecords(b.JournalBatch)
		require.NoError(t, err)
		for _, x := range raw {
			rec, err := wire.DecodeRecord(x)
			require.NoError(t, err)
			if in(time.Unix(0, rec.At)) && slices.Contains(shown, rec.Kind) {
				records = append(records, rec)
			}
		}
	}
	slices.SortFunc(records, func(a, b wire.Record) int { return cmp.Compare(a.Mono, b.Mono) })
	for _, x := range slices.CompactFunc(records, func(a, b wire.Record) bool { return a.Mono == b.Mono }) {
		r.cabinet = append(r.cabinet, x.Kind.String())
	}
	timeline, err := w.cloud.Store.FindTimeline(context.Background(), number, nil)
	events := timeline.Events
	require.NoError(t, err)
	for _, e := range events {
		if in(e.Event.RecordedAt.Time) {
			r.timeline = append(r.timeline, string(e.Event.StatusCode))
		}
	}
	for _, x := range w.hooks.all() {
		var body struct{ Event string }
		require.NoError(t, json.Unmarshal([]byte(x.Body), &body))
		if in(x.At) {
			r.calls = append(r.calls, body.Event)
		}
	}
}

// shown are the kinds of records that the picture shows.
var shown = []wire.Kind{wire.KindOpeningStarted, wire.KindDoorOpened, wire.KindDoorClosed, wire.KindOpeningSettled, wire.KindPickupCompleted}

// drawn is the picture: a row for each phase, a column for each side.
func drawn(t *testing.T, rows []pictureRow) string {
	const width, line, head, letter = 980, 20, 56, 8
	columns := []struct {
		x    int
		name string
	}{{24, "phase"}, {270, "records of the cabinet"}, {490, "events of the timeline"}, {716, "webhooks to the partner"}}
	var b strings.Builder
	text := func(x, y int, style, s string) {
		room := width
		for _, c := range columns {
			if c.x > x {
				room = min(room, c.x)
			}
		}
		require.LessOrEqual(t, x+len(s)*letter, room, "%q reaches into the next column", s)
		fmt.Fprintf(&b, "<text x=\"%d\" y=\"%d\" class=\"%s\">%s</text>\n", x, y, style, html.EscapeString(s))
	}
	height := head
	heights := make([]int, len(rows))
	for i, r := range rows {
		heights[i] = 28 + line*max(2, len(r.cabinet), len(r.timeline), len(r.calls))
		height += heights[i]
	}
	fmt.Fprintf(&b, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" font-family=\"system-ui, sans-serif\" font-size=\"14\" role=\"img\">\n", width, height+12)
	b.WriteString("<title>One parcel: what the cabinet, the cloud and the partner write, with the network cut twice</title>\n")
	b.WriteString("<style>.h{font-weight:600;fill:#475467}.p{font-weight:600;fill:#101828}.d{fill:#475467}.n{fill:#98a2b3}.t{font-family:ui-monospace,monospace;font-size:13px;fill:#101828}</style>\n")
	fmt.Fprintf(&b, "<rect width=\"%d\" height=\"%d\" rx=\"12\" fill=\"#ffffff\" stroke=\"#d0d5dd\"/>\n", width, height+12)
	for _, c := range columns {
		text(c.x, 34, "h", c.name)
	}
	y := head
	for i, r := range rows {
		fill := "#ecfdf3"
		if r.cut {
			fill = "#fef3f2"
		}
		fmt.Fprintf(&b, "<rect x=\"12\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"8\" fill=\"%s\"/>\n", y, width-24, heights[i]-8, fill)
		text(columns[0].x, y+26, "p", r.title)
		text(columns[0].x, y+26+line, "d", r.detail)
		for k, list := range [][]string{r.cabinet, r.timeline, r.calls} {
			if len(list) == 0 {
				text(columns[k+1].x, y+26, "n", "–")
			}
			for n, s := range list {
				text(columns[k+1].x, y+26+n*line, "t", s)
			}
		}
		y += heights[i]
	}
	b.WriteString("</svg>\n")
	return b.String()
}
