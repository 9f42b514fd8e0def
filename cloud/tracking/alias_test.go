package tracking_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/store"
	"github.com/postern-io/postern/cloud/store/storetest"
	"github.com/postern-io/postern/cloud/tracking"
	"github.com/postern-io/postern/internal/ring"
)

const aliasDays = 180

func (y *yard) day(n int) time.Time { return y.start.AddDate(0, 0, -n) }

func (y *yard) alias(c cloud.Caller, in tracking.AliasInput) (tracking.AliasBody, string) {
	y.t.Helper()
	out, err := tracking.AliasesOf(y.s).Add(y.t.Context(), c, in)
	return out.Alias, codeOf(y.t, err)
}

func codeOf(t testing.TB, err error) string {
	t.Helper()
	if err == nil {
		return ""
	}
	var e *cloud.Error
	require.ErrorAs(t, err, &e)
	return e.Code
}

// aliasModel is one alias as a model knows it.
type aliasModel struct {
	parcel   int
	from, to time.Time // zero: open
}

// Events that name an alias come to the thing that a model of intervals says, and a number is given again only
// when it is free.
func TestAliasesAreThoseOfAModel(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, db *store.DB) {
		rounds := 20
		if ring.Full() {
			rounds = 80
		}
		const parcels = 3
		y := newYard(t, db, parcels*rounds)
		for round := range rounds {
			r := rand.New(rand.NewPCG(5, uint64(round)))
			number := fmt.Sprint("CARRIER ", round)
			name := func(p int) string { return y.parcel(round*parcels + p) }
			var model []*aliasModel
			ends := map[int]time.Time{}
			until := func(a *aliasModel) time.Time {
				to := a.to
				if to.IsZero() {
					to = cloud.EndOfTimes
				}
				if end, ok := ends[a.parcel]; ok && end.AddDate(0, 0, aliasDays).Before(to) {
					to = end.AddDate(0, 0, aliasDays)
				}
				return to
			}
			for n := range 40 {
				p := r.IntN(parcels)
				switch r.IntN(6) {
				case 0: // the thing ends
					if _, ok := ends[p]; ok {
						continue
					}
					at := y.day(r.IntN(700)).Add(time.Duration(n) * time.Second)
					_, err := y.say(y.theirs[0], name(p), containerEvent{ID: fmt.Sprint("end-", round, "-", n), Code: "delivered", At: at})
					require.NoError(t, err)
					ends[p] = at
				case 1, 2:
					in := tracking.AliasInput{Number: name(p), Kind: "carrier", Issuer: "Ups", Value: number}
					a := &aliasModel{parcel: p}
					if r.IntN(2) == 0 {
						a.from = y.day(r.IntN(700))
						in.From = a.from.Format(time.RFC3339)
					}
					if r.IntN(2) == 0 {
						a.to = y.day(r.IntN(700))
						in.To = a.to.Format(time.RFC3339)
					}
					if in.From == "" {
						for _, o := range model {
							if to := until(o); !to.After(time.Now()) && to.After(a.from) {
								a.from = to
							}
						}
					}
					want := ""
					same := false
					for _, o := range model {
						from, to := a.from, a.to
						if to.IsZero() {
							to = cloud.EndOfTimes
						}
						begin, end := from, to
						if o.from.After(begin) {
							begin = o.from
						}
						if until(o).Before(end) {
							end = until(o)
						}
						if begin.Before(end) && want == "" && !same {
							if same = o.parcel == p; !same {
								want = "ALIAS_TAKEN"
							}
						}
					}
					if !a.to.IsZero() && !a.to.After(a.from) && in.From != "" {
						want = "OTEP_INVALID_REQUEST"
					}
					_, got := y.alias(y.theirs[0], in)
					if in.From == "" && !a.to.IsZero() && !a.to.After(a.from) {
						want = got // nothing is left of it
					}
					require.Equal(t, want, got, "round %d, step %d", round, n)
					if got == "" && !same {
						if a.to.IsZero() {
							for _, o := range model {
								if o.to.IsZero() {
									o.to = until(o)
								}
							}
						}
						model = append(model, a)
					}
				default:
					at := y.day(r.IntN(700)).Add(time.Duration(n) * time.Second)
					id := fmt.Sprint("e-", round, "-", n)
					want := -1
					for _, a := range model {
						if !at.Before(a.from) && at.Before(until(a)) {
							want = a.parcel
						}
					}
					_, err := y.say(y.theirs[0], []string{number, "carrier" + fmt.Sprint(round)}[r.IntN(2)], containerEvent{ID: id, Code: "in_transit", At: at})
					if want < 0 {
						require.Equal(t, "OTEP_TRACKING_NOT_FOUND", codeOf(t, err), "round %d, step %d", round, n)
					} else {
						require.NoError(t, err, "round %d, step %d", round, n)
					}
					for p := range parcels {
						has := fmt.Sprint(y.events(round*parcels + p))
						require.Equal(t, p == want, assert.ObjectsAreEqual(true, contains(has, id+" ")), "round %d, step %d, parcel %d", round, n, p)
					}
				}
			}
		}
	})
}

func contains(text, part string) bool {
	for i := range len(text) - len(part) + 1 {
		if text[i:i+len(part)] == part {
			return true
		}
	}
	return false
}

// One value is one open thing's, whichever node is asked first.
func TestOneAliasAtTwoNodes(t *testing.T) {
	ring.SkipUnlessCheck(t, "one node on SQLite")
	t.Parallel()
	url := storetest.MigratedPostgresURL(t)
	open := func(name string) *store.DB {
		return storetest.Open(t, store.Config{URL: url, Instance: name, Box: storetest.Box(t)})
	}
	y := newYard(t, open("n0"), 12)
	nodes := []*tracking.Service{y.s, tracking.New(open("n1"))}
	var made, taken atomic.Int32
	var work sync.WaitGroup
	for i := range 12 {
		work.Go(func() {
			_, err := tracking.AliasesOf(nodes[i%2]).Add(t.Context(), y.staff, tracking.AliasInput{Number: y.parcel(i), Kind: "carrier", Issuer: "ups", Value: "1Z"})
			var e *cloud.Error
			switch {
			case err == nil:
				made.Add(1)
			case errors.As(err, &e) && e.Code == "ALIAS_TAKEN":
				taken.Add(1)
			default:
				assert.NoError(t, err)
			}
		})
	}
	work.Wait()
	require.Equal(t, []int32{1, 11}, []int32{made.Load(), taken.Load()})
}

// Attackers: an alias gives no rights, and shadows no number.
func TestAliasesGiveNoRights(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, db *store.DB) {
		y := newYard(t, db, 3)
		own := cloud.Shipment{ID: 900, BusinessID: 42, Number: "THEIRS", ProviderID: 18, Profile: "last_mile", CreatedAt: y.start}
		far := cloud.Shipment{ID: 901, BusinessID: 43, Number: "FAR", ProviderID: 30, Profile: "last_mile", CreatedAt: y.start}
		stranger := cloud.Caller{Account: cloud.Account{ID: 9, BusinessID: 43, Type: cloud.ClientAdmin, Enabled: true}}
		alien := cloud.Provider{ID: 30, BusinessID: 43, Code: "p9", Name: "P9", Services: []string{"otep"}, SourceType: "carrier"}
		require.NoError(t, db.Decide(t.Context(), 0, func(cloud.View) (*cloud.Changes, error) {
			return &cloud.Changes{AccountChanges: cloud.AccountChanges{Providers: []cloud.Provider{alien}}, TrackingChanges: cloud.TrackingChanges{Shipments: []cloud.Shipment{own, far}}}, nil
		}))
		ask := func(number, value string) tracking.AliasInput {
			return tracking.AliasInput{Number: number, Kind: "carrier", Issuer: "ups", Value: value}
		}
		_, code := y.alias(y.theirs[1], ask(y.parcel(0), "1Z"))
		require.Equal(t, "OTEP_TRACKING_NOT_FOUND", code, "a parcel of another provider")
		_, code = y.alias(stranger, ask(y.parcel(0), "1Z"))
		require.Equal(t, "OTEP_TRACKING_NOT_FOUND", code, "of another business")
		_, code = y.alias(cloud.Caller{}, ask(y.parcel(0), "1Z"))
		require.NotEmpty(t, code)
		made, code := y.alias(y.theirs[0], ask(y.parcel(0), "1Z"))
		require.Empty(t, code)
		again, code := y.alias(y.theirs[0], ask(y.parcel(0), " 1z "))
		require.Equal(t, []any{"", made.ID}, []any{code, again.ID}, "it has it already")
		_, code = y.alias(y.theirs[1], ask("THEIRS", "1Z"))
		require.Equal(t, "ALIAS_TAKEN", code)
		_, code = y.alias(stranger, ask("FAR", "1Z"))
		require.Empty(t, code, "another business has numbers of its own")
		say := func(c cloud.Caller, number, id string) string {
			_, err := y.say(c, number, containerEvent{ID: id, Code: "in_transit", At: y.at(5)})
			return codeOf(t, err)
		}
		require.Equal(t, "OTEP_TRACKING_NOT_FOUND", say(y.theirs[1], "1Z", "evil"), "the alias of a parcel that is not theirs is unknown")
		out := cloud.Caller{Provider: alien, Account: cloud.Account{ID: 300, BusinessID: 43, Type: cloud.ProviderType, Enabled: true}, Language: "en"}
		require.Empty(t, say(out, "1Z", "far"))
		require.Empty(t, say(y.theirs[0], "1Z", "good"))
		require.Equal(t, []string{"good in_transit 0"}, y.events(0))
		// An alias that is the number of another's parcel, of an own one, of a container.
		_, code = y.alias(y.theirs[0], ask(y.parcel(1), "THEIRS"))
		require.Empty(t, code)
		require.Empty(t, say(y.theirs[1], "THEIRS", "own"))
		require.Empty(t, say(y.theirs[0], "THEIRS", "mine"))
		require.Equal(t, []string{"mine in_transit 0"}, y.events(1), "each has its own")
		_, code = y.alias(y.theirs[0], ask(y.parcel(1), y.parcel(2)))
		require.Empty(t, code)
		require.Empty(t, say(y.theirs[0], y.parcel(2), "number"))
		require.Equal(t, []string{"number in_transit 0"}, y.events(2), "a number comes before an alias")
		pallet := y.container(y.theirs[0], "PALLET")
		_, code = y.alias(y.theirs[0], ask("PALLET", "ULD 7"))
		require.Empty(t, code)
		_, code = y.alias(y.theirs[0], ask(y.parcel(1), "uld7"))
		require.Equal(t, "ALIAS_TAKEN", code, "it is a container's")
		require.NoError(t, y.bind(y.theirs[0], true, pallet, y.at(1), y.parcel(0)))
		require.Empty(t, say(y.theirs[0], "ULD7", "through"))
		y.settle()
		require.Contains(t, y.events(0), fmt.Sprint("through in_transit ", pallet))
		// No anonymous reader finds a parcel by an alias.
		_, err := y.s.Timeline(t.Context(), cloud.Caller{}, tracking.TimelineInput{Number: "1Z"})
		require.Equal(t, "OTEP_TRACKING_NOT_FOUND", codeOf(t, err))
		// Removed, by those that see it.
		remove := func(c cloud.Caller, number string) string {
			_, err := tracking.AliasesOf(y.s).Remove(context.Background(), c, tracking.AliasRef{AliasesInput: tracking.AliasesInput{Number: number}, ID: made.ID})
			return codeOf(t, err)
		}
		require.Equal(t, "OTEP_TRACKING_NOT_FOUND", remove(y.theirs[1], y.parcel(0)))
		require.Equal(t, "ALIAS_NOT_FOUND", remove(y.theirs[0], y.parcel(1)))
		require.Equal(t, "OTEP_TRACKING_NOT_FOUND", remove(stranger, y.parcel(0)))
		require.Empty(t, remove(y.staff, y.parcel(0)))
		require.Equal(t, "OTEP_TRACKING_NOT_FOUND", say(y.theirs[0], "1Z", "late"))
	})
}

// EPCs and SSCCs are aliases of EPCIS; the feed has each.
func TestAliasesOfEPCIS(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, db *store.DB) {
		y := newYard(t, db, 2)
		digits, epc := sscc(5)
		const item = "urn:epc:id:sgtin:0614141.107346.2017"
		for _, in := range []tracking.AliasInput{{Kind: "epc", Value: item}, {Kind: "sscc", Value: digits}} {
			in.Number = y.parcel(0)
			_, code := y.alias(y.staff, in)
			require.Empty(t, code)
		}
		for _, bad := range []tracking.AliasInput{{Kind: "epc", Value: "2017"}, {Kind: "sscc", Value: "306141400000000050"}, {Kind: "carrier", Value: " "}, {Kind: "carrier", Value: "x", From: "now"}} {
			bad.Number = y.parcel(0)
			_, code := y.alias(y.staff, bad)
			require.Equal(t, "OTEP_INVALID_REQUEST", code)
		}
		event := func(id, epc string) map[string]any {
			return map[string]any{"type": "ObjectEvent", "action": "OBSERVE", "eventID": id, "epcList": []string{epc}, "bizStep": "arriving", "eventTime": y.at(5).Format(time.RFC3339)}
		}
		_, by := y.capture(y.theirs[0], event("o-1", item), event("o-2", epc), event("o-3", "https://example.org/other/0614141.107346.2017"))
		require.Equal(t, []string{"accepted", "accepted", "rejected"}, []string{by[0].Outcome, by[1].Outcome, by[2].Outcome})
		pallet := y.container(y.theirs[0], "P-1")
		_, by = y.capture(y.theirs[0], aggregate("a-1", "ADD", epcOf("P-1"), "loading", y.at(6), epc))
		require.Equal(t, 1, bindings(t, by[0]))
		y.settle()
		require.Equal(t, []string{fmt.Sprint("a-1 in_transit ", pallet), "o-1 arrival_scan 0", "o-2 arrival_scan 0"}, y.events(0))
		var found []cloud.FeedAlias
		after := ""
		ring.Await(t, func() bool {
			page, err := y.s.Changes(t.Context(), y.staff, tracking.ChangesInput{After: after})
			require.NoError(t, err)
			after = page.Next
			for _, x := range page.Changes {
				if x.Kind == cloud.AliasAdded {
					require.Equal(t, y.parcel(0), x.Number)
					found = append(found, *x.Alias)
				}
			}
			return len(found) == 2
		})
		require.Equal(t, []cloud.FeedAlias{{Kind: "epc", Value: item}, {Kind: "sscc", Value: digits}}, found)
	})
}
