package approval

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
	"github.com/postern-io/postern/cloud/store"
	"github.com/postern-io/postern/cloud/store/storetest"
	"github.com/postern-io/postern/internal/ring"
)

// The quick ring walks beside the model fewer times; -rapid.checks says otherwise.
var _ = flag.Set("rapid.checks", strconv.Itoa(ring.Count(15, 100)))

// how a run goes.
const (
	good        = "good"
	refuses     = "refuses"
	unavailable = "unavailable"
	broken      = "broken"       // an error of ours, nothing done
	slow        = "slow"         // done, but not in time
	endsBefore  = "ends before"  // the process, nothing done
	endsAfter   = "ends after"   // the process, done but the answer not given
	again       = "again, later" // what asks to come again
	changes     = "changes"      // between the dry run and the call
)

var errBroken, errEnded = errors.New("broken"), errors.New("the process has ended")

// tool is a world that keeps Config.Run's promise: at most once for each
// approval, and the first answer again.
type tool struct {
	t      require.TestingT
	how    string
	runs   map[cloud.ApprovalID]int
	answer map[cloud.ApprovalID]json.RawMessage
	last   cloud.Approval
	by     cloud.AccountID
	marks  cloud.Marks // of what it would do now
}

// node is one process: it writes nothing once it has ended.
type node struct {
	*store.DB
	ended bool
}

func (n *node) Decide(ctx context.Context, d cloud.DeviceID, fn func(cloud.View) (*cloud.Changes, error)) error {
	if n.ended {
		return errEnded
	}
	return n.DB.Decide(ctx, d, fn)
}

func (x *tool) foresee(_ context.Context, _ cloud.Caller, a cloud.Approval) (Foresight, error) {
	return Foresight{Preview: json.RawMessage(fmt.Sprintf(`{"ran":%d,"api_token":"t0p"}`, x.runs[a.ID])), Marks: x.marks}, nil
}

func (x *tool) run(n *node) func(context.Context, cloud.Caller, cloud.Approval) (json.RawMessage, error) {
	return func(ctx context.Context, c cloud.Caller, a cloud.Approval) (json.RawMessage, error) {
		require.True(x.t, a.Claimed())
		x.last, x.by = a, c.Account.ID
		do := func() json.RawMessage {
			if x.answer[a.ID] == nil {
				x.runs[a.ID]++
				x.answer[a.ID] = json.RawMessage(fmt.Sprintf(`{"result":true,"id":%q,"new_token":"t0p"}`, a.ID))
			}
			return x.answer[a.ID]
		}
		switch x.how {
		case unavailable:
			return nil, cloud.E(cloud.Unavailable, "MODULE_UNAVAILABLE")
		case again:
			return nil, &cloud.Error{Kind: cloud.Conflict, Code: "IDEMPOTENCY_IN_PROGRESS", RetryAfter: 1}
		case broken:
			return nil, errBroken
		case changes:
			return nil, cloud.E(cloud.Conflict, "APPROVAL_CHANGED")
		case slow:
			do()
			<-ctx.Done()
			return nil, ctx.Err()
		case endsBefore:
			n.ended = true
			return nil, errEnded
		case endsAfter:
			do()
			n.ended = true
			return nil, errEnded
		}
		if x.how == refuses && x.answer[a.ID] == nil {
			return nil, &cloud.Error{Kind: cloud.Conflict, Code: "ORDER_STATUS_CONFLICT", Details: map[string]any{"order_status_id": 50, "secret": "t0p"}}
		}
		return do(), nil
	}
}

// holds is a rule with the same answers as the catalogue's for these scopes.
func holds(c cloud.Caller, scopes []string) bool {
	return c.Scopes == nil || !slices.ContainsFunc(scopes, func(s string) bool {
		return !slices.Contains(c.Scopes, s) && !slices.Contains(c.Scopes, strings.Replace(s, ":read", ":write", 1))
	})
}

// people of the tests; those of business 2 have ids from 10.
var people = map[cloud.AccountID]cloud.Caller{
	1:  {Account: cloud.Account{ID: 1, BusinessID: 1, Type: cloud.ClientAdmin, Name: "Ada", Enabled: true}},
	2:  {Account: cloud.Account{ID: 2, BusinessID: 1, Type: cloud.ClientEmployee, Name: "Ben", Enabled: true}, Scopes: []string{WriteScope, "orders:write"}},
	3:  {Account: cloud.Account{ID: 3, BusinessID: 1, Type: cloud.ClientEmployee, Email: "cy@1.example", Enabled: true}, Scopes: []string{WriteScope}},
	4:  {Account: cloud.Account{ID: 4, BusinessID: 1, Type: cloud.ClientEmployee, Name: "Dee", Enabled: true}, Scopes: []string{ReadScope, "orders:write"}},
	5:  {Account: cloud.Account{ID: 5, BusinessID: 1, Type: cloud.Broker, Name: "Eve", Enabled: true}},
	6:  {Account: cloud.Account{ID: 6, BusinessID: 1, Type: cloud.Customer, Name: "Flo", Enabled: true}},
	10: {Account: cloud.Account{ID: 10, BusinessID: 2, Type: cloud.ClientAdmin, Name: "Gus", Enabled: true}},
}

type world struct {
	db    *store.DB
	now   time.Time
	tool  *tool
	nodes []*node
	s     []*Service
}

func newWorld(t require.TestingT, db *store.DB) *world {
	w := &world{db: db, now: time.Date(2026, 11, 20, 18, 0, 0, 0, time.UTC), tool: &tool{t: t, how: good, runs: map[cloud.ApprovalID]int{}, answer: map[cloud.ApprovalID]json.RawMessage{}}}
	for range 2 {
		n := &node{DB: db}
		s := New(Config{Store: n, Run: w.tool.run(n), Foresee: w.tool.foresee, Holds: holds, Message: func(lang, code string, _ ...any) string { return lang + " " + code }})
		s.now = func() time.Time { return w.now }
		w.nodes, w.s = append(w.nodes, n), append(w.s, s)
	}
	w.business(t, false)
	ch := &cloud.Changes{}
	for _, c := range people {
		ch.Accounts = append(ch.Accounts, c.Account)
	}
	w.write(t, ch)
	return w
}

func (w *world) write(t require.TestingT, ch *cloud.Changes) {
	require.NoError(t, w.db.Decide(context.Background(), 0, func(cloud.View) (*cloud.Changes, error) { return ch, nil }))
}

func (w *world) business(t require.TestingT, self bool) {
	b := cloud.Business{ID: 1, Code: "a", Timezone: "America/Toronto"}
	b.Settings.SelfApproval = self
	w.write(t, &cloud.Changes{AccountChanges: cloud.AccountChanges{Businesses: []cloud.Business{b, {ID: 2, Code: "b"}}}})
}

func (w *world) enable(t require.TestingT, id cloud.AccountID, on bool) {
	a := people[id].Account
	a.Enabled = on
	w.write(t, &cloud.Changes{AccountChanges: cloud.AccountChanges{Accounts: []cloud.Account{a}}})
}

var cancelOrder = ProposeInput{Server: "operations", Tool: "cancel_order", Arguments: json.RawMessage(`{"order_id":1,"api_token":"t0p"}`), Summary: "Cancel order 1",
	Preview: json.RawMessage(`{"outcome":"preview"}`), Reason: "twice", Risk: "high", Scopes: []string{"orders:write"}, TokenName: "agent-1"}

func code(err error) string {
	var e *cloud.Error
	if errors.As(err, &e) {
		return e.Code
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

// entry is what an approval should be, in plain words.
type entry struct {
	id       cloud.ApprovalID
	by       cloud.AccountID
	expires  time.Time
	status   string    // as it is stored
	claimed  time.Time // zero: not
	reviewer cloud.AccountID
	ran      bool
}

func (e *entry) shows(now time.Time) string {
	if e.status == cloud.ApprovalPending && e.claimed.IsZero() && !now.Before(e.expires) {
		return cloud.ApprovalExpired
	}
	return e.status
}

// The service walks beside a model: whatever people do on two nodes, whatever
// ends in between, a call is done at most once and never after an answer said
// that it was not.
func TestApprovalsAgainstAModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		db := storetest.OpenSQLite(t)
		w := newWorld(rt, db)
		var all []*entry
		self, off := false, map[cloud.AccountID]bool{}
		pick := func(label string, ids ...cloud.AccountID) cloud.Caller {
			return people[rapid.SampledFrom(ids).Draw(rt, label)]
		}
		one := func() *entry {
			if len(all) == 0 {
				rt.Skip("nothing is there")
			}
			return rapid.SampledFrom(all).Draw(rt, "approval")
		}
		service := func() int { return rapid.IntRange(0, 1).Draw(rt, "node") }
		// refused is why c cannot decide about e, in the order of the rules.
		refused := func(c cloud.Caller, e *entry, approving bool) string {
			old := !e.claimed.IsZero() && w.now.Sub(e.claimed) >= 2*time.Minute
			switch {
			case c.Account.Type != cloud.ClientAdmin && c.Account.Type != cloud.ClientEmployee:
				return "ACCOUNT_TYPE_NOT_ALLOWED"
			case c.Account.ID == 4:
				return "FORBIDDEN"
			case c.Account.BusinessID != 1:
				return "APPROVAL_NOT_FOUND"
			case approving && c.Account.ID == 3:
				return "FORBIDDEN"
			case approving && c.Account.ID == e.by && !self:
				return "SELF_APPROVAL_NOT_ALLOWED"
			case e.shows(w.now) == cloud.ApprovalExpired:
				return "APPROVAL_EXPIRED"
			case e.status != cloud.ApprovalPending, !e.claimed.IsZero() && !(approving && old):
				return "APPROVAL_ALREADY_DECIDED"
			}
			return ""
		}
		rt.Repeat(map[string]func(*rapid.T){
			"propose": func(rt *rapid.T) {
				if len(all) == 3 {
					rt.Skip("few have longer stories")
				}
				c, in := pick("who", 1, 2, 5, 6), cancelOrder
				in.Hours = rapid.SampledFrom([]int{0, 1, 168, 169, -1}).Draw(rt, "hours")
				in.Reason = fmt.Sprint("call ", len(all)) // the same call would be the same approval
				out, err := w.s[service()].Propose(rt.Context(), c, in)
				if in.Hours < 0 || in.Hours > 168 {
					require.Equal(rt, "VALIDATION_FAILED", code(err))
					return
				}
				require.NoError(rt, err)
				require.Regexp(rt, wellFormed, out.Approval.ApprovalID)
				hours := time.Duration(in.Hours)
				if hours == 0 {
					hours = 72
				}
				all = append(all, &entry{id: out.Approval.ApprovalID, by: c.Account.ID, status: cloud.ApprovalPending, expires: w.now.Add(hours * time.Hour)})
			},
			"approve": func(rt *rapid.T) {
				c, e, n := pick("who", 1, 2, 3, 4, 5, 10), one(), service()
				w.tool.how = rapid.SampledFrom([]string{good, good, refuses, unavailable, again, broken, slow, endsBefore, endsAfter}).Draw(rt, "how")
				if w.s[n].patience = runTime; w.tool.how == slow { // a busy machine makes no other call slow
					w.s[n].patience = 5 * time.Millisecond
				}
				out, err := w.s[n].Approve(rt.Context(), c, ApproveInput{ID: e.id, Note: "ok"})
				w.nodes[n].ended = false // it starts again
				if want := refused(c, e, true); want != "" {
					require.Equal(rt, want, code(err))
					return
				}
				before := *e
				e.reviewer = c.Account.ID
				if e.claimed.IsZero() && off[e.by] {
					require.NoError(rt, err)
					require.Equal(rt, "REQUESTER_NOT_ALLOWED", out.Approval.Error.Code)
					e.status = cloud.ApprovalFailed
					return
				}
				require.Equal(rt, c.Account.ID, w.tool.by)
				require.Equal(rt, e.by, w.tool.last.RequestedBy)
				require.JSONEq(rt, string(cancelOrder.Arguments), string(w.tool.last.Arguments), "the tool gets what was asked, unmasked")
				switch w.tool.how {
				case good, refuses:
					require.NoError(rt, err)
					if e.status = cloud.ApprovalExecuted; w.tool.how == refuses && !e.ran {
						e.status = cloud.ApprovalFailed
					} else {
						e.ran = true
					}
					e.claimed = time.Time{}
					require.Equal(rt, e.status, out.Approval.Status)
				case unavailable, again, broken:
					require.Equal(rt, map[string]string{unavailable: "MODULE_UNAVAILABLE", again: "IDEMPOTENCY_IN_PROGRESS", broken: "broken"}[w.tool.how], code(err))
					*e = before
				case slow:
					require.Equal(rt, "MODULE_UNAVAILABLE", code(err))
					e.claimed, e.ran = w.now, true
				case endsBefore, endsAfter:
					require.ErrorIs(rt, err, errEnded)
					e.claimed, e.ran = w.now, e.ran || w.tool.how == endsAfter
				}
			},
			"reject": func(rt *rapid.T) {
				c, e := pick("who", 1, 2, 3, 4, 5, 10), one()
				_, err := w.s[service()].Reject(rt.Context(), c, RejectInput{ID: e.id, Reason: "no"})
				want := refused(c, e, false)
				require.Equal(rt, want, code(err))
				if want == "" {
					e.status, e.reviewer = cloud.ApprovalRejected, c.Account.ID
				}
			},
			"time passes": func(rt *rapid.T) {
				w.now = w.now.Add(rapid.SampledFrom([]time.Duration{time.Second, 119 * time.Second, 2 * time.Minute, time.Hour, 30 * time.Hour}).Draw(rt, "time"))
			},
			"settings": func(rt *rapid.T) { self = !self; w.business(rt, self) },
			"account": func(rt *rapid.T) {
				c := pick("who", 1, 2, 5, 6)
				off[c.Account.ID] = !off[c.Account.ID]
				w.enable(rt, c.Account.ID, !off[c.Account.ID])
			},
			"": func(rt *rapid.T) {
				counts := map[string]int{}
				for _, e := range all {
					out, err := w.s[0].Find(rt.Context(), people[1], ByApproval{e.id})
					require.NoError(rt, err)
					a := out.Approval
					require.Equal(rt, e.shows(w.now), a.Status)
					require.Equal(rt, e.reviewer != 0, a.ReviewedBy != nil)
					counts[a.Status]++
					runs := w.tool.runs[e.id]
					require.LessOrEqual(rt, runs, 1)
					require.Equal(rt, e.ran, runs == 1)
					switch a.Status {
					case cloud.ApprovalExecuted:
						require.Equal(rt, 1, runs)
						require.JSONEq(rt, fmt.Sprintf(`{"result":true,"id":%q,"new_token":"***"}`, e.id), string(a.Result))
					case cloud.ApprovalPending:
					default:
						require.Zero(rt, runs, "nobody says that what was done was not")
					}
					require.Equal(rt, a.Status == cloud.ApprovalFailed, a.Error != nil)
				}
				for _, status := range []string{"", cloud.ApprovalExecuted, cloud.ApprovalFailed, cloud.ApprovalRejected, cloud.ApprovalExpired} {
					list, err := w.s[1].List(rt.Context(), people[4], ListInput{Status: status, Keyset: check.Keyset{PerPage: new(200)}})
					require.NoError(rt, err)
					if status == "" {
						status = cloud.ApprovalPending
					}
					require.Equal(rt, counts[status], list.Total)
					require.Len(rt, list.Approvals, list.Total)
					require.True(rt, slices.IsSortedFunc(list.Approvals, func(a, b Body) int { return strings.Compare(*b.RequestedAt, *a.RequestedAt) }), "newest first")
				}
			},
		})
	})
}
