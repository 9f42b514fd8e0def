package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/store"
)

// Settings come back as they were, level by level, and addresses are signed for
// with their level's secrets, or where that has none the business's.
func webhookSettings(t *testing.T, db *store.DB) {
	own := cloud.WebhookSettings{BusinessID: 42, Secret: []byte("the secret of 42"), SecretNext: []byte("and its next one"), NextUntil: now.Add(time.Hour),
		URLs: map[string][]cloud.HookURL{cloud.HookOrderCreate: {{EndpointID: 7, URL: "https://a.example/"}}, cloud.HookPostback: {}}, LifecycleEvents: []string{"order.*"}, DeviceEvents: []string{"device_order.stored"}, TrackingEvents: []string{"tracking.*"}, PlaceEvery: 30 * time.Second, Off: true}
	theirs := cloud.WebhookSettings{BusinessID: 42, CustomerID: 3, Secret: []byte("the secret of 3!")}
	bare := cloud.WebhookSettings{BusinessID: 42, CustomerID: 4, URLs: map[string][]cloud.HookURL{cloud.HookOrderCreate: {}}}
	rival := cloud.WebhookSettings{BusinessID: 43, CustomerID: 3, Secret: []byte("the secret of 43")}
	var endpoints []cloud.Endpoint
	for i, customer := range []cloud.AccountID{0, 3, 4} {
		endpoints = append(endpoints, cloud.Endpoint{ID: cloud.EndpointID(70 + i), BusinessID: 42, CustomerID: customer, Kind: cloud.AccountEndpoint, URL: "https://a.example/",
			Events: []string{"*"}, Enabled: true, Status: "healthy", CreatedAt: now, Format: cloud.FormatBinary, Signature: cloud.SignatureAsymmetric, SigningKey: []byte("a seed")})
	}
	alone := cloud.Endpoint{ID: 73, BusinessID: 44, Kind: cloud.PostbackEndpoint, Events: []string{"*"}}
	partner := cloud.Endpoint{ID: 74, BusinessID: 42, ProviderID: 17, Kind: "locker_provider", Events: []string{"*"}, Secret: []byte("a provider's own")}
	write(t, db, 0, &cloud.Changes{HookChanges: cloud.HookChanges{WebhookSettings: []cloud.WebhookSettings{own, theirs, bare, rival}, Endpoints: append(endpoints[:3:3], alone, partner)}})
	look(t, db, func(v cloud.View) {
		for _, want := range []cloud.WebhookSettings{own, theirs, bare, rival} {
			got, err := v.WebhookSettings(want.BusinessID, want.CustomerID)
			require.NoError(t, err)
			require.Equal(t, want, got)
		}
		_, err := v.WebhookSettings(43, 0)
		require.ErrorIs(t, err, cloud.ErrNotFound)
		list, err := v.AccountEndpoints(42)
		require.NoError(t, err)
		require.Equal(t, endpoints, list, "no provider's")
	})
	for id, want := range map[cloud.EndpointID]cloud.WebhookSettings{70: own, 71: theirs, 72: own, 73: {}, 74: {Secret: partner.Secret}} {
		e, err := db.FindEndpoint(t.Context(), id)
		require.NoError(t, err)
		require.Equal(t, []any{want.Secret, want.SecretNext, want.NextUntil}, []any{e.Secret, e.SecretNext, e.NextUntil}, id)
		if id < 73 {
			require.Equal(t, []any{cloud.FormatBinary, cloud.SignatureAsymmetric, []byte("a seed")}, []any{e.Format, e.Signature, e.SigningKey}, id)
		}
	}
	write(t, db, 0, &cloud.Changes{HookChanges: cloud.HookChanges{WebhookSettings: []cloud.WebhookSettings{bare2(own)}}})
	look(t, db, func(v cloud.View) {
		got, err := v.WebhookSettings(42, 0)
		require.NoError(t, err)
		require.Equal(t, bare2(own), got, "replaced as a whole")
	})
}

func bare2(s cloud.WebhookSettings) cloud.WebhookSettings {
	return cloud.WebhookSettings{BusinessID: s.BusinessID, Secret: s.SecretNext}
}

// accountEvent is one delivery of the account channel.
func accountEvent(n int, b cloud.BusinessID, customer cloud.AccountID) cloud.OutboxWrite {
	w := event(n, 70)
	e, d := &w.Event, &w.Deliveries[0]
	e.EventID, e.Event, e.BusinessID, e.ProviderID, e.Channel, e.ReferenceType = fmt.Sprintf("OSC-%d", n), "order.status_change", b, 0, cloud.ChannelAccount, "order"
	d.EventID, d.BusinessID, d.WebhookID, d.Setting, d.CustomerID = e.EventID, b, e.EventID, cloud.HookStatusChange, customer
	return w
}

// The account channel's log is by business, and within it by customer; no account
// sees a provider's there, and no account sends again what is another's.
func accountLog(t *testing.T, db *store.DB) {
	c := &cloud.Changes{}
	for n := 1; n <= 9; n++ {
		c.Outbox = append(c.Outbox, accountEvent(n, 42, cloud.AccountID(n%3)))
	}
	c.Outbox = append(c.Outbox, accountEvent(20, 43, 1), event(30, 3), event(31, 4), event(32, 4))
	for id, kind := range map[cloud.EndpointID]string{3: cloud.LockerEndpoint, 4: cloud.ThirdPartyEndpoint, 70: cloud.AccountEndpoint} {
		c.Endpoints = append(c.Endpoints, cloud.Endpoint{ID: id, BusinessID: 42, Kind: kind})
	}
	write(t, db, 0, c)
	f := func(f cloud.AccountLog, total int, want ...int) {
		t.Helper()
		if f.BusinessID == 0 {
			f.BusinessID = 42
		}
		if f.Limit == 0 {
			f.Limit = 100
		}
		n, rows, err := db.ListAccountOutbox(t.Context(), f)
		require.NoError(t, err)
		require.Equal(t, total, n.Total)
		requireWalk(t, cloud.Page{Limit: 2}, func(p cloud.Page) (cloud.Listed, []cloud.OutboxRow, error) {
			f := f
			f.Page = p
			return db.ListAccountOutbox(t.Context(), f)
		})
		var got []int
		for _, r := range rows {
			got = append(got, int(r.Delivery.ID)/10)
			require.Equal(t, cloud.HookStatusChange, r.Delivery.Setting)
			require.Nil(t, r.Event.Body)
		}
		require.Equal(t, want, got)
	}
	f(cloud.AccountLog{}, 9, 9, 8, 7, 6, 5, 4, 3, 2, 1)
	f(cloud.AccountLog{Page: cloud.Page{Limit: 2, Offset: 3}}, 9, 6, 5)
	f(cloud.AccountLog{Page: cloud.Page{Offset: 100}}, 9)
	f(cloud.AccountLog{CustomerID: 1}, 3, 7, 4, 1)
	f(cloud.AccountLog{BusinessID: 43}, 1, 20)
	f(cloud.AccountLog{ReferenceID: "64001"}, 3, 7, 4, 1)
	f(cloud.AccountLog{ReferenceID: "64001", CustomerID: 2}, 0)
	f(cloud.AccountLog{ReferenceType: "batch"}, 0)
	f(cloud.AccountLog{EndpointID: 70, From: now.Add(9 * time.Second)}, 1, 9)
	f(cloud.AccountLog{EndpointID: 71}, 0)
	f(cloud.AccountLog{State: cloud.OutboxFailed}, 0)
	f(cloud.AccountLog{Event: "order.status_change", State: cloud.OutboxPending, ReferenceType: "order", From: now.Add(3 * time.Second), To: now.Add(5 * time.Second)}, 2, 4, 3)
	_, _, err := db.ListAccountOutbox(t.Context(), cloud.AccountLog{Page: cloud.Page{Limit: 1}})
	require.Error(t, err, "tenants are never mixed")

	counts, err := db.OutboxWaiting(t.Context())
	require.NoError(t, err)
	waiting := map[string]int64{}
	for _, c := range counts {
		require.Equal(t, cloud.OutboxPending, c.State)
		waiting[c.Channel] = c.Count
	}
	require.Equal(t, map[string]int64{cloud.ChannelAccount: 10, cloud.ChannelLocker: 1, cloud.ChannelThirdParty: 2}, waiting)

	for _, o := range []cloud.OutboxOwner{{}, {ProviderID: 17}, {BusinessID: 43}, {BusinessID: 42, CustomerID: 2}} {
		_, err := db.Redeliver(t.Context(), o, 10, 1000, "", now, nil)
		require.ErrorIs(t, err, cloud.ErrNotFound, "%+v", o)
	}
	_, err = db.Redeliver(t.Context(), cloud.OutboxOwner{BusinessID: 42}, 300, 1000, "", now, nil)
	require.ErrorIs(t, err, cloud.ErrNotFound, "a provider's")
	for i, o := range []cloud.OutboxOwner{{BusinessID: 42}, {BusinessID: 42, CustomerID: 1}} {
		w, err := db.Redeliver(t.Context(), o, 10, cloud.OutboxID(1000+i), "", now, nil)
		require.NoError(t, err)
		d := w.Delivery
		require.Equal(t, []any{cloud.HookStatusChange, cloud.AccountID(1), 1}, []any{d.Setting, d.CustomerID, d.MaxAttempts})
	}
}

// The rows of a job inside a decision, in their order.
func jobRowsInView(t *testing.T, db *store.DB) {
	c := &cloud.Changes{JobChanges: cloud.JobChanges{Jobs: []cloud.Job{{ID: "bat_1", BusinessID: 42, CreatedAt: now}, {ID: "bat_2", BusinessID: 42, CreatedAt: now}}}}
	for i := range 12 {
		c.JobRows = append(c.JobRows, cloud.JobRow{JobID: fmt.Sprint("bat_", 1+i%2), Row: 12 - i, Input: []byte("{}")})
	}
	write(t, db, 0, c)
	look(t, db, func(v cloud.View) {
		rows, err := v.JobRows("bat_1")
		require.NoError(t, err)
		var numbers []int
		for _, r := range rows {
			numbers = append(numbers, r.Row)
		}
		require.Equal(t, []int{2, 4, 6, 8, 10, 12}, numbers)
	})
}
