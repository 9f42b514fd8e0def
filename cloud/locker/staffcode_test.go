package locker_test

import (
	"context"
	"encoding/binary"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/device/devicetest"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/protocol/wire"
)

// runStaff has the cloud look at staff codes for some time.
func (s *story) runStaff(d time.Duration) {
	c, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	_ = s.Lockers.RunStaffCodes(c, s.Store)
}

// staffEntries are the live entries of staff codes on the cabinet's list, and how many
// different codes they are for.
func (s *story) staffEntries() (entries, different int) {
	of := map[cloud.StaffCodeID]bool{}
	s.Look(func(v cloud.View) error {
		rows, err := v.CodeRows(s.ID, 0, 1_000_000)
		for _, r := range rows {
			if r.StaffCodeID != 0 {
				entries++
				of[r.StaffCodeID] = true
			}
		}
		return err
	})
	return entries, len(of)
}

// A list that is full of deliveries gets each staff code once, and is looked at no more.
func TestStaffCodesOnAFullList(t *testing.T) {
	tell(t, 1, nil, func(s *story) {
		const before, others = 1017, 12
		require.NoError(s.t, s.Store.Decide(ctx, s.ID, func(v cloud.View) (*cloud.Changes, error) {
			d, err := v.Device(s.ID)
			ch := &cloud.Changes{}
			for i := range before {
				d.CodeList++
				verifier := make([]byte, 32)
				binary.BigEndian.PutUint64(verifier, uint64(i+1))
				ch.Codes = append(ch.Codes, cloud.CodeRow{DeviceID: d.ID, CreatedAt: time.Now(), Entry: wire.CodeEntry{Number: d.CodeList, Op: wire.CodeSet, Kind: wire.CodePickup, Verifier: verifier, DeliveryRef: "x"}})
			}
			ch.Devices = []cloud.Device{d}
			for i := range others {
				h := cloud.StaffCodeHolder{AccountID: cloud.AccountID(9000 + i)}
				h.Begin(int64(100+i), s.Box.AdminCaller.Account.BusinessID, time.Now())
				ch.Rows = append(ch.Rows, h)
			}
			return ch, err
		}))
		_, err := s.Lockers.DrawStaffCodes(ctx, s.Box.AdminCaller, locker.StaffCodesInput{})
		require.NoError(s.t, err)
		s.runStaff(time.Second)
		entries, different := s.staffEntries()
		require.Equal(s.t, []int{8 * (others + 1), 8 * (others + 1)}, []int{entries, different})
		due, err := s.Store.ListDueStaffLists(ctx, 0, 10)
		require.NoError(s.t, err)
		require.Empty(s.t, due)
	})
}

// What has ended is off the list before the codes of the days ahead are on it.
func TestEndedStaffCodesGoFirst(t *testing.T) {
	tell(t, 1, nil, func(s *story) {
		_, err := s.Lockers.DrawStaffCodes(ctx, s.Box.AdminCaller, locker.StaffCodesInput{})
		require.NoError(s.t, err)
		s.runStaff(time.Second)
		_, err = s.Lockers.DrawStaffCodes(ctx, s.Box.AdminCaller, locker.StaffCodesInput{})
		require.NoError(s.t, err)
		s.runStaff(time.Second)
		var kinds []string
		s.Look(func(v cloud.View) error {
			rows, err := v.CodeRows(s.ID, 1, 1_000_000)
			for _, r := range rows {
				if r.StaffCodeID != 0 {
					kinds = append(kinds, r.Entry.Op)
				}
			}
			return err
		})
		require.Len(s.t, kinds, 24)
		for i, kind := range kinds {
			require.Equal(s.t, i >= 8 && i < 16, kind == wire.CodeRevoke, "%v", kinds)
		}
	})
}

// A business that changes its time zone has one code at each moment of the week.
func TestStaffCodesAfterAChangeOfTheTimeZone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := devicetest.New(t, nil)
		defer w.Stop()
		s := &story{t: t, World: w}
		for _, zone := range []string{"Pacific/Kiritimati", "Europe/London", "America/Toronto", "Asia/Shanghai"} {
			require.NoError(t, s.Store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
				b, err := v.Business(s.Box.AdminCaller.Account.BusinessID)
				b.Timezone = zone
				ch := &cloud.Changes{AccountChanges: cloud.AccountChanges{Businesses: []cloud.Business{b}}}
				if zone != "Pacific/Kiritimati" {
					ch.StaffRotas = []cloud.StaffRota{{BusinessID: b.ID, NextAt: time.Now()}}
				}
				return ch, err
			}))
			if zone == "Pacific/Kiritimati" {
				_, err := s.Lockers.DrawStaffCodes(ctx, s.Box.AdminCaller, locker.StaffCodesInput{})
				require.NoError(t, err)
			}
			s.runStaff(time.Second)
			out, err := s.Lockers.FindStaffCodes(ctx, s.Box.AdminCaller, locker.StaffCodesInput{})
			require.NoError(t, err)
			require.Len(t, out.Codes, 8, zone)
			last := ""
			for _, c := range out.Codes {
				require.True(t, last == "" || last == *c.StartsAt, "%s: %s begins at %s, the one before ends at %s", zone, c.Date, *c.StartsAt, last)
				last = *c.EndsAt
			}
		}
	})
}
