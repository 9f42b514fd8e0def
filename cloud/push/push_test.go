package push

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/hook"
	"github.com/postern-io/postern/cloud/store"
	"github.com/postern-io/postern/cloud/store/storetest"
	"github.com/postern-io/postern/internal/ring"
	"github.com/postern-io/postern/protocol/signature"
)

var _ Store = (*store.DB)(nil)

var epoch = time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)

// telecom is a provider that notes what it took, and answers as it is set to.
type telecom struct {
	mu    sync.Mutex
	taken map[string]int
	fail  func(p cloud.Push) ([]string, error) // nil: it takes it
}

func (x *telecom) Send(_ context.Context, p cloud.Push, devices []cloud.PushToken) ([]string, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.fail != nil {
		if gone, err := x.fail(p); err != nil || gone != nil {
			return gone, err
		}
	}
	x.taken[p.ID]++
	return nil, nil
}

// stand is a sender with a driver who can be reached.
type stand struct {
	t    testing.TB
	db   *store.DB
	out  *telecom
	send *Sender
}

func newStand(t testing.TB, db *store.DB) *stand {
	s := &stand{t: t, db: db, out: &telecom{taken: map[string]int{}}}
	s.send = New(Config{Store: db, Provider: s.out})
	c := &cloud.Changes{AccountChanges: cloud.AccountChanges{Businesses: []cloud.Business{{ID: 1, Code: "a"}}}}
	for id := cloud.AccountID(1); id <= 3; id++ {
		c.Accounts = append(c.Accounts, cloud.Account{ID: id, BusinessID: 1, Type: cloud.DriverAccount, Enabled: true})
		c.Tokens = append(c.Tokens, cloud.Token{Hash: [32]byte{byte(id)}, AccountID: id, CreatedAt: epoch})
		if id < 3 { // the third has no app that can be reached
			c.PushTokens = append(c.PushTokens, cloud.PushToken{DriverID: id, Token: fmt.Sprint("token", id), Platform: "fcm", Login: [32]byte{byte(id)}, At: epoch})
		}
	}
	s.write(c)
	return s
}

func (s *stand) write(c *cloud.Changes) {
	s.t.Helper()
	require.NoError(s.t, s.db.Decide(s.t.Context(), 0, func(cloud.View) (*cloud.Changes, error) { return c, nil }))
}

func (s *stand) add(id string, driver cloud.AccountID, at time.Time) {
	s.t.Helper()
	s.write(&cloud.Changes{PushChanges: cloud.PushChanges{Pushes: []cloud.Push{{ID: id, BusinessID: 1, DriverID: driver, Type: "order_assigned", At: at}}}})
}

func (s *stand) row(id string) cloud.PushRow {
	s.t.Helper()
	p, err := s.db.FindPush(s.t.Context(), id)
	require.NoError(s.t, err)
	return p
}

func (s *stand) at(after time.Duration) {
	s.t.Helper()
	require.NoError(s.t, s.send.send(s.t.Context(), epoch.Add(after)))
	require.NoError(s.t, s.send.clean(s.t.Context(), epoch.Add(after)))
}

func TestAPushIsHandedOverOnceTheLiveChannelHadItsTurn(t *testing.T) {
	t.Parallel()
	s := newStand(t, storetest.OpenSQLite(t))
	s.add("psh_1", 1, epoch)
	s.add("psh_2", 1, epoch)
	s.at(cloud.PushDelay - time.Millisecond)
	require.Empty(t, s.out.taken)
	require.NoError(t, s.db.HeardPushes(t.Context(), []string{"psh_2"}, epoch))
	s.at(cloud.PushDelay)
	s.at(time.Minute)
	require.Equal(t, map[string]int{"psh_1": 1}, s.out.taken)
	require.Equal(t, cloud.PushSent, s.row("psh_1").State)
	require.Equal(t, cloud.PushHeard, s.row("psh_2").State)
}

func TestTriesOfAnHour(t *testing.T) {
	t.Parallel()
	s := newStand(t, storetest.OpenSQLite(t))
	s.add("psh_1", 1, epoch)
	s.add("psh_3", 3, epoch)
	tries := 0
	s.out.fail = func(cloud.Push) ([]string, error) { tries++; return nil, errors.New("away") }
	for after := time.Duration(0); after <= Lifetime+time.Minute; after += time.Second {
		require.NoError(t, s.send.send(t.Context(), epoch.Add(after)))
	}
	s.at(Lifetime + 2*time.Minute)
	require.Equal(t, 10, tries, "after 2 s, 5 s, 15 s, 1 min, 3 min, and every 10 min")
	require.Equal(t, cloud.PushFailed, s.row("psh_1").State)
	require.Equal(t, cloud.PushExpired, s.row("psh_3").State, "nobody could be reached")
	require.Equal(t, "no_device", s.row("psh_3").Reason)
}

func TestARefusalIsFinalAndDevicesThatAreGoneAreForgotten(t *testing.T) {
	t.Parallel()
	s := newStand(t, storetest.OpenSQLite(t))
	s.add("psh_1", 1, epoch)
	s.out.fail = func(cloud.Push) ([]string, error) { return nil, fmt.Errorf("%w: 400", ErrRefused) }
	s.at(time.Minute)
	require.Equal(t, cloud.PushFailed, s.row("psh_1").State)
	s.add("psh_2", 2, epoch)
	s.out.fail = func(cloud.Push) ([]string, error) { return []string{"token2"}, nil }
	s.at(time.Minute)
	require.Equal(t, cloud.PushFailed, s.row("psh_2").State)
	left, err := s.db.PushTokens(t.Context(), 2, epoch)
	require.NoError(t, err)
	require.Empty(t, left)
}

// One device of two that is gone, however often the provider says so, leaves the
// other; one that it says with a refusal is forgotten before the next try.
func TestDevicesThatAreGoneAreCountedOnce(t *testing.T) {
	t.Parallel()
	s := newStand(t, storetest.OpenSQLite(t))
	s.write(&cloud.Changes{PushChanges: cloud.PushChanges{PushTokens: []cloud.PushToken{{DriverID: 1, Token: "tablet", Platform: "web", Login: [32]byte{1}, At: epoch}}}})
	s.add("psh_1", 1, epoch)
	s.out.fail = func(cloud.Push) ([]string, error) { return []string{"token1", "token1", "unheard-of"}, nil }
	s.at(time.Minute)
	require.Equal(t, cloud.PushSent, s.row("psh_1").State, "the tablet has it")
	left, err := s.db.PushTokens(t.Context(), 1, epoch)
	require.NoError(t, err)
	require.Len(t, left, 1)
	s.add("psh_2", 1, epoch)
	s.out.fail = func(cloud.Push) ([]string, error) { return []string{"tablet"}, errors.New("410") }
	s.at(2 * time.Minute)
	s.out.fail = nil
	s.at(4 * time.Minute)
	require.Equal(t, cloud.PushWaiting, s.row("psh_2").State)
	require.Equal(t, "no_device", s.row("psh_2").Reason, "nothing is left to send it to")
	require.Empty(t, s.out.taken)
}

func TestWithoutAProviderPushesAreForTheLiveChannel(t *testing.T) {
	t.Parallel()
	s := newStand(t, storetest.OpenSQLite(t))
	s.send = New(Config{Store: s.db})
	s.add("psh_1", 1, epoch)
	s.at(time.Minute)
	require.Equal(t, cloud.PushWaiting, s.row("psh_1").State)
	s.at(Lifetime + time.Minute)
	require.Equal(t, cloud.PushExpired, s.row("psh_1").State)
	s.at(cloud.PushKept + time.Minute)
	_, err := s.db.FindPush(t.Context(), "psh_1")
	require.ErrorIs(t, err, cloud.ErrNotFound)
}

// Any order of pushes, collapses, acknowledgements, failures and ends of the
// node: each push ends in one state, once, and none is handed over twice but one
// of which a node did not live to write down that it was.
func TestPushesAgainstModel(t *testing.T) {
	t.Parallel()
	run := func(t *testing.T, db *store.DB) {
		for seed := range uint64(ring.Count(2, 6)) {
			r := rand.New(rand.NewPCG(seed, 7))
			t.Logf("seed %d", seed)
			newModel(t, db, r, seed).run()
		}
	}
	t.Run("SQLite", func(t *testing.T) { t.Parallel(); run(t, storetest.OpenSQLite(t)) })
	t.Run("PostgreSQL", func(t *testing.T) { t.Parallel(); run(t, storetest.OpenSecondPostgres(t)) })
}

type model struct {
	*stand
	r       *rand.Rand
	seed    uint64
	now     time.Duration
	made    []cloud.Push
	heard   map[string]bool
	unknown map[string]int // handed over by a node that ended
	ended   map[string]cloud.PushState
}

func newModel(t *testing.T, db *store.DB, r *rand.Rand, seed uint64) *model {
	m := &model{stand: newStand(t, db), r: r, seed: seed, heard: map[string]bool{}, unknown: map[string]int{}, ended: map[string]cloud.PushState{}}
	m.now = time.Duration(seed) * 24 * time.Hour
	m.out.fail = func(cloud.Push) ([]string, error) { // one at a time
		switch m.r.IntN(6) {
		case 0, 1, 2:
			return nil, errors.New("away")
		case 3:
			return nil, ErrRefused
		}
		return nil, nil
	}
	return m
}

func (m *model) run() {
	for range 150 {
		m.now += time.Duration(m.r.IntN(4000)) * time.Millisecond
		switch m.r.IntN(10) {
		case 0, 1, 2, 3:
			m.push()
		case 4:
			m.hear()
		case 5:
			m.die()
		default:
			m.at(m.now)
		}
		m.check()
	}
	m.now += 2 * Lifetime
	m.at(m.now)
	m.check()
	for _, p := range m.made {
		require.NotEmpty(m.t, m.ended[p.ID], "it has no end")
	}
}

func (m *model) push() {
	p := cloud.Push{ID: fmt.Sprintf("psh_%d_%03d", m.seed, len(m.made)), BusinessID: 1, DriverID: cloud.AccountID(m.r.IntN(3) + 1), Type: "x", At: epoch.Add(m.now),
		Collapse: []string{"", "", "a", "b"}[m.r.IntN(4)], Test: m.r.IntN(8) == 0}
	m.made = append(m.made, p)
	m.write(&cloud.Changes{PushChanges: cloud.PushChanges{Pushes: []cloud.Push{p}}})
}

func (m *model) hear() {
	if len(m.made) == 0 {
		return
	}
	id := m.made[m.r.IntN(len(m.made))].ID
	m.heard[id] = true
	require.NoError(m.t, m.db.HeardPushes(m.t.Context(), []string{id}, epoch.Add(m.now)))
}

// die takes some pushes up, hands one over, and starts again.
func (m *model) die() {
	list, err := m.db.ClaimPushes(m.t.Context(), epoch.Add(m.now), 3)
	require.NoError(m.t, err)
	for i, p := range list {
		if i == 0 {
			m.out.taken[p.ID]++
			m.unknown[p.ID]++
		}
	}
	require.NoError(m.t, m.db.RecoverPushes(m.t.Context()))
}

func (m *model) check() {
	for i, p := range m.made {
		row := m.row(p.ID)
		require.Equal(m.t, p, row.Push)
		if was, ended := m.ended[p.ID]; ended {
			if was == cloud.PushReplaced && m.heard[p.ID] {
				was = cloud.PushHeard
			}
			require.Equal(m.t, was, row.State, "an end is for ever")
		}
		require.Equal(m.t, row.State != cloud.PushWaiting, !row.EndedAt.IsZero(), "%s", row.State)
		taken := m.out.taken[p.ID] - m.unknown[p.ID]
		later := func(q cloud.Push) bool {
			return q.Collapse == p.Collapse && q.DriverID == p.DriverID && p.Collapse != ""
		}
		switch row.State {
		case cloud.PushWaiting:
			require.Zero(m.t, taken)
			continue
		case cloud.PushSent:
			require.Equal(m.t, 1, taken)
		case cloud.PushHeard:
			require.True(m.t, m.heard[p.ID])
			require.Zero(m.t, taken)
		case cloud.PushReplaced:
			require.True(m.t, slices.ContainsFunc(m.made[i+1:], later))
			require.Zero(m.t, taken)
		case cloud.PushLogged:
			require.True(m.t, p.Test)
			require.Zero(m.t, m.out.taken[p.ID])
		case cloud.PushFailed, cloud.PushExpired:
			require.Zero(m.t, taken)
		default:
			require.Fail(m.t, "an unknown state", row.State)
		}
		m.ended[p.ID] = row.State
	}
}

func TestHook(t *testing.T) {
	t.Parallel()
	p := cloud.Push{ID: "psh_1", BusinessID: 1, DriverID: 8, Type: "order_assigned", Title: "New order", Body: "SR1 · Toronto", At: epoch, Data: cloud.PushData{OrderID: 7, TrackingNumber: "SR1"}}
	devices := []cloud.PushToken{{Token: "t1", Platform: "fcm"}, {Token: "t2", Platform: "apns"}}
	key, err := signature.StandardKey("whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=")
	require.NoError(t, err)
	h := Hook{hook.Address{URL: "https://push.example/send", Secret: "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="}}
	for _, x := range []struct {
		status  int
		answer  string
		failure error
		gone    []string
		refused bool
		bad     bool
	}{
		{200, `{"gone":["t2"]}`, nil, []string{"t2"}, false, false}, {202, ``, nil, nil, false, false}, {204, `<html>`, nil, nil, false, false},
		{400, ``, nil, nil, true, true}, {422, ``, nil, nil, true, true}, {413, ``, nil, nil, true, true}, {401, ``, nil, nil, false, true}, {429, ``, nil, nil, false, true}, {503, ``, nil, nil, false, true}, {301, ``, nil, nil, false, true},
		{410, `{"gone":["t1","t2"]}`, nil, []string{"t1", "t2"}, false, true}, {400, `{"gone":["t1"]}`, nil, []string{"t1"}, true, true},
		{0, ``, errors.New("CONNECT"), nil, false, true},
	} {
		h.Post = func(_ context.Context, url string, headers [][2]string, body []byte) (int, []byte, error) {
			require.Equal(t, "https://push.example/send", url)
			get := func(name string) string {
				i := slices.IndexFunc(headers, func(h [2]string) bool { return h[0] == name })
				require.GreaterOrEqual(t, i, 0, name)
				return headers[i][1]
			}
			require.Equal(t, "psh_1", get("webhook-id"))
			var sec int64
			_, err := fmt.Sscan(get("webhook-timestamp"), &sec)
			require.NoError(t, err)
			require.Equal(t, signature.Standard("psh_1", time.Unix(sec, 0), body, key), get("webhook-signature"))
			require.JSONEq(t, `{"push_id":"psh_1","type":"order_assigned","title":"New order","body":"SR1 · Toronto","data":{"order_id":7,"tracking_number":"SR1"},"created_at":"2026-11-20T09:00:00Z",
"driver_id":8,"business_id":1,"devices":[{"token":"t1","platform":"fcm"},{"token":"t2","platform":"apns"}]}`, string(body))
			return x.status, []byte(x.answer), x.failure
		}
		gone, err := h.Send(t.Context(), p, devices)
		require.Equal(t, x.gone, gone, x.status)
		require.Equal(t, x.refused, errors.Is(err, ErrRefused), x.status)
		require.Equal(t, x.bad, err != nil, x.status)
	}
	var shown map[string]any
	require.NoError(t, json.Unmarshal(p.Live().Body, &shown))
}

// Another driver's push is no place to read on from: nothing of one's own is left
// out for it.
func TestWhatWasMissedIsReadOnFromOnesOwn(t *testing.T) {
	t.Parallel()
	s := newStand(t, storetest.OpenSQLite(t))
	now := time.Now().UTC()
	s.add("psh_1", 1, now.Add(-time.Hour))
	s.add("psh_2", 1, now)
	s.add("psh_3", 2, now)
	missed := func(after string) (ids []string) {
		out, err := NewReader(s.db).List(t.Context(), cloud.Caller{Account: cloud.Account{ID: 1, BusinessID: 1}}, ListInput{After: after})
		require.NoError(t, err)
		for _, p := range out.Pushes {
			ids = append(ids, p.PushID)
		}
		return ids
	}
	require.Equal(t, []string{"psh_1", "psh_2"}, missed(""))
	require.Equal(t, []string{"psh_2"}, missed("psh_1"))
	require.Equal(t, []string{"psh_1", "psh_2"}, missed("psh_3"), "another driver's")
	require.Equal(t, []string{"psh_1", "psh_2"}, missed("psh_9"), "nobody's")
}
