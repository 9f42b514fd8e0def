package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
	"github.com/postern-io/postern/cloud/store"
	"github.com/postern-io/postern/cloud/store/storetest"
)

// world is two businesses on a database. The first has a partner for lockers
// (pam), one for orders (tom), an admin, an employee and two customers; sends
// are recorded, and answered as answer says.
type world struct {
	t      *testing.T
	db     *store.DB
	s      *Service
	sent   []send
	answer func(n int, s send) cloud.OutboxResult
	held   string
}

type send struct {
	to    cloud.Endpoint
	work  cloud.OutboxWork
	tweak cloud.HookTweak
}

const (
	good     = "https://r.example/hook"
	secret   = "0123456789abcdef"
	longer   = "another-secret-of-thirty-two-chars"
	orderNew = "order.created"
)

var (
	ann = cloud.Caller{Account: cloud.Account{ID: 10, BusinessID: 1, Type: cloud.ClientAdmin, Name: "Ann"}}
	eve = cloud.Caller{Account: cloud.Account{ID: 11, BusinessID: 1, Type: cloud.ClientEmployee, Name: "Eve"}}
	cus = cloud.Caller{Account: cloud.Account{ID: 12, BusinessID: 1, Type: cloud.Customer, Name: "Cus"}}
	zoe = cloud.Caller{Account: cloud.Account{ID: 13, BusinessID: 1, Type: cloud.Customer, Name: "Zoe"}}
	rae = cloud.Caller{Account: cloud.Account{ID: 20, BusinessID: 2, Type: cloud.ClientAdmin, Name: "Rae"}}
	pam = partner(30, 7, 1, cloud.ServiceLocker)
	tom = partner(31, 8, 1, cloud.ServiceThirdParty)
	ray = partner(32, 9, 2, cloud.ServiceLocker)
)

func partner(a cloud.AccountID, id cloud.ProviderID, b cloud.BusinessID, services ...string) cloud.Caller {
	return cloud.Caller{Account: cloud.Account{ID: a, BusinessID: b, Type: cloud.ProviderType, ProviderID: id},
		Provider: cloud.Provider{ID: id, BusinessID: b, Code: fmt.Sprint("p", id), Name: fmt.Sprint("Partner ", id), Services: services}}
}

func ptr[T any](v T) *T { return &v }

// CheckURL accepts https addresses, but for one host.
func (w *world) CheckURL(_ context.Context, url string) error {
	if !strings.HasPrefix(strings.ToLower(url), "https://") || strings.Contains(url, "blocked") {
		return errors.New("the address is not public")
	}
	return nil
}

// SendNow notes what is sent.
func (w *world) SendNow(_ context.Context, e cloud.Endpoint, work cloud.OutboxWork, tweak cloud.HookTweak) (cloud.OutboxResult, error) {
	w.sent = append(w.sent, send{e, work, tweak})
	return w.answer(len(w.sent), w.sent[len(w.sent)-1]), nil
}

// Held is the same for every address.
func (w *world) Held(cloud.BusinessID, string) (string, time.Time) { return w.held, time.Time{} }

func answered(status int) cloud.OutboxResult {
	r := cloud.OutboxResult{State: cloud.OutboxSuccess, Attempt: &cloud.OutboxAttempt{HTTPStatus: status, Duration: 7 * time.Millisecond}}
	if status >= 300 {
		r.State, r.Reason, r.Attempt.ErrorCode, r.Attempt.Error = cloud.OutboxFailed, "refused", "HTTP_STATUS", fmt.Sprint("status ", status)
	}
	return r
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, db: storetest.OpenSQLite(t), answer: func(int, send) cloud.OutboxResult { return answered(204) }}
	w.s = New(w.db, w).Sending(w, func(event string) (cloud.HookSample, bool) {
		data := json.RawMessage(`{"sample":true}`)
		switch {
		case event == orderNew:
			return cloud.HookSample{Settings: []string{cloud.HookOrderCreate}, ReferenceType: "order", Data: data}, true
		case kindFor(event) != "":
			return cloud.HookSample{Prefix: "LD-", ReferenceType: "locker_delivery", Data: data}, true
		}
		return cloud.HookSample{}, false
	})
	ch := &cloud.Changes{AccountChanges: cloud.AccountChanges{Businesses: []cloud.Business{{ID: 1, Code: "acme", Timezone: "America/Toronto"}, {ID: 2, Code: "rival", Timezone: "UTC"}}}}
	for _, c := range []cloud.Caller{ann, eve, cus, zoe, rae, pam, tom, ray} {
		a := c.Account
		a.Enabled = true
		ch.Accounts = append(ch.Accounts, a)
		if c.Provider.ID != 0 {
			ch.Providers = append(ch.Providers, c.Provider)
		}
	}
	w.write(ch)
	return w
}

func (w *world) write(ch *cloud.Changes) {
	w.t.Helper()
	require.NoError(w.t, w.db.Decide(w.t.Context(), 0, func(cloud.View) (*cloud.Changes, error) { return ch, nil }))
}

func (w *world) look(fn func(v cloud.View)) {
	w.t.Helper()
	require.NoError(w.t, w.db.Look(w.t.Context(), func(v cloud.View) error { fn(v); return nil }))
}

// actions are the audit lines of both businesses, oldest first.
func (w *world) actions() (out []string) {
	for b := cloud.BusinessID(1); b <= 2; b++ {
		rows, err := w.db.ListAudits(w.t.Context(), b, 0, 100)
		require.NoError(w.t, err)
		for _, r := range slices.Backward(rows) {
			require.NotContains(w.t, r.Audit.Detail+r.Audit.Target, secret)
			out = append(out, fmt.Sprint(r.Audit.Actor, " ", r.Audit.Action))
		}
	}
	return out
}

func code(err error) string {
	var e *cloud.Error
	if errors.As(err, &e) {
		return e.Code
	}
	return fmt.Sprint(err)
}

// refuses checks that an input is refused for a member, and that nothing changes:
// by its tags, as the catalogue does before it calls, or else by the feature.
func refuses[In, Out any](w *world, c cloud.Caller, member string, in In, call func(context.Context, cloud.Caller, In) (Out, error)) {
	w.t.Helper()
	before := w.actions()
	err := check.Input(&in)
	if err == nil {
		_, err = call(w.t.Context(), c, in)
	}
	var e *cloud.Error
	require.ErrorAs(w.t, err, &e, "%s: %+v", member, in)
	require.Equal(w.t, cloud.Invalid, e.Kind)
	require.Contains(w.t, e.Fields, member, "%+v", in)
	require.Equal(w.t, before, w.actions(), "a refused call changes nothing")
}

// settings reads an input as callers write it.
func settings(t *testing.T, text string) (in SettingsInput) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(text), &in))
	return in
}

func (w *world) saveSettings(c cloud.Caller, text string) SettingsOutput {
	w.t.Helper()
	out, err := w.s.SaveSettings(w.t.Context(), c, settings(w.t, text))
	require.NoError(w.t, err)
	return out
}
