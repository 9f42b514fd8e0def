package scanner

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/edge/board"
	"github.com/postern-io/postern/internal/ring"
	"github.com/postern-io/postern/protocol/otep"
	"github.com/postern-io/postern/protocol/wire"
)

func batch(t testing.TB, separator, zone string, columns ...string) *Batch {
	b, err := ParseBatch(columns, separator, zone)
	require.NoError(t, err)
	return b
}

// What lines of batch scanners mean, as makers' programs write them.
func TestLinesOfBatchScanners(t *testing.T) {
	t.Parallel()
	berlin := func(text string) int64 {
		zone, err := time.LoadLocation("Europe/Berlin")
		require.NoError(t, err)
		at, err := time.ParseInLocation(time.DateTime, text, zone)
		require.NoError(t, err)
		return at.UnixNano()
	}
	const unknown = wire.ScannedUnknown
	for _, x := range []struct {
		columns   []string
		separator string
		line      string
		outcome   Outcome
		subject   string
		at        int64
	}{
		{[]string{"code", "HH:mm:ss", "DD/MM/YY"}, "", "SR204518837,14:03:20,29/11/26", Accepted, "SR204518837", berlin("2026-11-29 14:03:20")},
		{[]string{"MM/DD/YYYY", "HH:mm:ss", "-", "code"}, "", `11/29/2026,14:03:20,03,"00340123450000000017"`, Accepted, "00340123450000000017", berlin("2026-11-29 14:03:20")},
		{[]string{"YYYY-MM-DDTHH:mm", "code"}, ";", "2026-07-01T00:00;https://id.gs1.org/00/106141411234567897", Accepted, "00106141411234567897", berlin("2026-07-01 00:00:00")},
		{[]string{"code", "YYYYMMDD", "HHmmss"}, "", "SR-1,20261129,140320", Accepted, "SR-1", berlin("2026-11-29 14:03:20")},
		{[]string{"code", "YYYYMMDDHHmmss"}, " ", "SR-1 20261129140320", Accepted, "SR-1", berlin("2026-11-29 14:03:20")},
		// The label holds the separator.
		{[]string{"-", "code", "YYYYMMDDHHmm"}, ",", "7,a,b,,c,202611291403", Accepted, "a,b,,c", berlin("2026-11-29 14:03:00")},
		{[]string{"code", "YYYYMMDDHHmm"}, ",", `"say ""SR-1""",202611291403`, Accepted, `say "SR-1"`, berlin("2026-11-29 14:03:00")},
		// The clock was lost: the label is kept.
		{[]string{"code", "HH:mm:ss", "DD/MM/YY"}, "", "SR-1,00:00:00,00/00/00", Accepted, "SR-1", unknown},
		{[]string{"code", "HH:mm:ss", "DD/MM/YYYY"}, "", "SR-1,00:00:00,01/01/1980", Accepted, "SR-1", unknown},
		{[]string{"code", "HH:mm:ss", "DD/MM/YYYY"}, "", "SR-1,25:00:00,01/01/2026", Accepted, "SR-1", unknown},
		{[]string{"code", "HH:mm:ss", "DD/MM/YYYY"}, "", "]C100340123450000000018,14:03:20,29/11/2026", Unreadable, "", berlin("2026-11-29 14:03:20")},
		{[]string{"code", "HH:mm:ss", "DD/MM/YYYY"}, "", "482913,14:03:20,29/11/2026", Refused, "", 0},
		{[]string{"code", "HH:mm:ss", "DD/MM/YYYY"}, "", "PU:CAB-1:482913,14:03:20,29/11/2026", Refused, "", 0},
		{[]string{"code", "HH:mm:ss", "DD/MM/YYYY"}, "", "SR-1,14:03:20", Refused, "", 0},
		{[]string{"code", "HH:mm:ss", "DD/MM/YYYY"}, "", ",14:03:20,29/11/2026", Refused, "", 0},
		{[]string{"code", "HH:mm:ss", "DD/MM/YYYY"}, "", "  ", "", "", 0},
	} {
		c := dock
		c.Batch = batch(t, x.separator, "Europe/Berlin", x.columns...)
		r := readLabel([]byte(x.line), c)
		require.Equal(t, x.outcome, r.outcome, x.line)
		require.Equal(t, x.subject, r.event.Subject, x.line)
		require.Equal(t, x.at, r.scan.ScannedAt, x.line)
		if r.outcome == Accepted {
			require.Equal(t, x.at, r.event.ScannedAt, x.line)
		}
	}
}

func TestSettingsOfBatchScanners(t *testing.T) {
	t.Parallel()
	for want, x := range map[string]struct {
		columns         string
		separator, zone string
	}{
		`"code" for the label, once`: {"HH:mm DD/MM/YYYY", "", ""}, `code" for the label`: {"code|code|HH:mm DD/MM/YYYY", "", ""},
		"has no year": {"code|HH:mm DD/MM", "", ""}, "mm stands there 0 times": {"code|HH DD/MM/YYYY", "", ""}, "DD stands there 2 times": {"code|DD|HH:mm DD/MM/YYYY", "", ""},
		"year stands there twice": {"code|YY YYYYMMDD HH:mm", "", ""}, `"Jan  :" is in no pattern`: {"code|Jan YYYYMMDD HH:mm", "", ""}, `"2  :" is in no pattern`: {"code|2 YYYYMMDD HH:mm", "", ""},
		"use one byte": {"code|YYYYMMDD HH:mm", "::", ""}, "no quote": {"code|YYYYMMDD HH:mm", `"`, ""}, "end of a line": {"code|YYYYMMDD HH:mm", "\t", ""},
		"use a name such as Europe/Berlin": {"code|YYYYMMDD HH:mm", "", "Berlin"},
		"columns":                          {strings.Repeat("-|", 8) + "code|YYYYMMDD HH:mm", "", ""},
	} {
		_, err := ParseBatch(strings.Split(x.columns, "|"), x.separator, x.zone)
		require.ErrorContains(t, err, want, x)
	}
	c := dock
	c.Batch = batch(t, "", "", "code", "YYYYMMDD HH:mm")
	require.NoError(t, Check([]Config{c}))
	require.Contains(t, c.Purpose(), "sent later in lines of code,YYYYMMDD HH:mm")
	c.Port = CameraPort
	require.ErrorContains(t, Check([]Config{c}), "the camera sends each scan at once")
	c = Config{Name: "a", Port: "tcp://h:1", Use: UseCodes, Batch: c.Batch}
	require.ErrorContains(t, Check([]Config{c}), "a scanner of codes has none")
}

// A scanner is docked again and again, its store fails and the agent starts again: each scan
// that it ever made has an event at its own time, the same within 5 s counts once, and what a
// second docking brings again is the same to the cloud.
func TestABatchScannerIsDocked(t *testing.T) {
	t.Parallel()
	seeds := 5
	if ring.Check() {
		seeds = 60
	}
	for seed := range seeds {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(uint64(seed), 7))
			m := newMemory()
			m.fail = func() (bool, bool) { return rng.IntN(2) == 0, rng.IntN(4) == 0 }
			c := dock
			c.Batch = batch(t, "", "UTC", "code", "YYYYMMDD", "HH:mm:ss")
			var lines []string
			want := map[string][]int64{} // times of a parcel's scans, those within 5 s of one left out
			at := time.Date(2026, 11, 29, 8, 0, 0, 0, time.UTC)
			for range 60 {
				at = at.Add(time.Duration(rng.IntN(9)) * time.Second)
				name := fmt.Sprintf("SR-%d", rng.IntN(4))
				lines = append(lines, name+at.Format(",20060102,15:04:05"))
				if before := want[name]; len(before) == 0 || at.Sub(time.Unix(0, before[len(before)-1])) >= c.Repeat {
					want[name] = append(before, at.UnixNano())
				}
			}
			for docked := range 2 {
				here, line := net.Pipe()
				var mu sync.Mutex
				outcomes := 0
				s := New(c, Options{Recorder: m.recorder(), Open: func(context.Context, Config) (board.Port, error) { return board.ConnPort(here), nil },
					Report: func(r Result) {
						mu.Lock()
						defer mu.Unlock()
						if outcomes++; r.Outcome == Failed {
							outcomes--
						}
					}})
				ctx, stop := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() { done <- s.Run(ctx) }()
				_, err := io.WriteString(line, strings.Join(lines, "\r\n")+"\r\n")
				require.NoError(t, err)
				time.Sleep(10 * time.Minute)
				mu.Lock()
				require.Equal(t, len(lines), outcomes, "docked %d", docked)
				mu.Unlock()
				stop()
				require.NoError(t, <-done)
				_ = line.Close()
			}
			got := map[string][]int64{}
			for _, r := range m.held() {
				if r.Kind != wire.KindTrackingEvent {
					continue
				}
				var e wire.TrackingEvent
				require.NoError(t, wire.Decode(r.Body, &e))
				require.Equal(t, string(otep.Received), e.StatusCode)
				if !slices.Contains(got[e.Subject], e.ScannedAt) { // one event to the cloud
					got[e.Subject] = append(got[e.Subject], e.ScannedAt)
				}
			}
			for name := range got {
				slices.Sort(got[name])
			}
			require.Equal(t, want, got, "seed %d", seed)
		})
	}
}

func FuzzBatch(f *testing.F) {
	f.Add("code|HH:mm:ss|DD/MM/YY", ",", "SR-1,14:03:20,29/11/26")
	f.Add("-|code|YYYYMMDDHHmm", ";", "1;a;b;202611291403")
	f.Fuzz(func(t *testing.T, columns, separator, line string) {
		b, err := ParseBatch(strings.Split(columns, "|"), separator, "UTC")
		if err != nil {
			return
		}
		code, at, ok := b.split([]byte(line))
		if ok && (len(code) == 0 || at == 0 || !strings.Contains(strings.ReplaceAll(line, `""`, `"`), string(code)) && !strings.Contains(line, string(code))) {
			t.Fatalf("%q of %q at %d", code, line, at)
		}
		c := dock
		c.Batch = b
		r := readLabel([]byte(line), c)
		if r.outcome == Accepted && isCode(code) {
			t.Fatalf("a code was taken: %q", line)
		}
		_ = NewRecorder(newMemory(), nil, slog.New(slog.DiscardHandler)).Scan(t.Context(), time.Now(), []byte(line), c)
	})
}
