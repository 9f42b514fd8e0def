package order_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/locale"
	"github.com/postern-io/postern/cloud/order"
	"github.com/postern-io/postern/cloud/projection"
	"github.com/postern-io/postern/cloud/tracking"
	"github.com/postern-io/postern/internal/ring"
	"github.com/postern-io/postern/protocol/otep"
)

// stated is an event in the history of an order: of a package, of the whole order (0), or of a
// container. What corrects another one stands in its place.
type stated struct {
	id, code  string
	second    int // of the history
	about     int
	container bool
	replaces  string
}

func isStated(id string) bool { return !strings.HasPrefix(id, "evt_") }

// stay is a time that a package spends in the container: seconds from and to.
type stay struct{ part, from, to int }

// An order with packages, some of them in a container for a while, and events that are withdrawn and
// corrected, in whatever order all of it arrives: each format shows what it shows of an order that got
// what is true alone, in the order in which it happened.
func TestFormatsShowTheCorrectedHistory(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		rounds := 12
		if ring.Full() {
			rounds = 60
		}
		swift := w.carrier(31, "swift")
		codes := []string{"picked_up", "received", "arrival_scan", "in_transit", "out_for_delivery", "delivery_failed", "x-available_for_pickup"}
		corrected, reported := 0, 0
		for round := range rounds {
			r := rand.New(rand.NewPCG(31, uint64(round)))
			in := input(cloud.DeliveryOrder)
			in.Packages = nil
			for range 1 + r.IntN(3) {
				in.Packages = append(in.Packages, order.PackageInput{Weight: 1})
			}
			in.Ref = fmt.Sprint("T-", round)
			o := w.create(w.staff, in)
			in.Ref = fmt.Sprint("TT-", round)
			twin := w.create(w.staff, in)
			base := time.Now().Truncate(time.Second).Add(time.Second)
			at := func(second int) time.Time { return base.Add(time.Duration(second) * time.Second) }

			pallet, err := tracking.ContainersOf(w.parcels()).Create(t.Context(), w.staff, tracking.ContainerInput{Kind: "pallet", Scheme: "own", Identity: fmt.Sprint("PALLET", round)})
			require.NoError(t, err)
			var stays []stay
			for part := range in.Packages {
				if from := 2 * r.IntN(40); r.IntN(3) > 0 {
					stays = append(stays, stay{part + 1, from, from + 2 + 2*r.IntN(60)})
				}
			}
			var history []stated
			seconds := r.Perm(100)
			for n := range 8 + r.IntN(10) {
				x := stated{id: fmt.Sprintf("r%de%d", round, n), code: codes[r.IntN(len(codes))], second: 2*seconds[n] + 1, about: r.IntN(len(in.Packages) + 1)}
				if x.container = r.IntN(4) == 0; x.container {
					x.about, x.code = 0, append(codes, "delivered", "cancelled")[r.IntN(len(codes)+2)]
				}
				history = append(history, x)
			}
			truth := slices.Clone(history)
			var back []stated // what takes back: without a code it withdraws
			for n, x := range history {
				switch r.IntN(4) {
				case 0:
					truth = slices.DeleteFunc(truth, func(y stated) bool { return y.id == x.id })
					back = append(back, stated{id: x.id, about: x.about, container: x.container})
				case 1:
					y := x
					y.id, y.code, y.second, y.replaces = x.id+"c", codes[r.IntN(len(codes))], 2*seconds[50+n]+1, x.id
					truth = append(slices.DeleteFunc(truth, func(z stated) bool { return z.id == x.id }), y)
					back = append(back, y)
				default:
					continue
				}
				corrected++
			}
			if r.IntN(2) == 0 { // what comes once an order has ended would be a report, so the end comes last
				end := stated{id: fmt.Sprintf("r%dend", round), code: "delivered", second: 250}
				truth, back = append(truth, end), append(back, end)
			}
			slices.SortFunc(truth, func(a, b stated) int { return cmp.Compare(a.second, b.second) })

			numbers := func(o order.OrderBody) []string {
				out := []string{o.Number}
				if len(o.Packages) > 1 {
					for _, p := range o.Packages {
						out = append(out, p.Number)
					}
				}
				return out
			}
			number := func(o order.OrderBody, about int) string { return numbers(o)[min(about, len(numbers(o))-1)] }
			send := func(about map[string]any, x stated) {
				t.Helper()
				var list []ev
				var gone []string
				if x.code == "" {
					gone = []string{x.id}
				} else {
					list = []ev{e(x.id, x.code, at(x.second), "source", "")}
					list[0]["source"] = map[string]any{"type": "carrier"}
					if x.replaces != "" {
						list[0]["corrects"] = x.replaces
					}
				}
				_, err := w.send(swift, timelineOf(about, gone, list...))
				require.NoError(t, err)
			}

			var acts []func()
			for _, s := range stays {
				child := number(o, s.part)
				for _, inside := range []bool{true, false} {
					acts = append(acts, func() {
						do, second := tracking.ContainersOf(w.parcels()).Bind, s.from
						if !inside {
							do, second = tracking.ContainersOf(w.parcels()).Unbind, s.to
						}
						_, err := do(t.Context(), w.staff, tracking.BindInput{ContainerRef: tracking.ContainerRef{ID: pallet.Container.ID}, Children: []string{child}, At: at(second).Format(time.RFC3339Nano)})
						require.NoError(t, err)
					})
				}
			}
			subject := func(x stated) map[string]any {
				if x.container {
					return map[string]any{"external_tracking_number": fmt.Sprint("PALLET", round)}
				}
				return about(number(o, x.about))
			}
			for _, x := range history {
				acts = append(acts, func() { send(subject(x), x) })
			}
			r.Shuffle(len(acts), func(i, j int) { acts[i], acts[j] = acts[j], acts[i] })
			for _, x := range back {
				acts = append(acts, func() { send(subject(x), x) })
			}
			// Who has the goods hangs on what came first, so that begins both.
			begin := stated{id: fmt.Sprintf("r%dbegin", round), code: "picked_up"}
			send(about(o.Number), begin)
			truth = slices.Insert(truth, 0, begin)
			for _, act := range acts {
				if act(); r.IntN(3) == 0 {
					require.NoError(t, tracking.ContainersOf(w.parcels()).Follow(t.Context()))
				}
			}
			require.NoError(t, tracking.ContainersOf(w.parcels()).Follow(t.Context()))

			for _, x := range truth {
				x.replaces = ""
				if !x.container {
					send(about(number(twin, x.about)), x)
					continue
				}
				switch x.code {
				case "delivered":
					x.code = "arrival_scan"
				case "cancelled":
					continue
				}
				for _, s := range stays {
					if s.from <= x.second && x.second < s.to {
						send(about(number(twin, s.part)), x)
					}
				}
			}

			native := func(number string) otep.Timeline {
				out, err := w.parcels().Timeline(t.Context(), w.staff, tracking.TimelineInput{Number: number})
				require.NoError(t, err)
				return out.Data.(otep.Timeline)
			}
			projector := projection.New(projection.Config{BaseURL: w.staff.BaseURL, Label: func(c otep.Code) string { return locale.Status(locale.English, c) }})
			for n := range numbers(o) {
				got, want := native(numbers(o)[n]), native(numbers(twin)[n])
				reported += len(got.Reports) + len(want.Reports)
				// What cannot be equal: numbers, when it was recorded, and the ids of what the orders have of themselves.
				want.Subject = got.Subject
				var newest time.Time
				for i := range min(len(want.Events), len(got.Events)) {
					a, b := &want.Events[i], got.Events[i]
					if a.RecordedAt = b.RecordedAt; a.RecordedAt.After(newest) {
						newest = a.RecordedAt.Time
					}
					if a.Via, a.Corrects = b.Via, b.Corrects; !isStated(a.EventID) && !isStated(b.EventID) {
						a.EventID = b.EventID
						if a.StatusCode == otep.InformationSubmitted && i == 0 {
							if want.LastEventAt.Equal(a.OccurredAt.Time) {
								want.LastEventAt = &b.OccurredAt
							}
							a.OccurredAt = b.OccurredAt
						}
					}
				}
				for _, f := range projection.Formats() {
					out, err := w.parcels().Timeline(t.Context(), w.staff, tracking.TimelineInput{Number: numbers(o)[n], Format: f.Name})
					require.NoError(t, err)
					shown, err := json.Marshal(out.Data)
					require.NoError(t, err)
					expected, err := json.Marshal(projector.Document(f, want, newest))
					require.NoError(t, err)
					require.JSONEq(t, string(expected), string(shown), "round %d, number %d, %s\n%+v\n%+v", round, n, f.Name, truth, stays)
				}
			}
		}
		require.Greater(t, corrected, 2*rounds)
		require.Zero(t, reported)
	})
}
