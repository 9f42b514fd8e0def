package storetest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/store"
	"github.com/postern-io/postern/protocol/wire"
)

// staffCodes are due by their day, by what their members may, and by what cabinets' lists lack.
func staffCodes(t *testing.T, db *store.DB) {
	person := func(id cloud.AccountID, typ cloud.AccountType, permissions ...string) cloud.Account {
		return cloud.Account{ID: id, BusinessID: 1, Type: typ, Email: string(rune('a'+id)) + "@1.example", Enabled: true, Permissions: permissions, CreatedAt: now}
	}
	code := func(id cloud.StaffCodeID, of cloud.AccountID) cloud.StaffCode {
		c := cloud.StaffCode{AccountID: of, Day: "2026-11-20", StartsAt: now, EndsAt: now.Add(24 * time.Hour), Sealed: []byte{1}}
		c.Begin(int64(id), 1, now)
		return c
	}
	enrolled := func(id cloud.DeviceID) cloud.Device {
		d := device(id)
		d.EnrolledAt, d.CodeList, d.SealedCode, d.Protocol = now, 5, []byte{1}, cloud.ProtocolMQTT
		return d
	}
	mock, retired, other, never := enrolled(2), enrolled(3), enrolled(4), enrolled(5)
	mock.Protocol, retired.RetiredAt, other.BusinessID, never.EnrolledAt = cloud.ProtocolMock, now, 2, time.Time{}
	lost := person(2, cloud.ClientEmployee, "lockers:read")
	all := []cloud.Account{person(1, cloud.ClientAdmin), person(3, cloud.ClientEmployee, "orders:read", "lockers:write"), person(4, cloud.ClientEmployee, "*")}
	write(t, db, 0, &cloud.Changes{AccountChanges: cloud.AccountChanges{Businesses: []cloud.Business{{ID: 1, Code: "a"}, {ID: 2, Code: "b"}}, Accounts: append(all, lost)},
		DeviceChanges: cloud.DeviceChanges{Devices: []cloud.Device{enrolled(1), mock, retired, other, never}},
		RowChanges:    cloud.RowChanges{Rows: cloud.AsRows([]cloud.StaffCode{code(1, 1), code(3, 3), code(4, 4)})},
		LockerChanges: cloud.LockerChanges{StaffRotas: []cloud.StaffRota{{BusinessID: 1, NextAt: now.Add(time.Hour)}}}})
	rotas := func(at time.Time, want ...cloud.BusinessID) {
		t.Helper()
		got, err := db.ListDueStaffRotas(t.Context(), at, 10)
		require.NoError(t, err)
		require.ElementsMatch(t, want, got)
	}
	rotas(now)
	rotas(now.Add(time.Hour), 1)
	save := func(c cloud.StaffCode) {
		write(t, db, 0, &cloud.Changes{RowChanges: cloud.RowChanges{Rows: cloud.AsRows([]cloud.StaffCode{c})}})
	}
	gone := code(2, 2)
	save(gone)
	rotas(now, 1)
	rotas(gone.EndsAt.Add(time.Second), 1) // the next day alone
	gone.DroppedAt = now
	save(gone)
	rotas(now)
	all[2].Enabled = false
	write(t, db, 0, &cloud.Changes{AccountChanges: cloud.AccountChanges{Accounts: all[2:]}})
	rotas(now, 1)

	lists := func(want ...cloud.DeviceID) {
		t.Helper()
		got, err := db.ListDueStaffLists(t.Context(), 0, 10)
		require.NoError(t, err)
		require.ElementsMatch(t, want, got)
		got, err = db.ListDueStaffLists(t.Context(), 1, 10)
		require.NoError(t, err)
		require.Empty(t, got)
	}
	reach := func(all, waiting int) {
		t.Helper()
		look(t, db, func(v cloud.View) {
			x, y, err := v.StaffReach(1)
			require.NoError(t, err)
			require.Equal(t, []int{all, waiting}, []int{x, y})
			x, y, err = v.StaffReach(2)
			require.NoError(t, err)
			require.Zero(t, x+y)
		})
	}
	lists(1)
	reach(1, 1)
	old := cloud.CodeRow{DeviceID: 1, StaffCodeID: 1, CreatedAt: now, DroppedAt: time.Now().Add(-91 * 24 * time.Hour), Entry: wire.CodeEntry{Number: 1, Op: wire.CodeSet, Kind: wire.CodeStaff}}
	kept := cloud.CodeRow{DeviceID: 1, StaffCodeID: 3, CreatedAt: now, DroppedAt: time.Now().Add(-89 * 24 * time.Hour), Entry: wire.CodeEntry{Number: 2, Op: wire.CodeSet, Kind: wire.CodeStaff}}
	delivery := cloud.CodeRow{DeviceID: 1, DeliveryID: 7, CreatedAt: now, DroppedAt: old.DroppedAt, Entry: wire.CodeEntry{Number: 3, Op: wire.CodeSet, Kind: wire.CodePickup}}
	write(t, db, 0, &cloud.Changes{LockerChanges: cloud.LockerChanges{Codes: []cloud.CodeRow{old, kept, delivery}}})
	look(t, db, func(v cloud.View) {
		r, err := v.StaffRota(1)
		require.NoError(t, err)
		require.EqualValues(t, 1, r.Version)
		_, err = v.StaffRota(2)
		require.ErrorIs(t, err, cloud.ErrNotFound)
		l, err := v.StaffList(1)
		require.NoError(t, err)
		require.Equal(t, cloud.StaffList{DeviceID: 1}, l)
	})
	write(t, db, 0, &cloud.Changes{LockerChanges: cloud.LockerChanges{StaffLists: []cloud.StaffList{{DeviceID: 1, Version: 1, Number: 5}}}})
	lists()
	reach(1, 1) // it has not said that it has them
	held := uint64(5)
	write(t, db, 0, &cloud.Changes{DeviceChanges: cloud.DeviceChanges{Seen: []cloud.DeviceSeen{{DeviceID: 1, LastSeenAt: now, CodesHeld: &held}}}})
	reach(1, 0)
	write(t, db, 0, &cloud.Changes{LockerChanges: cloud.LockerChanges{StaffRotas: []cloud.StaffRota{{BusinessID: 1, NextAt: now}}}})
	lists(1)
	look(t, db, func(v cloud.View) {
		got, err := v.CodeRows(1, 1, 10)
		require.NoError(t, err)
		require.Len(t, got, 2)
		require.EqualValues(t, []uint64{2, 3}, []uint64{got[0].Entry.Number, got[1].Entry.Number})
		require.Equal(t, cloud.StaffCodeID(3), got[0].StaffCodeID)
	})
}
