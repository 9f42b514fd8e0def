package api_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/cloud/mock"
	"github.com/postern-io/postern/cloud/store/storetest"
	"github.com/postern-io/postern/cloud/webtest"
	"github.com/postern-io/postern/protocol/passcode"
	"github.com/postern-io/postern/protocol/wire"
)

// mocksOf plays the mock cabinets of a world.
func mocksOf(t testing.TB, w *webtest.World) *mock.Service {
	return mock.New(mock.Config{Store: w.DB, Lockers: w.Lockers, Sealer: storetest.Box(t)})
}

// addMock adds the mock cabinet of the world's provider, device 91, in whose first
// compartment delivery 64023 waits.
func addMock(t testing.TB, w *webtest.World) {
	var p cloud.Provider
	require.NoError(t, w.DB.Look(t.Context(), func(v cloud.View) (err error) {
		p, err = v.Provider(17)
		return err
	}))
	now := time.Now().UTC()
	ids := map[cloud.IDKind]int64{cloud.DeviceIDs: 90, cloud.GridIDs: 9100}
	var ch cloud.Changes
	mocksOf(t, w).Rows(&ch, func(k cloud.IDKind) int64 { ids[k]++; return ids[k] }, w.Business, p, "MOCK-swiftparcel", now)
	ch.Mocks[0].State = []byte("of an older form") // its code list brings back what lies in it
	d := &ch.Devices[0]
	secrets, err := locker.OpenSecrets(storetest.Box(t), d.SealedCode)
	require.NoError(t, err)
	waiting := w.Delivery
	waiting.ID, waiting.Number, waiting.DeviceID, waiting.Reference, waiting.Livemode = 64023, "LD-000064023", d.ID, "SWP-REF-90", false
	waiting.Packages = []cloud.Package{{TrackingNumber: "SWP100200390", GridID: 9101, Status: cloud.PackageInCompartment, Size: "S"}}
	ch.Compartments[0].State, ch.Compartments[0].DeliveryID = cloud.GridOccupied, waiting.ID
	ch.Deliveries = []cloud.Delivery{waiting}
	d.CodeList = 1
	ch.Codes = []cloud.CodeRow{{DeviceID: d.ID, DeliveryID: waiting.ID, CreatedAt: now, Entry: wire.CodeEntry{Number: 1, Op: wire.CodeSet, Kind: wire.CodePickup, DeliveryRef: waiting.Number, Doors: []uint{1},
		Packages: map[uint][]string{1: {"SWP100200390"}}, Active: wire.ActiveNow, Verifier: passcode.Verifier(webtest.PickupCode, secrets.Salt, secrets.Key, secrets.Params)}}}
	w.Write(t, ch)
}
