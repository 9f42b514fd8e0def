package approval

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/quick"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
	"github.com/postern-io/postern/cloud/check/checktest"
	"github.com/postern-io/postern/cloud/store"
	"github.com/postern-io/postern/cloud/store/storetest"
)

// actions are the audit lines of a business, oldest first.
func (w *world) actions(t *testing.T) (out []string) {
	rows, err := w.db.ListAudits(t.Context(), 1, 0, 100)
	require.NoError(t, err)
	for _, r := range rows {
		for _, secret := range []string{"t0p", "twice", "duplicate"} {
			require.NotContains(t, r.Audit.Detail+r.Audit.Target, secret)
		}
		out = append([]string{r.Audit.Actor + " " + r.Audit.Action}, out...)
	}
	return out
}

func TestAnApprovalIsShownAsTheInterfaceSays(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.OpenSQLite(t))
	in := cancelOrder
	in.Summary = "Cancel \u202eorder\u202c 1\n" + strings.Repeat("x", 400)
	in.Reason = "duplicate\u0000 of 2\nsee there"
	in.Arguments = json.RawMessage(`{"webhook_sign_secret":"t0p","webhook_sign_secret_standard":"t0p","webhook_sign_secret_next_standard":"t0p","n":12345678901234567890,"list":[{"password":"t0p","token_name":"kept","pickup_code":123456}],"Card-Token":"t0p","pin":1,"shipping":"<b>"}`)
	out, err := w.s[0].Propose(t.Context(), people[5], in)
	require.NoError(t, err)
	a := out.Approval
	raw, err := json.Marshal(a)
	require.NoError(t, err)
	var m map[string]any
	require.NoError(t, json.Unmarshal(raw, &m))
	require.JSONEq(t, `{"webhook_sign_secret":"***","webhook_sign_secret_standard":"***","webhook_sign_secret_next_standard":"***","n":12345678901234567890,"list":[{"password":"***","token_name":"kept","pickup_code":"***"}],"Card-Token":"***","pin":"***","shipping":"<b>"}`, string(a.Arguments))
	require.Contains(t, string(a.Arguments), "12345678901234567890")
	require.Len(t, []rune(a.Summary), 300)
	require.True(t, strings.HasPrefix(a.Summary, "Cancel order 1 xxx"), a.Summary)
	for k, want := range map[string]any{"tool": "cancel_order", "server": "operations", "reason": "duplicate of 2\nsee there", "risk": "high", "required_scopes": []any{"orders:write"}, "status": "pending",
		"requested_by": map[string]any{"user_id": 5., "name": "Eve", "token_name": "agent-1"}, "requested_at": "2026-11-20T13:00:00-05:00", "expires_at": "2026-11-23T13:00:00-05:00",
		"reviewed_by": nil, "reviewed_at": nil, "review_note": nil, "result": nil, "error": nil, "preview": map[string]any{"outcome": "preview"}} {
		require.Equal(t, want, m[k], k)
	}
	require.Len(t, m, 19)

	w.tool.how = refuses
	c := people[2]
	c.Language = "de"
	out, err = w.s[0].Approve(t.Context(), c, ApproveInput{ID: a.ApprovalID, Note: "go"})
	require.NoError(t, err)
	require.Equal(t, &Failure{Code: "ORDER_STATUS_CONFLICT", Message: "de ORDER_STATUS_CONFLICT", Details: map[string]any{"order_status_id": json.Number("50"), "secret": "***"}}, out.Approval.Error)
	require.Equal(t, &Person{2, "Ben"}, out.Approval.ReviewedBy)
	require.Equal(t, "go", *out.Approval.ReviewNote)
	require.Equal(t, []string{"account:5 approval.proposed", "account:2 approval.approved", "account:2 approval.failed"}, w.actions(t))
	again, err := w.s[1].Find(t.Context(), c, ByApproval{a.ApprovalID})
	require.NoError(t, err)
	require.Equal(t, "failed", out.Outcome)
	require.Equal(t, out.Approval, again.Approval)
}

// What is another business's, what there is not and what is no id at all look
// alike.
func TestForeignApprovalsLookLikeNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.OpenSQLite(t))
	out, err := w.s[0].Propose(t.Context(), people[1], cancelOrder)
	require.NoError(t, err)
	for _, id := range []cloud.ApprovalID{out.Approval.ApprovalID, newID(w.now), "", "apr_", "7", "apr_\x00", cloud.ApprovalID(strings.Repeat("x", 99))} {
		_, find := w.s[0].Find(t.Context(), people[10], ByApproval{id})
		_, review := w.s[0].Review(t.Context(), people[10], ByApproval{id})
		_, approve := w.s[0].Approve(t.Context(), people[10], ApproveInput{ID: id})
		_, reject := w.s[0].Reject(t.Context(), people[10], RejectInput{ID: id})
		for _, err := range []error{find, review, approve, reject} {
			require.Equal(t, cloud.E(cloud.NotFound, "APPROVAL_NOT_FOUND"), err)
		}
	}
	list, err := w.s[0].List(t.Context(), people[10], ListInput{Status: "all"})
	require.NoError(t, err)
	require.Zero(t, list.Total)
	for _, c := range []cloud.Caller{{}, people[5], people[6]} {
		_, err := w.s[0].List(t.Context(), c, ListInput{})
		require.Error(t, err)
	}
}

func TestBadInputIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.OpenSQLite(t))
	for _, in := range []ListInput{{Status: "open"}, {Keyset: check.Keyset{Page: new(-1)}}, {Keyset: check.Keyset{PerPage: new(201)}}, {Tool: "a\x00b"}} {
		_, err := checktest.Given(w.s[0].List)(t.Context(), people[1], in)
		require.Equal(t, "VALIDATION_FAILED", code(err), "%+v", in)
	}
	_, err := checktest.Given(w.s[0].Approve)(t.Context(), people[1], ApproveInput{Note: strings.Repeat("x", 501)})
	require.Equal(t, "VALIDATION_FAILED", code(err))
	_, err = checktest.Given(w.s[0].Reject)(t.Context(), people[1], RejectInput{Reason: strings.Repeat("x", 501)})
	require.Equal(t, "VALIDATION_FAILED", code(err))
	for _, change := range []func(*ProposeInput){func(in *ProposeInput) { in.Arguments = json.RawMessage(`[1]`) }, func(in *ProposeInput) { in.Tool = "" }, func(in *ProposeInput) { in.Preview = json.RawMessage(`{`) }} {
		in := cancelOrder
		change(&in)
		_, err := w.s[0].Propose(t.Context(), people[1], in)
		require.Error(t, err)
	}
	in := cancelOrder
	in.Reason = strings.Repeat("x", 501)
	_, err = w.s[0].Propose(t.Context(), people[1], in)
	require.Equal(t, "VALIDATION_FAILED", code(err))
}

func TestAReviewSaysWhatCanBeDoneAndWhatItWouldDoNow(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.OpenSQLite(t))
	out, err := w.s[0].Propose(t.Context(), people[1], cancelOrder)
	require.NoError(t, err)
	id := ByApproval{out.Approval.ApprovalID}
	review := func(by cloud.AccountID) Review {
		r, err := w.s[0].Review(t.Context(), people[by], id)
		require.NoError(t, err)
		return r
	}
	r := review(2)
	require.NoError(t, r.NotApprove)
	require.NoError(t, r.NotReject)
	require.JSONEq(t, `{"ran":0,"api_token":"***"}`, string(r.Fresh))
	r = review(1)
	require.Equal(t, "SELF_APPROVAL_NOT_ALLOWED", code(r.NotApprove))
	require.NoError(t, r.NotReject, "one's own request can be taken back")
	require.Nil(t, r.Fresh)
	r = review(4)
	require.Equal(t, "FORBIDDEN", code(r.NotReject), "who only reads does not decide")
	require.Equal(t, "FORBIDDEN", code(r.NotApprove))
	w.enable(t, 1, false)
	require.Equal(t, "REQUESTER_NOT_ALLOWED", code(review(2).FreshError))
	w.enable(t, 1, true)
	w.now = w.now.Add(72 * time.Hour)
	r = review(2)
	require.Equal(t, "APPROVAL_EXPIRED", code(r.NotApprove))
	require.Equal(t, "APPROVAL_EXPIRED", code(r.NotReject))
	require.Nil(t, r.Fresh)
	none := New(Config{Store: w.db, Holds: holds})
	none.now = func() time.Time { return w.now.Add(-time.Hour) }
	r, err = none.Review(t.Context(), people[2], id)
	require.NoError(t, err)
	require.Equal(t, "MODULE_UNAVAILABLE", code(r.FreshError))
	_, err = none.Approve(t.Context(), people[2], ApproveInput{ID: id.ID})
	require.Equal(t, "MODULE_UNAVAILABLE", code(err), "nothing is claimed for nothing")
}

// What a dry run says now must be what the reviewer saw; what changes between
// the dry run and the call puts the approval back.
func TestAChangedCallIsNotRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.OpenSQLite(t))
	in := cancelOrder
	in.Marks = cloud.Marks{"one"}
	out, err := w.s[0].Propose(t.Context(), people[5], in)
	require.NoError(t, err)
	id, shown := out.Approval.ApprovalID, out.Approval.Digest
	require.Equal(t, cloud.Marks{"one"}.Digest(nil), shown)
	approve := func(digest string) (Output, *cloud.Error) {
		out, err := w.s[0].Approve(t.Context(), people[2], ApproveInput{ID: id, Digest: digest})
		var refused *cloud.Error
		require.True(t, err == nil || errors.As(err, &refused), "%v", err)
		return out, refused
	}
	w.tool.marks = cloud.Marks{"two"}
	for _, digest := range []string{"", shown, "other"} {
		_, refused := approve(digest)
		require.Equal(t, "APPROVAL_CHANGED", refused.Code)
		require.Equal(t, w.tool.marks.Digest(nil), refused.Details["digest"])
		require.JSONEq(t, `{"ran":0,"api_token":"***"}`, string(refused.Details["preview"].(json.RawMessage)))
	}
	w.tool.how = changes
	_, refused := approve(w.tool.marks.Digest(nil))
	require.Equal(t, "APPROVAL_CHANGED", refused.Code)
	found, err := w.s[1].Find(t.Context(), people[1], ByApproval{id})
	require.NoError(t, err)
	require.Equal(t, []any{cloud.ApprovalPending, shown, (*Person)(nil)}, []any{found.Approval.Status, found.Approval.Digest, found.Approval.ReviewedBy})
	w.tool.how = good
	out, refused = approve(w.tool.marks.Digest(nil))
	require.Nil(t, refused)
	require.Equal(t, []any{cloud.ApprovalExecuted, w.tool.marks.Digest(nil)}, []any{out.Approval.Status, out.Approval.Digest})
	require.Equal(t, w.tool.marks, w.tool.last.Marks, "the call is held to what was seen")
}

// After a process ended in the middle no answer says that the call was not done,
// whatever is tried: it is approved again until its first answer is given, as
// its requester was when it ran.
func TestACallThatWasCutOffIsNeverForgotten(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.OpenSQLite(t))
	out, err := w.s[0].Propose(t.Context(), people[5], cancelOrder)
	require.NoError(t, err)
	id := out.Approval.ApprovalID
	approve := func(how string) (Output, error) {
		w.tool.how = how
		out, err := w.s[0].Approve(t.Context(), people[2], ApproveInput{ID: id})
		w.nodes[0].ended = false
		return out, err
	}
	stands := func() {
		t.Helper()
		_, err := w.s[1].Reject(t.Context(), people[1], RejectInput{ID: id})
		require.Equal(t, "APPROVAL_ALREADY_DECIDED", code(err))
		out, err := w.s[1].Find(t.Context(), people[1], ByApproval{id})
		require.NoError(t, err)
		require.Equal(t, cloud.ApprovalPending, out.Approval.Status)
		require.Equal(t, "Ben", out.Approval.ReviewedBy.Name)
	}
	_, err = approve(endsAfter)
	require.ErrorIs(t, err, errEnded)
	stands()
	_, err = approve(good)
	require.Equal(t, "APPROVAL_ALREADY_DECIDED", code(err), "it may still run")
	w.now = w.now.Add(2 * time.Minute)
	_, err = approve(unavailable)
	require.Equal(t, "MODULE_UNAVAILABLE", code(err))
	stands()
	_, err = approve(broken)
	require.ErrorIs(t, err, errBroken)
	w.enable(t, 5, false)
	w.now = w.now.Add(100 * time.Hour)
	stands()
	out, err = approve(refuses)
	require.NoError(t, err)
	require.Equal(t, cloud.ApprovalExecuted, out.Approval.Status)
	require.Equal(t, 1, w.tool.runs[id])
	require.Equal(t, []string{"account:5 approval.proposed", "account:2 approval.approved", "account:2 approval.approved", "account:2 approval.put_back", "account:2 approval.approved", "account:2 approval.put_back",
		"account:2 approval.approved", "account:2 approval.executed"}, w.actions(t))
}

// A reviewer who approved may close the browser: the call goes on to its end.
func TestACallGoesOnWithoutItsReviewer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.OpenSQLite(t))
	out, err := w.s[0].Propose(t.Context(), people[5], cancelOrder)
	require.NoError(t, err)
	ctx, leave := context.WithCancel(t.Context())
	run := w.s[0].cfg.Run
	w.s[0].cfg.Run = func(ctx context.Context, c cloud.Caller, a cloud.Approval) (json.RawMessage, error) {
		leave()
		require.NoError(t, ctx.Err())
		return run(ctx, c, a)
	}
	out, err = w.s[0].Approve(ctx, people[2], ApproveInput{ID: out.Approval.ApprovalID})
	require.NoError(t, err)
	require.Equal(t, cloud.ApprovalExecuted, out.Approval.Status)
}

// Many decide about the same approvals at once, on two nodes: each is decided
// once, and what was approved ran once.
func TestManyDecideAtOnce(t *testing.T) {
	t.Parallel()
	for engine, open := range map[string]func(t *testing.T) [2]*store.DB{
		"SQLite": func(t *testing.T) [2]*store.DB { db := storetest.OpenSQLite(t); return [2]*store.DB{db, db} },
		"PostgreSQL": func(t *testing.T) (two [2]*store.DB) {
			url := storetest.SecondPostgresURL(t)
			for i, node := range []string{"one", "two"} {
				two[i] = storetest.Open(t, store.Config{URL: url, Instance: node, Box: storetest.Box(t)})
			}
			return two
		},
	} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			dbs := open(t)
			w := newWorld(t, dbs[0])
			var runs sync.Map
			var s [2]*Service
			for i, db := range dbs {
				s[i] = New(Config{Store: db, Holds: holds, Message: w.s[0].cfg.Message, Run: func(_ context.Context, _ cloud.Caller, a cloud.Approval) (json.RawMessage, error) {
					n, _ := runs.LoadOrStore(a.ID, new(atomic.Int64))
					n.(*atomic.Int64).Add(1)
					return json.RawMessage(`{"result":true}`), nil
				}})
			}
			for range 6 {
				out, err := s[0].Propose(t.Context(), people[5], cancelOrder)
				require.NoError(t, err)
				id := out.Approval.ApprovalID
				var wg sync.WaitGroup
				var approved, rejected, late atomic.Int64
				for i := range 16 {
					wg.Go(func() {
						var err error
						if i%4 == 3 {
							if _, err = s[i%2].Reject(t.Context(), people[1], RejectInput{ID: id}); err == nil {
								rejected.Add(1)
							}
						} else if out, err2 := s[i%2].Approve(t.Context(), people[2], ApproveInput{ID: id}); err2 == nil {
							require.Equal(t, cloud.ApprovalExecuted, out.Approval.Status)
							approved.Add(1)
						} else {
							err = err2
						}
						if err != nil {
							require.Equal(t, "APPROVAL_ALREADY_DECIDED", code(err))
							late.Add(1)
						}
					})
				}
				wg.Wait()
				require.EqualValues(t, 1, approved.Load()+rejected.Load())
				require.EqualValues(t, 15, late.Load())
				ran := int64(0)
				if n, ok := runs.Load(id); ok {
					ran = n.(*atomic.Int64).Load()
				}
				require.Equal(t, approved.Load(), ran)
			}
		})
	}
}

func TestIDsSortByTime(t *testing.T) {
	t.Parallel()
	require.NoError(t, quick.Check(func(a, b uint32) bool {
		x, y := time.UnixMilli(1_700_000_000_000+int64(a)), time.UnixMilli(1_700_000_000_000+int64(b))
		i, j := newID(x), newID(y)
		return wellFormed.MatchString(string(i)) && (a == b || (i < j) == (a < b))
	}, nil))
}

func FuzzMask(f *testing.F) {
	f.Add(`{"api_token":"t0p","a":[{"secret":{"x":"t0p"}}]}`)
	f.Add(`{"a":1e400,"A":"\ud800"}`)
	f.Fuzz(func(t *testing.T, raw string) {
		m := Mask(json.RawMessage(raw))
		if json.Valid([]byte(raw)) != (m != nil) && json.Valid([]byte(raw)) {
			t.Fatalf("%q is masked as nothing", raw)
		}
		if m != nil && !json.Valid(m) {
			t.Fatalf("%q is masked as %q", raw, m)
		}
	})
}
