package webhook

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
)

// orderEvent is an event of the business, about a customer or none.
func orderEvent(id string, customer cloud.AccountID) cloud.AccountEvent {
	return cloud.AccountEvent{BusinessID: 1, CustomerID: customer, Settings: []string{cloud.HookOrderCreate, cloud.HookOrderLifecycle}, Event: orderNew, ID: id, ReferenceType: "order", ReferenceID: "1",
		OccurredAt: time.Now().UTC().Add(-time.Minute), Data: func(n int64, customer bool) (any, error) {
			return map[string]any{"n": n > 0, "customer": customer, "pickup_code": "483920"}, nil
		}}
}

// writeEvent writes an event to the addresses that are set for it.
func (w *world) writeEvent(id string, customer cloud.AccountID) (out []cloud.OutboxWrite) {
	w.t.Helper()
	require.NoError(w.t, w.db.Decide(w.t.Context(), 0, func(v cloud.View) (_ *cloud.Changes, err error) {
		out, err = w.s.FanOut(v, orderEvent(id, customer))
		return &cloud.Changes{OutboxChanges: cloud.OutboxChanges{Outbox: out}}, err
	}))
	return out
}

// A customer that was switched off gets nothing at addresses of its own, which it chose
// while it could sign in; what goes to the business's stays.
func TestACustomerThatIsOffGetsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.saveSettings(ann, `{"order_lifecycle_webhook_url":"https://b.example"}`)
	w.saveSettings(cus, `{"order_create_webhook_url":"https://d.example"}`)
	enable := func(on bool) {
		a := cus.Account
		a.Enabled = on
		w.write(&cloud.Changes{AccountChanges: cloud.AccountChanges{Accounts: []cloud.Account{a}}})
	}
	levels := func(id string) (out []cloud.AccountID) {
		for _, x := range w.writeEvent(id, cus.Account.ID) {
			for _, d := range x.Deliveries {
				out = append(out, d.CustomerID)
			}
		}
		return out
	}
	require.Equal(t, []cloud.AccountID{cus.Account.ID, 0}, levels("EV-1"))
	enable(false)
	require.Equal(t, []cloud.AccountID{0}, levels("EV-2"))
	enable(true)
	require.Equal(t, []cloud.AccountID{cus.Account.ID, 0}, levels("EV-3"))
}

func TestWhichAddressesGetAnEvent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	require.Empty(t, w.writeEvent("EV-0", 0), "nothing is set")
	w.saveSettings(ann, `{"webhook_sign_secret":"`+secret+`","order_create_webhook_url":"https://a.example,https://b.example","order_lifecycle_webhook_url":"https://b.example,https://c.example","order_lifecycle_events":"order.delivered"}`)
	one := w.writeEvent("EV-", 0)
	require.Len(t, one, 1)
	require.Len(t, one[0].Deliveries, 2, "lifecycle is narrowed to another event")
	require.Regexp(t, `^EV-\d+$`, one[0].Event.EventID)
	require.Equal(t, one[0].Event.EventID+"-2", one[0].Deliveries[1].WebhookID)
	require.Contains(t, string(one[0].Event.Body), `"customer":false`)
	w.saveSettings(ann, `{"order_lifecycle_events":""}`)
	require.Len(t, w.writeEvent("EV-2", 0)[0].Deliveries, 3, "an address of two settings gets it once")
	require.Len(t, w.writeEvent("EV-3", cus.Account.ID)[0].Deliveries, 3, "a customer without settings has the business's")
	w.saveSettings(cus, `{"order_create_webhook_url":"none","order_lifecycle_webhook_url":"https://d.example"}`)
	own := w.writeEvent("EV-4", cus.Account.ID)
	require.Len(t, own[0].Deliveries, 1)
	require.Equal(t, cus.Account.ID, own[0].Deliveries[0].CustomerID)
	require.Equal(t, "EV-4", own[0].Deliveries[0].WebhookID)
	require.Contains(t, string(own[0].Event.Body), `"customer":true`)
	w.saveSettings(ann, `{"enabled":false}`)
	require.Empty(t, w.writeEvent("EV-5", 0), "the level is switched off")
	require.Len(t, w.writeEvent("EV-6", cus.Account.ID), 1, "and the customer's is not")
}

func TestTheLogAndSendingAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	w.saveSettings(ann, `{"webhook_sign_secret":"`+secret+`","order_create_webhook_url":"`+good+`"}`)
	w.saveSettings(cus, `{"order_create_webhook_url":"https://cus.example"}`)
	ours, hers := w.writeEvent("EV-1", 0)[0].Deliveries[0].ID, w.writeEvent("EV-2", cus.Account.ID)[0].Deliveries[0].ID
	ids := func(c cloud.Caller, in AccountLogInput) (out []cloud.OutboxID) {
		logs, err := w.s.ListLogs(ctx, c, in)
		require.NoError(t, err)
		for _, r := range logs.Logs {
			out = append(out, r.ID)
		}
		return out
	}
	require.Equal(t, []cloud.OutboxID{hers, ours}, ids(ann, AccountLogInput{}))
	require.Equal(t, []cloud.OutboxID{ours}, ids(ann, AccountLogInput{Keyset: check.Keyset{Page: new(2), PerPage: new(1)}}))
	require.Equal(t, []cloud.OutboxID{hers}, ids(ann, AccountLogInput{CustomerID: cus.Account.ID}))
	require.Equal(t, []cloud.OutboxID{hers}, ids(cus, AccountLogInput{}))
	require.Empty(t, ids(zoe, AccountLogInput{CustomerID: cus.Account.ID}), "a customer sees its own")
	require.Empty(t, ids(rae, AccountLogInput{}))
	require.Empty(t, ids(ann, AccountLogInput{Channel: cloud.ChannelLocker}))
	require.Len(t, ids(ann, AccountLogInput{Channel: cloud.ChannelAccount}), 2)
	require.Empty(t, ids(ann, AccountLogInput{Status: string(cloud.OutboxFailed)}))
	for member, in := range map[string]AccountLogInput{"page": {Keyset: check.Keyset{Page: new(-1)}}, "per_page": {Keyset: check.Keyset{PerPage: new(201)}}, "status": {Status: "x"}, "from": {From: "x"}, "to": {To: "x"}} {
		refuses(w, ann, member, in, w.s.ListLogs)
	}
	refuses(w, ann, "page", AccountLogInput{Keyset: check.Keyset{Page: new(10_000_001)}}, w.s.ListLogs)
	for _, c := range []cloud.Caller{eve, pam} {
		_, err := w.s.ListLogs(ctx, c, AccountLogInput{})
		require.Equal(t, "ACCOUNT_TYPE_NOT_ALLOWED", code(err))
		_, err = w.s.FindLog(ctx, c, EntryInput{int64(ours)})
		require.Equal(t, "ACCOUNT_TYPE_NOT_ALLOWED", code(err))
		_, err = w.s.Replay(ctx, c, ReplayInput{ID: int64(ours)})
		require.Equal(t, "ACCOUNT_TYPE_NOT_ALLOWED", code(err))
	}
	one, err := w.s.FindLog(ctx, ann, EntryInput{int64(ours)})
	require.NoError(t, err)
	require.Contains(t, string(one.Log.RequestBody), `"pickup_code":"******"`)
	for name, c := range map[string]struct {
		by cloud.Caller
		id cloud.OutboxID
	}{"the business's": {cus, ours}, "another customer's": {zoe, hers}, "another business's": {rae, ours}, "none": {ann, 999}} {
		_, err := w.s.FindLog(ctx, c.by, EntryInput{int64(c.id)})
		require.Equal(t, "WEBHOOK_DELIVERY_NOT_FOUND", code(err), name)
		_, err = w.s.Replay(ctx, c.by, ReplayInput{ID: int64(c.id)})
		require.Equal(t, "WEBHOOK_DELIVERY_NOT_FOUND", code(err), name)
	}
	again, err := w.s.Replay(ctx, cus, ReplayInput{ID: int64(hers)})
	require.NoError(t, err)
	require.Equal(t, cloud.OutboxPending, again.Status)
	require.Empty(t, w.sent, "its sender takes it up")
	_, err = w.s.Replay(ctx, cus, ReplayInput{ID: int64(hers), URL: "https://else.example"})
	require.Equal(t, "ACCOUNT_TYPE_NOT_ALLOWED", code(err), "another address is for administrators")
	_, err = w.s.Replay(ctx, ann, ReplayInput{ID: int64(ours), URL: "https://blocked.example"})
	require.Equal(t, codeBlocked, code(err))
	elsewhere, err := w.s.Replay(ctx, ann, ReplayInput{ID: int64(ours), URL: "https://else.example"})
	require.NoError(t, err)
	require.Equal(t, cloud.OutboxSuccess, elsewhere.Status)
	require.Equal(t, []any{"https://else.example", secret}, []any{w.sent[0].to.URL, string(w.sent[0].to.Secret)})
}

func TestSendingManyAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	w.saveSettings(ann, `{"webhook_sign_secret":"`+secret+`","order_create_webhook_url":"`+good+`"}`)
	w.saveSettings(cus, `{"order_create_webhook_url":"https://cus.example"}`)
	w.writeEvent("EV-1", 0)
	w.writeEvent("EV-2", cus.Account.ID)
	time.Sleep(2 * time.Millisecond) // a job ends before the moment it was made in
	counted, err := w.s.ReplayMany(ctx, ann, BulkInput{DryRun: true})
	require.NoError(t, err)
	require.Equal(t, []any{2, (*string)(nil)}, []any{counted.Count, counted.JobID})
	none, err := w.s.ReplayMany(ctx, ann, BulkInput{Status: string(cloud.OutboxFailed)})
	require.NoError(t, err)
	require.Nil(t, none.JobID)
	hers, err := w.s.ReplayMany(ctx, cus, BulkInput{})
	require.NoError(t, err)
	require.Equal(t, 1, hers.Count, "a customer's own")
	all, err := w.s.ReplayMany(ctx, ann, BulkInput{})
	require.NoError(t, err)
	for name, c := range map[string]struct {
		by cloud.Caller
		id string
	}{"the business's": {cus, *all.JobID}, "another customer's": {zoe, *hers.JobID}, "another business's": {rae, *all.JobID}, "none": {ann, "rpl_0"}} {
		_, err := w.s.FindReplay(ctx, c.by, JobInput{c.id})
		require.Equal(t, "WEBHOOK_REPLAY_NOT_FOUND", code(err), name)
		_, err = w.s.CancelReplay(ctx, c.by, JobInput{c.id})
		require.Equal(t, "WEBHOOK_REPLAY_NOT_FOUND", code(err), name)
	}
	_, err = w.s.ReplayMany(ctx, eve, BulkInput{})
	require.Equal(t, "ACCOUNT_TYPE_NOT_ALLOWED", code(err))
	_, err = w.s.FindReplay(ctx, eve, JobInput{*all.JobID})
	require.Equal(t, "ACCOUNT_TYPE_NOT_ALLOWED", code(err))
	job, err := w.s.FindReplay(ctx, ann, JobInput{*hers.JobID})
	require.NoError(t, err)
	require.Equal(t, []any{cloud.ReplayRunning, 1, 0}, []any{job.Status, job.Count, job.Sent}, "staff see a customer's jobs")
	cancelled, err := w.s.CancelReplay(ctx, ann, JobInput{*all.JobID})
	require.NoError(t, err)
	require.Equal(t, cloud.ReplayCancelled, cancelled.Status)
	again, err := w.s.CancelReplay(ctx, ann, JobInput{*all.JobID})
	require.NoError(t, err)
	require.Equal(t, cancelled, again, "one that has ended stays as it is")
	open, err := w.db.OpenReplays(ctx)
	require.NoError(t, err)
	require.Len(t, open, 1)
	for range 2 {
		for _, j := range open {
			require.NoError(t, w.s.step(ctx, j))
		}
		open, err = w.db.OpenReplays(ctx)
		require.NoError(t, err)
	}
	job, err = w.s.FindReplay(ctx, cus, JobInput{*hers.JobID})
	require.NoError(t, err)
	require.Equal(t, []any{cloud.ReplayDone, 1}, []any{job.Status, job.Sent})
	long := time.Now().Add(-replayBack - time.Hour).UTC().Format(time.RFC3339)
	for member, in := range map[string]BulkInput{"from": {From: long}, "to": {To: "x"}, "status": {Status: "pending"}} {
		refuses(w, ann, member, in, w.s.ReplayMany)
	}
}

func TestTestsAndCheckups(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	refuses(w, ann, "url", TestInput{}, w.s.Test)
	refuses(w, ann, "secret", TestInput{URL: good}, w.s.Test)
	given, err := w.s.Test(ctx, ann, TestInput{URL: good, Secret: longer, Scheme: cloud.SchemeProvider, Format: cloud.FormatBinary})
	require.NoError(t, err)
	require.True(t, given.Delivered)
	require.Equal(t, []any{good, longer, cloud.SchemeProvider, cloud.FormatBinary, good}, []any{w.sent[0].to.URL, string(w.sent[0].to.Secret), w.sent[0].to.Scheme, w.sent[0].to.Format, w.sent[0].work.Delivery.URL})
	require.Contains(t, string(w.sent[0].work.Event.Body), `"test":true`)
	id := int64(w.saveSettings(ann, `{"webhook_sign_secret":"`+secret+`","order_create_webhook_url":"https://a.example"}`).URLs[0].URLID)
	for i, in := range []TestInput{{}, {URLID: id}, {CustomerID: cus.Account.ID}} { // a customer without settings has the business's
		_, err = w.s.Test(ctx, ann, in)
		require.NoError(t, err)
		require.Equal(t, []any{"https://a.example", secret}, []any{w.sent[i+1].to.URL, string(w.sent[i+1].to.Secret)})
	}
	for member, in := range map[string]TestInput{"event": {Event: "order.vanished"}, "scheme": {Scheme: "x"}, "format": {Format: "xml"}, "secret": {Secret: "short"}} {
		refuses(w, ann, member, in, w.s.Test)
	}
	for name, c := range map[string]struct {
		by   cloud.Caller
		in   TestInput
		want string
	}{"blocked": {ann, TestInput{URL: "https://blocked.example"}, codeBlocked}, "an employee": {eve, TestInput{}, "ACCOUNT_TYPE_NOT_ALLOWED"}, "another business's": {rae, TestInput{URLID: id}, "WEBHOOK_URL_NOT_FOUND"},
		"no customer": {ann, TestInput{CustomerID: 999}, "CUSTOMER_NOT_FOUND"}} {
		_, err := w.s.Test(ctx, c.by, c.in)
		require.Equal(t, c.want, code(err), name)
	}

	w.sent, w.answer = nil, func(_ int, s send) cloud.OutboxResult { // verifies all
		if len(s.tweak.Body) > 0 || s.tweak.Age > 0 || string(s.to.Secret) != secret {
			return answered(401)
		}
		return answered(200)
	}
	preview := &cloud.Preview{}
	out, err := w.s.CheckUp(cloud.WithPreview(ctx, preview), ann, URLInput{id})
	require.NoError(t, err)
	require.Empty(t, w.sent, "a preview sends nothing")
	require.Len(t, preview.Effects(), len(checkup))
	require.Empty(t, out.Checks)
	out, err = w.s.CheckUp(ctx, ann, URLInput{id})
	require.NoError(t, err)
	require.Len(t, out.Checks, len(checkup))
	for i, k := range out.Checks {
		require.True(t, k.OK, "%+v", k)
		require.Equal(t, map[string]string{accepted: "200", refused: "401"}[k.Expected], k.Got)
		require.Equal(t, w.sent[i].work.Delivery.ID, k.LogID)
	}
	require.Equal(t, w.sent[0].work.Event.EventID, w.sent[4].work.Event.EventID, "the same again")
	w.answer = func(int, send) cloud.OutboxResult { return answered(200) } // verifies nothing
	out, err = w.s.CheckUp(ctx, ann, URLInput{id})
	require.NoError(t, err)
	for _, k := range out.Checks {
		require.Equal(t, k.Expected == accepted, k.OK, "%+v", k)
	}
	w.answer = func(int, send) cloud.OutboxResult {
		return cloud.OutboxResult{State: cloud.OutboxFailed, Reason: "no answer", Attempt: &cloud.OutboxAttempt{ErrorCode: "TIMEOUT"}}
	}
	out, err = w.s.CheckUp(ctx, ann, URLInput{id})
	require.NoError(t, err)
	require.Equal(t, []Check{{Name: "valid", Expected: accepted, Got: "TIMEOUT", LogID: out.Checks[0].LogID}}, out.Checks, "it ends with the first that nothing answers")
}

func TestWhatStaffSeeOfReceivers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	w.saveSettings(ann, `{"webhook_sign_secret":"`+secret+`","order_create_webhook_url":"https://a.example/path?token=abc"}`)
	w.saveSettings(cus, `{"order_create_webhook_url":"https://cus.example"}`)
	_, err := w.s.Save(ctx, pam, EndpointInput{URL: ptr("https://pam.example/in")})
	require.NoError(t, err)
	list, more, err := w.s.Receivers(ctx, ann)
	require.NoError(t, err)
	require.False(t, more)
	require.Len(t, list, 3)
	require.Equal(t, []any{"Cus", "Partner 7"}, []any{list[1].Customer, list[2].Partner})
	require.Equal(t, []bool{true, true, false}, []bool{list[0].Manages, list[1].Manages, list[2].Manages})
	for _, r := range list {
		require.Empty(t, r.Secret)
		require.NotContains(t, r.URL, "abc")
	}
	seen, _, err := w.s.Receivers(ctx, eve)
	require.NoError(t, err)
	require.NotContains(t, seen[0].URL, "path", "an employee sees the host")
	one, err := w.s.Receiver(ctx, eve, list[2].ID)
	require.NoError(t, err)
	require.NotContains(t, one.URL, "/in")
	one, err = w.s.Receiver(ctx, ann, list[2].ID)
	require.NoError(t, err)
	require.Contains(t, one.URL, "/in")
	work := w.writeEvent("EV-1", 0)[0]
	id := EntryInput{int64(work.Deliveries[0].ID)}
	whole, err := w.s.FindDeliveryView(ctx, ann, id)
	require.NoError(t, err)
	require.True(t, whole.Contents)
	require.Contains(t, whole.Body, "******")
	require.NotContains(t, whole.Body, "483920")
	part, err := w.s.FindDeliveryView(ctx, eve, id)
	require.NoError(t, err)
	require.Empty(t, part.Body)
	require.Error(t, part.Obstacle, "an employee sends nothing again")
	rows, err := w.s.BusinessLog(ctx, eve, cloud.BusinessLog{Limit: 10})
	require.NoError(t, err)
	require.Len(t, rows, 1)
	for _, c := range []cloud.Caller{cus, pam, {}} {
		_, _, err = w.s.Receivers(ctx, c)
		require.Equal(t, "ACCOUNT_TYPE_NOT_ALLOWED", code(err))
		_, err = w.s.Receiver(ctx, c, list[0].ID)
		require.Equal(t, "ACCOUNT_TYPE_NOT_ALLOWED", code(err))
		_, err = w.s.BusinessLog(ctx, c, cloud.BusinessLog{Limit: 10})
		require.Equal(t, "ACCOUNT_TYPE_NOT_ALLOWED", code(err))
		_, err = w.s.FindDeliveryView(ctx, c, id)
		require.Equal(t, "ACCOUNT_TYPE_NOT_ALLOWED", code(err))
	}
	_, err = w.s.Receiver(ctx, rae, list[0].ID)
	require.Equal(t, "WEBHOOK_URL_NOT_FOUND", code(err))
	_, err = w.s.FindDeliveryView(ctx, rae, id)
	require.Equal(t, "WEBHOOK_DELIVERY_NOT_FOUND", code(err))
	rows, err = w.s.BusinessLog(ctx, rae, cloud.BusinessLog{Limit: 10, BusinessID: 1})
	require.NoError(t, err)
	require.Empty(t, rows, "whatever is asked for")
}

func TestThePostbackOfABatch(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	postback := func(customer cloud.AccountID) (e cloud.Endpoint, err error) {
		return e, w.db.Decide(t.Context(), 0, func(v cloud.View) (*cloud.Changes, error) {
			if e, err = w.s.Postback(v, 1, customer, good); err != nil {
				return nil, err
			}
			return &cloud.Changes{HookChanges: cloud.HookChanges{Endpoints: []cloud.Endpoint{e}}}, nil
		})
	}
	_, err := postback(0)
	require.Equal(t, "VALIDATION_FAILED", code(err), "there is no secret to sign with")
	w.saveSettings(ann, `{"webhook_sign_secret":"`+secret+`"}`)
	first, err := postback(0)
	require.NoError(t, err)
	require.Equal(t, []any{cloud.PostbackEndpoint, good, statusFresh}, []any{first.Kind, first.URL, first.Status})
	paused := first
	paused.Status, paused.StatusReason = statusPaused, cloud.PausedByRule
	w.write(&cloud.Changes{HookChanges: cloud.HookChanges{Endpoints: []cloud.Endpoint{paused}}})
	again, err := postback(0)
	require.NoError(t, err)
	require.Equal(t, []any{first.ID, statusFresh, ""}, []any{again.ID, again.Status, again.StatusReason}, "its pause ends")
	_, err = postback(cus.Account.ID)
	require.Equal(t, "VALIDATION_FAILED", code(err), "a customer's level has its own secret")
	w.saveSettings(cus, `{"webhook_sign_secret":"`+longer+`"}`)
	hers, err := postback(cus.Account.ID)
	require.NoError(t, err)
	require.NotEqual(t, first.ID, hers.ID)
	require.NoError(t, w.s.CheckURL(t.Context(), good))
	require.Error(t, w.s.CheckURL(t.Context(), "http://r.example"))
}
