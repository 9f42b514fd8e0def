package attack

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
)

// Each package of a partner's parcel had five guesses of its own at the digits of
// the one recipient, and each lock notified staff again.
func TestAttackDigitsAreGuessedPackageByPackage(t *testing.T) {
	t.Parallel()
	g := launch(t)
	numbers := []string{"BOX-1", "BOX-2", "BOX-3", "BOX-4"}
	require.NoError(t, g.server.Store.Decide(t.Context(), 0, func(v cloud.View) (*cloud.Changes, error) {
		id, err := v.NewID(cloud.DeviceIDs)
		if err != nil {
			return nil, err
		}
		d := cloud.Delivery{ID: 77_001, BusinessID: 1, ProviderID: g.box.ProviderCaller.Provider.ID, DeviceID: cloud.DeviceID(id), Number: "LD-000077001", Reference: "BOX", Status: cloud.DeliveryCreated, Recipient: cloud.Recipient{Name: "Ann Lee", Phone: "+14165550123"}, CreatedAt: time.Now().UTC()}
		ch := &cloud.Changes{DeviceChanges: cloud.DeviceChanges{Devices: []cloud.Device{{ID: d.DeviceID, BusinessID: 1, Code: "BOXES", Name: "Yard", Type: "smart_locker", Timezone: "UTC", Protocol: "mqtt"}}}}
		for _, n := range numbers {
			ship, err := v.NewID(cloud.ShipmentIDs)
			if err != nil {
				return nil, err
			}
			d.Packages = append(d.Packages, cloud.Package{TrackingNumber: n})
			ch.Shipments = append(ch.Shipments, cloud.Shipment{ID: cloud.ShipmentID(ship), BusinessID: 1, Number: n, External: n + "-EXT", ProviderID: d.ProviderID, DeliveryID: d.ID, Profile: "parcel", CreatedAt: d.CreatedAt})
		}
		ch.Deliveries = []cloud.Delivery{d}
		return ch, nil
	}))
	try := func(number, digits string) result {
		return g.must("GET", "/api/v1/tracking/"+number+"?verify="+digits, "", "")
	}
	looked := 0
	for i := range 20 {
		number := numbers[i%len(numbers)] + []string{"", "-EXT"}[i/4%2]
		if try(number, fmt.Sprintf("%04d", 9000+i)).text("access.verify") == "wrong" {
			looked++
		}
	}
	require.Equal(t, 5, looked, "one parcel has one budget")
	for _, n := range numbers {
		require.Equal(t, "locked", try(n, "0123").text("access.verify"))
	}
	unlock := func() {
		require.NoError(t, g.server.Store.Decide(t.Context(), 0, func(v cloud.View) (*cloud.Changes, error) {
			s, err := v.ShipmentByNumber(numbers[0])
			if err != nil {
				return nil, err
			}
			x, err := v.ProofGuesses(s.ID)
			x.LockedUntil = time.Now().Add(-time.Second)
			return &cloud.Changes{TrackingChanges: cloud.TrackingChanges{ProofGuesses: []cloud.ProofGuesses{x}}}, err
		}))
	}
	for round := range 2 { // the same attack goes on when the lock ends
		unlock()
		for i := range 5 {
			require.Equal(t, "wrong", try(numbers[(i+round)%4], fmt.Sprintf("%04d", 8000+10*round+i)).text("access.verify"))
		}
	}
	require.Equal(t, "locked", try(numbers[3], "0123").text("access.verify"))
	require.Equal(t, 1, strings.Count(g.log.String(), "recipient check locked"), "staff are told of an attack once")
	console := g.signIn(g.box.Admin).send("GET", "/console", nil).raw
	shown := 0
	for _, n := range numbers {
		if strings.Contains(console, n) {
			shown++
		}
	}
	require.Positive(t, shown)
}
