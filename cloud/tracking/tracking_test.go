package tracking_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/tracking"
	"github.com/postern-io/postern/cloud/webtest"
	"github.com/postern-io/postern/protocol/otep"
)

func owner() cloud.Caller {
	return cloud.Caller{Account: cloud.Account{ID: 20, BusinessID: 42, Type: cloud.ProviderType}, Provider: cloud.Provider{ID: 17, BusinessID: 42}}
}

func shown(t *testing.T, s *tracking.Service, c cloud.Caller, in tracking.PublicInput) map[string]any {
	t.Helper()
	out, err := s.Public(t.Context(), c, in)
	require.NoError(t, err)
	b, err := json.Marshal(out)
	require.NoError(t, err)
	for _, secret := range []string{webtest.PickupCode, webtest.DeliveryCode, "Secret Lane", "M5V", "555 0123"} {
		require.NotContains(t, string(b), secret)
	}
	var m map[string]any
	require.NoError(t, json.Unmarshal(b, &m))
	return m
}

func TestPublicAnswerHasItsShape(t *testing.T) {
	t.Parallel()
	w := webtest.New(t)
	s := tracking.New(w.DB)
	m := shown(t, s, cloud.Caller{Language: "en"}, tracking.PublicInput{Number: strings.ToLower(webtest.Waiting)})
	for _, key := range []string{"result", "tracking_number", "external_tracking_number", "order_ref", "family", "type", "order_status_id", "order_status", "otep_status",
		"status_label", "scheduled_date", "time_window", "eta", "stops_before", "recipient", "carrier", "driver", "packages", "events", "proof", "locker", "chat", "business", "status_at", "access"} {
		require.Contains(t, m, key)
	}
	require.Len(t, m, 25, "and nothing else")
	for _, null := range []string{"order_ref", "type", "order_status_id", "order_status", "scheduled_date", "time_window", "eta", "stops_before", "driver"} {
		require.Nil(t, m[null], null)
	}
	require.Equal(t, "device", m["family"])
	require.Equal(t, "x-available_for_pickup", m["otep_status"])
	require.Equal(t, "Ready for collection", m["status_label"])
	require.Equal(t, "J*** S***", m["recipient"].(map[string]any)["name"])
	require.Equal(t, "Swift Parcel", m["carrier"].(map[string]any)["name"])
	l := m["locker"].(map[string]any)
	require.Nil(t, l["pickup_locker_code"], "behind which door it lies is for its recipient")
	require.Equal(t, "A-3", shown(t, s, owner(), tracking.PublicInput{Number: webtest.Waiting})["locker"].(map[string]any)["pickup_locker_code"])
	require.Equal(t, "waiting", l["status"])
	require.Len(t, l, 9)
	events := m["events"].([]any)
	require.Len(t, events, 3)
	first := events[0].(map[string]any)
	require.Equal(t, "x-available_for_pickup", first["tracking_event_key"], "newest first")
	require.EqualValues(t, 46, first["tracking_event_status_id"])
	require.Equal(t, "Start delivery", events[1].(map[string]any)["description"])
	require.Nil(t, events[1].(map[string]any)["location"].(map[string]any)["name"], "an address is reduced to its city")
}

func TestWhoSeesTheName(t *testing.T) {
	t.Parallel()
	w := webtest.New(t)
	s := tracking.New(w.DB)
	name := func(c cloud.Caller, verify string) any {
		return shown(t, s, c, tracking.PublicInput{Number: webtest.Waiting, Verify: verify})["recipient"].(map[string]any)["name"]
	}
	typed := func(typ cloud.AccountType, b cloud.BusinessID) cloud.Caller {
		return cloud.Caller{Account: cloud.Account{ID: 9, BusinessID: b, Type: typ}, Provider: cloud.Provider{ID: 18}}
	}
	for _, c := range []cloud.Caller{owner(), typed(cloud.ClientAdmin, 42), typed(cloud.ClientEmployee, 42)} {
		require.Equal(t, "Jane Smith", name(c, ""))
	}
	require.Equal(t, "J*** S***", name(typed(cloud.PlatformAdmin, 0), ""), "an operator without a pass is a stranger")
	require.Equal(t, "Jane Smith", name(cloud.Caller{}, "0123"))
	for _, c := range []cloud.Caller{{}, typed(cloud.ClientAdmin, 43), typed(cloud.ProviderType, 43), typed(cloud.Customer, 42), typed(cloud.Broker, 42)} {
		for _, verify := range []string{"", "9999", "123", "10123", "01 23"} {
			require.Equal(t, "J*** S***", name(c, verify))
		}
	}
}

func TestWhatEndedLongAgoIsNotPublic(t *testing.T) {
	t.Parallel()
	w := webtest.New(t)
	s := tracking.New(w.DB)
	var e *cloud.Error
	_, err := s.Public(t.Context(), cloud.Caller{}, tracking.PublicInput{Number: webtest.Old})
	require.ErrorAs(t, err, &e)
	require.Equal(t, "TRACKING_NOT_FOUND", e.Code)
	_, err = s.Timeline(t.Context(), cloud.Caller{}, tracking.TimelineInput{Number: webtest.Old})
	require.ErrorAs(t, err, &e)
	require.Equal(t, "OTEP_TRACKING_NOT_FOUND", e.Code)
	out, err := s.Public(t.Context(), owner(), tracking.PublicInput{Number: webtest.Old})
	require.NoError(t, err, "its owner still sees it")
	require.True(t, out.Terminal)
	for _, bad := range []string{"", "  ", strings.Repeat("A", 65), "\xff"} {
		_, err := s.Public(t.Context(), cloud.Caller{}, tracking.PublicInput{Number: bad})
		require.ErrorAs(t, err, &e)
		require.Equal(t, cloud.NotFound, e.Kind)
	}
}

func TestTimelineIsWholeInOrderAndReduced(t *testing.T) {
	t.Parallel()
	w := webtest.New(t)
	s := tracking.New(w.DB)
	out, err := s.Timeline(t.Context(), cloud.Caller{Language: "fr"}, tracking.TimelineInput{Number: webtest.Waiting})
	require.NoError(t, err)
	require.False(t, out.Private)
	data := out.Data.(otep.Timeline)
	require.Equal(t, otep.AvailableForPickup, *data.Current)
	codes := fmt.Sprint(data.Events[0].StatusCode, data.Events[1].StatusCode, data.Events[2].StatusCode)
	require.Equal(t, "information_submittedout_for_deliveryx-available_for_pickup", strings.ReplaceAll(codes, " ", ""))
	require.Equal(t, "Prêt à retirer", data.Events[2].StatusLabel)
	require.Equal(t, otep.Location{City: "Toronto", Country: "CA", Type: "address"}, *data.Events[1].Location)
	require.Equal(t, "Front St Lobby", data.Events[2].Location.Name)
	out, err = s.Timeline(t.Context(), owner(), tracking.TimelineInput{Number: webtest.Waiting})
	require.NoError(t, err)
	require.True(t, out.Private)
	require.Equal(t, "9 Secret Lane", out.Data.(otep.Timeline).Events[1].Location.Address)
}

func TestAParcelThatIsOnlyAnnouncedHasNoLocker(t *testing.T) {
	t.Parallel()
	w := webtest.New(t)
	out, err := tracking.New(w.DB).Public(t.Context(), cloud.Caller{}, tracking.PublicInput{Number: webtest.Announced})
	require.NoError(t, err)
	require.Nil(t, out.Locker)
	require.Equal(t, "Union Station East", out.Device.Name)
	require.False(t, out.Device.Online)
	require.WithinDuration(t, time.Now().Add(-26*time.Hour), out.Device.LastSeenAt, time.Minute)
}

func TestPickedUpAndTakenOutParcels(t *testing.T) {
	t.Parallel()
	w := webtest.New(t)
	s := tracking.New(w.DB)
	for status, want := range map[cloud.PackageStatus]string{cloud.PackagePickedUp: "collected", cloud.PackageReturned: "returned", cloud.PackageInCompartment: "waiting"} {
		d := w.Delivery
		d.Packages = append([]cloud.Package(nil), d.Packages...)
		d.Packages[0].Status = status
		w.Write(t, cloud.Changes{LockerChanges: cloud.LockerChanges{Deliveries: []cloud.Delivery{d}}})
		out, err := s.Public(t.Context(), cloud.Caller{}, tracking.PublicInput{Number: webtest.Waiting})
		require.NoError(t, err)
		require.Equal(t, want, out.Locker.Status)
	}
	d := w.Delivery
	d.Status = cloud.DeliveryExpired
	w.Write(t, cloud.Changes{LockerChanges: cloud.LockerChanges{Deliveries: []cloud.Delivery{d}}})
	out, err := s.Public(t.Context(), cloud.Caller{}, tracking.PublicInput{Number: webtest.Waiting})
	require.NoError(t, err)
	require.Equal(t, "overdue", out.Locker.Status)
}
