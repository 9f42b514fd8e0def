package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/store"
	"github.com/postern-io/postern/protocol/wire"
)

// cabinets are found by state, type and text, in every order, by pages; what is new
// of them is kept whole.
func cabinets(t *testing.T, db *store.DB) {
	c := &cloud.Changes{}
	for n := range 6 {
		d := device(cloud.DeviceID(n + 1))
		d.Name, d.Address = []string{"Pier", "Hall", "100%_Mall", "Pier West", "Yard", "Shed"}[n], "7 Quay St"
		d.Profile = cloud.DeviceProfile{Hours: []cloud.OpeningHours{{Day: n, Open: "08:00", Close: "20:00"}}, Guide: &cloud.IndoorGuide{Text: "left", Photos: []string{"https://a.example/1.jpg"}},
			Features: cloud.DeviceFeatures{Screen: true}}
		c.Devices = append(c.Devices, d)
	}
	c.Devices[1].Type = "kiosk"
	c.Devices[0].EnrolledAt = now
	c.Devices[0].PostalCode, c.Devices[0].Country = "M5V 2T6", "CA"
	c.Devices[3].PostalCode, c.Devices[3].Country = "m5v2t6", "DE"
	c.Devices[4].PostalCode, c.Devices[4].Country = "10115", "DE"
	c.Devices[2].Disabled = true
	c.Devices[3].MaintenanceAt = now
	c.Devices[4].RetiredAt, c.Devices[4].Disabled = now, true
	c.Devices[5].BusinessID = 2
	c.Sessions = []cloud.Session{{DeviceID: 1, Generation: 1, Online: true}, {DeviceID: 4, Generation: 1, Online: true}}
	write(t, db, 0, c)
	list := func(f cloud.DeviceFilter) (ids []cloud.DeviceID) {
		f.BusinessID = 1
		if f.Limit == 0 {
			f.Page = cloud.Page{Sort: "id", Limit: 10}
		}
		look(t, db, func(v cloud.View) {
			rows, listed, err := v.Devices(f)
			require.NoError(t, err)
			if f.After == nil && listed.Next == nil {
				require.Equal(t, len(rows), listed.Total)
			}
			for _, d := range rows {
				ids = append(ids, d.ID)
			}
		})
		return ids
	}
	type ids = []cloud.DeviceID
	require.Equal(t, ids{1, 2, 3, 4}, list(cloud.DeviceFilter{}))
	require.Equal(t, ids{1}, list(cloud.DeviceFilter{Status: cloud.StatusOnline}))
	require.Equal(t, ids{2}, list(cloud.DeviceFilter{Status: cloud.StatusOffline}))
	require.Equal(t, ids{3}, list(cloud.DeviceFilter{Status: cloud.StatusDisabled}))
	require.Equal(t, ids{4}, list(cloud.DeviceFilter{Status: cloud.StatusMaintenance}))
	require.Equal(t, ids{5}, list(cloud.DeviceFilter{Status: cloud.StatusRetired}))
	require.Equal(t, ids{2}, list(cloud.DeviceFilter{Type: "kiosk"}))
	require.Equal(t, ids{1, 4}, list(cloud.DeviceFilter{Keyword: "pIER"}))
	require.Equal(t, ids{3}, list(cloud.DeviceFilter{Keyword: "0%_m"}))
	require.Equal(t, ids{1, 4}, list(cloud.DeviceFilter{PostalCode: cloud.PostalKey(" m5V 2t6 ")}))
	require.Equal(t, ids{4}, list(cloud.DeviceFilter{PostalCode: "M5V2T6", Country: "DE"}))
	require.Empty(t, list(cloud.DeviceFilter{PostalCode: "M5V2"}), "a part of one is none")
	require.Empty(t, list(cloud.DeviceFilter{Keyword: "r_w"}), "_ stands for itself")
	require.Equal(t, ids{4, 1, 2, 3}, list(cloud.DeviceFilter{Page: cloud.Page{Sort: "name", Down: true, Limit: 10}}))
	require.Equal(t, ids{2, 3}, list(cloud.DeviceFilter{Page: cloud.Page{Sort: "code", Limit: 2, After: &cloud.Mark{Key: "CAB-1", ID: int64(1)}}}))
	look(t, db, func(v cloud.View) {
		d, err := v.Device(5)
		require.NoError(t, err)
		require.Equal(t, c.Devices[4], d)
	})
	write(t, db, 0, &cloud.Changes{LockerChanges: cloud.LockerChanges{Compartments: []cloud.Compartment{
		{GridID: 1, DeviceID: 1, Door: 1, Column: 1, Row: 1, PickupEnabled: true, State: cloud.GridFree},
		{GridID: 2, DeviceID: 1, Door: 2, State: cloud.GridBlocked, BlockReason: cloud.BlockRemoved}}}})
	counts, err := db.ListOccupancy(t.Context(), 1)
	require.NoError(t, err)
	require.Equal(t, store.Occupancy{DeviceID: 1, Total: 1, Free: 1}, counts[0], "not the removed one")
	all, err := db.ListDevices(t.Context(), 1, 0, 10)
	require.NoError(t, err)
	require.Len(t, all, 4, "not the retired one")

	post := device(7)
	post.Type, post.Public, post.EnrolledAt = cloud.TypeScanPost, true, now
	write(t, db, 0, &cloud.Changes{DeviceChanges: cloud.DeviceChanges{Seen: []cloud.DeviceSeen{{DeviceID: 1, StatusAt: now}}}})
	require.NotContains(t, list(cloud.DeviceFilter{UsableBy: 1}), cloud.DeviceID(1), "it has come and applied no configuration")
	write(t, db, 0, &cloud.Changes{DeviceChanges: cloud.DeviceChanges{Seen: []cloud.DeviceSeen{{DeviceID: 1, Applied: 1}}}})
	write(t, db, 0, &cloud.Changes{DeviceChanges: cloud.DeviceChanges{Devices: []cloud.Device{post}}})
	require.Equal(t, ids{7}, list(cloud.DeviceFilter{Type: cloud.TypeScanPost}))
	require.NotContains(t, list(cloud.DeviceFilter{UsableBy: 1}), cloud.DeviceID(7), "no provider uses a post")
	require.Contains(t, list(cloud.DeviceFilter{UsableBy: 1}), cloud.DeviceID(1))
	require.NotContains(t, list(cloud.DeviceFilter{UsableBy: 1}), cloud.DeviceID(2), "nor one that was never enrolled")
	require.Empty(t, list(cloud.DeviceFilter{Public: true}), "it is no pickup point")
	counts, err = db.ListOccupancy(t.Context(), 1)
	require.NoError(t, err)
	for _, o := range counts {
		require.NotEqual(t, cloud.DeviceID(7), o.DeviceID, "it has no compartments to count")
	}
}

// The history of a cabinet's doors is that of its openings since a time, newest first,
// by pages that neither repeat nor leave out.
func doorHistory(t *testing.T, db *store.DB) {
	c := &cloud.Changes{}
	for n := range 7 {
		at := now.Add(time.Duration(n/2) * time.Second) // two at a time
		c.Openings = append(c.Openings, cloud.Opening{ID: fmt.Sprint("op_", n), BusinessID: 1, DeviceID: cloud.DeviceID(1 + n/6), Kind: wire.OpenStaff, State: cloud.OpeningEnded, Reason: "why", RequestedAt: at, DeliveryID: cloud.DeliveryID(7 * (1 - n%2) * min(n/2, 1))})
	}
	write(t, db, 0, c)
	var seen []string
	p := cloud.Page{Limit: 2}
	for range 4 {
		look(t, db, func(v cloud.View) {
			rows, listed, err := v.DoorHistory(1, 0, now.Add(time.Second), p)
			require.NoError(t, err)
			require.Equal(t, 4, listed.Total)
			for _, o := range rows {
				seen = append(seen, o.ID)
			}
			p.After = listed.Next
		})
		if p.After == nil {
			break
		}
	}
	require.Equal(t, []string{"op_5", "op_4", "op_3", "op_2"}, seen)
	look(t, db, func(v cloud.View) {
		rows, _, err := v.DoorHistory(1, 7, time.Time{}, cloud.Page{Limit: 9})
		require.NoError(t, err)
		require.Len(t, rows, 2, "those of one delivery")
		require.Equal(t, "op_4", rows[0].ID)
	})
}
