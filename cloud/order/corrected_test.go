package order_test

import (
	"cmp"
	"compress/gzip"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/locale"
	"github.com/postern-io/postern/cloud/order"
	"github.com/postern-io/postern/cloud/projection"
	"github.com/postern-io/postern/cloud/seal"
	"github.com/postern-io/postern/cloud/store"
	"github.com/postern-io/postern/cloud/store/storetest"
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

// A database that an earlier release wrote, with orders of one package and of several: timelines show
// what they showed, packages have their own from here on, and events move the orders.
func TestOrdersOfAnEarlierReleaseGoOn(t *testing.T) {
	t.Parallel()
	const copies = "../store/testdata/copies/2026-11/"
	packed, err := os.Open(copies + "sqlite.db.gz")
	require.NoError(t, err)
	defer packed.Close()
	r, err := gzip.NewReader(packed)
	require.NoError(t, err)
	raw, err := io.ReadAll(r)
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "postern.db"), raw, 0o600))

	// That day's demo had orders of one package alone: two of them get a second one.
	old, err := sql.Open("sqlite", filepath.Join(dir, "postern.db"))
	require.NoError(t, err)
	for _, id := range []int{1, 7} {
		var body, number string
		require.NoError(t, old.QueryRow(`SELECT body, number_key FROM orders WHERE id = ?`, id).Scan(&body, &number))
		var whole map[string]any
		require.NoError(t, json.Unmarshal([]byte(body), &whole))
		first := whole["Packages"].([]any)[0].(map[string]any)
		second := maps.Clone(first)
		second["ID"], second["Number"] = 100+id, number+"-2"
		whole["Packages"] = []any{first, second}
		changed, err := json.Marshal(whole)
		require.NoError(t, err)
		_, err = old.Exec(`UPDATE orders SET body = ? WHERE id = ?`, string(changed), id)
		require.NoError(t, err)
		_, err = old.Exec(`INSERT INTO order_package (id, order_id, business_id, number_key, external_key) VALUES (?, ?, 1, ?, '')`, 100+id, id, number+"-2")
		require.NoError(t, err)
	}
	type shown struct{ number, codes string }
	var before []shown
	rows, err := old.Query(`SELECT s.number, (SELECT group_concat(code, ' ') FROM (SELECT json_extract(t.event, '$.status_code') code FROM timeline t WHERE t.shipment_id = s.id AND t.withdrawn_at IS NULL ORDER BY t.occurred_at, t.n)) FROM shipment s WHERE s.order_id <> 0`)
	require.NoError(t, err)
	for rows.Next() {
		var x shown
		require.NoError(t, rows.Scan(&x.number, &x.codes))
		before = append(before, x)
	}
	require.NoError(t, rows.Err())
	require.NoError(t, old.Close())
	require.Greater(t, len(before), 5)

	key, err := os.ReadFile(copies + "key")
	require.NoError(t, err)
	sealed, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(key)))
	require.NoError(t, err)
	box, err := seal.New(sealed)
	require.NoError(t, err)
	db := storetest.Open(t, store.Config{Dir: dir, Instance: "test", Box: box, Logger: slog.New(slog.DiscardHandler)})
	w := &world{t: t, db: db, orders: order.New(order.Config{Store: db, Sealer: box})}
	w.staff = cloud.Caller{Account: cloud.Account{ID: 1, BusinessID: 1, Type: cloud.ClientAdmin, Enabled: true}, Language: "en"}
	for _, x := range before {
		codes, _, out := w.shown(x.number)
		require.Equal(t, x.codes, codes, x.number)
		for _, p := range out.Packages {
			codes, _, _ := w.shown(p.Number)
			require.Equal(t, x.codes, codes, p.Number)
		}
	}

	p := cloud.Provider{ID: 900, BusinessID: 1, Code: "swift", Name: "Swift", Services: []string{"otep"}, SourceType: "carrier", Scope: cloud.ScopeAll}
	require.NoError(t, db.Decide(t.Context(), 0, func(cloud.View) (*cloud.Changes, error) {
		return &cloud.Changes{AccountChanges: cloud.AccountChanges{Providers: []cloud.Provider{p}}}, nil
	}))
	swift := cloud.Caller{Provider: p, Account: cloud.Account{ID: 901, BusinessID: 1, Type: cloud.ProviderType, Name: "swift", Enabled: true}, Language: "en"}
	at := time.Now()
	const several, single = "SR822552824", "SR440586812"
	w.ingest(swift, said{several + "-2", "a", "in_transit", at, ""}, said{single, "a", "in_transit", at, ""})
	for number, codes := range map[string]string{several: "information_submitted", several + "-1": "information_submitted", several + "-2": "information_submitted in_transit", single: "information_submitted in_transit"} {
		got, _, _ := w.shown(number)
		require.Equal(t, codes, got, number)
	}
	w.ingest(swift, said{several + "-1", "b", "in_transit", at.Add(time.Second), ""}, said{several, "c", "delivered", at.Add(2 * time.Second), ""})
	got, _, out := w.shown(several)
	require.Equal(t, "information_submitted in_transit delivered", got)
	require.Len(t, out.Packages, 2)
	for _, id := range []cloud.OrderID{1, 2} {
		require.NoError(t, db.Look(t.Context(), func(v cloud.View) error {
			o, err := v.Order(1, id)
			require.NoError(t, err)
			require.Equal(t, map[cloud.OrderID]cloud.OrderStatus{1: cloud.OrderDelivered, 2: cloud.OrderInTransit}[id], o.Status)
			return nil
		}))
	}
}

// Corrections and withdrawals of one event that come at once: one of them is done.
func TestCorrectionsAtOnceAreOne(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		swift := w.carrier(31, "swift")
		for round := range 8 {
			o := w.single(fmt.Sprint("AO-", round))
			at := time.Now()
			w.ingest(swift, said{o.Number, "a", "in_transit", at, ""})
			var done, refused atomic.Int64
			var calls sync.WaitGroup
			for n := range 8 {
				calls.Go(func() {
					x := e(fmt.Sprint("c", n), []string{"arrival_scan", "received", "out_for_delivery"}[n%3], at.Add(time.Duration(n)*time.Second))
					x["corrects"] = "a"
					body := timelineOf(about(o.Number), nil, x)
					if n == 7 && round%2 == 0 {
						body = timelineOf(about(o.Number), []string{"a"})
					}
					out, err := w.send(swift, body)
					if err == nil && out.Accepted+out.Withdrawn > 0 {
						done.Add(1)
						return
					}
					refused.Add(1)
					if err == nil {
						assert.Equal(t, 1, out.Duplicates, "it was withdrawn already")
						return
					}
					assert.Equal(t, "OTEP_NOT_CONFORMANT", code(err))
				})
			}
			calls.Wait()
			require.Equal(t, []int64{1, 7}, []int64{done.Load(), refused.Load()})
			codes, _, _ := w.shown(o.Number)
			require.NotContains(t, codes, "in_transit")
			require.LessOrEqual(t, len(strings.Fields(codes)), 2, codes)
			out, err := w.parcels().Events(t.Context(), w.staff, tracking.EventsInput{Number: o.Number, Include: "withdrawn"})
			require.NoError(t, err)
			require.LessOrEqual(t, out.Total, 3, "what was not done left nothing")
		}
	})
}
