package e2e

import (
	"context"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/cmd/internal/truth"
	"github.com/postern-io/postern/edge"
	"github.com/postern-io/postern/internal/ring"
	"github.com/postern-io/postern/protocol/wire"
)

// drawStaffCodes draws codes for the administrator and awaits that the cabinet has them.
func (w *world) drawStaffCodes(c *cabinet) []locker.StaffCodeBody {
	w.t.Helper()
	out, err := w.server().Lockers.DrawStaffCodes(context.Background(), w.box.AdminCaller, locker.StaffCodesInput{})
	require.NoError(w.t, err)
	require.Len(w.t, out.Codes, 8)
	w.awaits("staff codes at the cabinet", time.Minute, func() bool {
		out, err := w.server().Lockers.FindStaffCodes(context.Background(), w.box.AdminCaller, locker.StaffCodesInput{})
		return err == nil && out.Waiting == 0 && out.Cabinets == 1
	})
	return out.Codes
}

// staffCode has a member of the staff type the code of the day at a cabinet and open a door;
// now and then the code of another day, or other codes are drawn first.
func (w *world) staffCode(s step, rnd *rand.Rand) {
	c, door := w.cabinets[s.cabinet], uint(1+rnd.IntN(doors))
	again, other, stay := rnd.IntN(4) == 0, rnd.IntN(5) == 0, time.Duration(3+rnd.IntN(20))*time.Second
	out, err := w.server().Lockers.FindStaffCodes(context.Background(), w.box.AdminCaller, locker.StaffCodesInput{})
	if err == nil && (again || len(out.Codes) == 0) {
		out, err = w.server().Lockers.DrawStaffCodes(context.Background(), w.box.AdminCaller, locker.StaffCodesInput{})
	}
	w.effect("staff_codes", err)
	if err != nil {
		return
	}
	code := out.Codes[0].Code
	if other {
		code = out.Codes[1].Code
	}
	w.people.Go(func() {
		time.Sleep(stay) // on the way
		n := w.act(truth.Act{Cabinet: c.code, Kind: edge.ByStaff, Code: wire.CodeStaff})
		ctx, cancel := context.WithTimeout(context.Background(), 8*time.Second)
		defer cancel()
		a, err := c.running().Codes().Type(ctx, code, []edge.DoorNumber{edge.DoorNumber(door)})
		w.answered(n, a, err)
		time.Sleep(stay)
		if err == nil && a.Outcome == wire.CodeOK && c.pulsedFor(a.OpeningID) {
			_ = c.sim.CloseDoor(door)
		}
	})
}

// A member of the staff draws codes, opens a door at a cabinet under the own name, is known
// there on each day of a week without a network, by the code of that day alone, and by the
// next ones once the network is back.
func TestStaffOpenCabinetsByTheirCodeOfTheDay(t *testing.T) {
	story(t, func(t *testing.T, w *world, c *cabinet) {
		codes := w.drawStaffCodes(c)
		staff := func(code string, doors ...edge.DoorNumber) string {
			a, err := c.agent.Codes().Type(t.Context(), code, doors)
			require.NoError(t, err)
			return a.Outcome
		}
		only := func(day int) {
			t.Helper()
			for i, x := range codes {
				want := wire.CodeOK
				switch {
				case i < day:
					want = wire.CodeExpired
				case i > day:
					want = wire.CodeNotActive
				}
				if i < day-1 {
					continue // forgotten, or not: no try is lost on it here
				}
				require.Equal(t, want, staff(x.Code), "code of day %d on day %d", i, day)
			}
		}
		only(0)
		require.Equal(t, wire.CodeOK, staff(codes[0].Code, 2))
		time.Sleep(5 * time.Second)
		require.NoError(t, c.sim.CloseDoor(2))
		w.awaits("name of who opened", time.Minute, func() bool {
			out, err := w.cloud.Lockers.ListDoorHistory(t.Context(), w.staff, locker.HistoryInput{Device: w.box.Devices[0].DeviceID})
			require.NoError(t, err)
			return len(out.Reports) == 1 && out.Reports[0].By == "staff" && out.Reports[0].ByName != nil &&
				*out.Reports[0].ByName == w.box.AdminCaller.Account.Name && *out.Reports[0].ByID == strconv.FormatInt(int64(w.box.AdminCaller.Account.ID), 10)
		})

		c.setCut(true)
		last := 1
		if ring.Full() {
			last = len(codes) - 1
		}
		for day := 1; day <= last; day++ {
			at, err := time.Parse(time.RFC3339, *codes[day].StartsAt)
			require.NoError(t, err)
			time.Sleep(time.Until(at) + time.Minute)
			only(day)
		}
		c.setCut(false)
		var later []locker.StaffCodeBody
		w.awaits("codes of the days after", 10*time.Minute, func() bool {
			out, err := w.cloud.Lockers.FindStaffCodes(t.Context(), w.box.AdminCaller, locker.StaffCodesInput{})
			require.NoError(t, err)
			later = out.Codes
			return out.Waiting == 0
		})
		require.Len(t, later, 8)
		require.Equal(t, codes[last], later[0], "drawn days ago")
		require.Equal(t, wire.CodeOK, staff(later[0].Code))
		for i := range 7 {
			require.Equal(t, wire.CodeNotActive, staff(later[i+1].Code))
		}
		require.Len(t, c.agent.Loop().State().Codes, 9, "days that are over are forgotten, but for the last")
	})
}

// A business that changes its time zone has a code at every moment, and one at a time.
func TestStaffCodesFollowTheTimeZone(t *testing.T) {
	ring.SkipUnlessFull(t, "the other stories of staff codes, in one time zone")
	story(t, func(t *testing.T, w *world, c *cabinet) {
		for _, zone := range []string{"Asia/Shanghai", "America/Toronto", "Pacific/Kiritimati"} {
			require.NoError(t, w.cloud.Store.Decide(t.Context(), 0, func(v cloud.View) (*cloud.Changes, error) {
				b, err := v.Business(w.box.AdminCaller.Account.BusinessID)
				b.Timezone = zone
				return &cloud.Changes{AccountChanges: cloud.AccountChanges{Businesses: []cloud.Business{b}}}, err
			}))
			if zone == "Asia/Shanghai" {
				w.drawStaffCodes(c)
			}
			c.halt()
			time.Sleep(25 * time.Hour)
			c.start()
			w.ready(c)
			out, err := w.cloud.Lockers.FindStaffCodes(t.Context(), w.box.AdminCaller, locker.StaffCodesInput{})
			require.NoError(t, err)
			require.Len(t, out.Codes, 8, zone)
			for i, x := range out.Codes[1:] {
				require.Equal(t, out.Codes[i].EndsAt, x.StartsAt)
			}
			require.Equal(t, wire.CodeOK, c.try(out.Codes[0].Code).Outcome)
		}
	})
}

// Codes end with the member's wish, an administrator's, the account, and when a cabinet is
// stolen; another cabinet refuses them as soon as it has its list.
func TestStaffCodesEnd(t *testing.T) {
	story(t, func(t *testing.T, w *world, c *cabinet) {
		dead := func(why string, codes []locker.StaffCodeBody) {
			t.Helper()
			w.awaits("end of codes by "+why, time.Minute, func() bool {
				return c.try(codes[0].Code).Outcome == wire.CodeUnknown
			})
			time.Sleep(15 * time.Minute) // no lockout of what comes
		}
		codes := w.drawStaffCodes(c)
		require.Equal(t, wire.CodeOK, c.try(codes[0].Code).Outcome)
		others := w.drawStaffCodes(c)
		require.Equal(t, wire.CodeOK, c.try(others[0].Code).Outcome)
		dead("other codes", codes)

		member := w.box.AdminCaller.Account.ID
		other := cloud.Caller{Account: cloud.Account{ID: member + 1000, BusinessID: w.box.AdminCaller.Account.BusinessID, Type: cloud.ClientEmployee}}
		_, err := w.cloud.Lockers.EndStaffCodes(t.Context(), other, locker.StaffCodesEndInput{Account: member})
		require.ErrorContains(t, err, "STAFF_CODES_NOT_FOUND", "an employee ends no codes of others")
		_, err = w.cloud.Lockers.DrawStaffCodes(t.Context(), other, locker.StaffCodesInput{})
		require.ErrorContains(t, err, "FORBIDDEN", "an operator of the platform, whose pass ends, is given none")
		foreign := w.box.AdminCaller
		foreign.Account.BusinessID++
		_, err = w.cloud.Lockers.EndStaffCodes(t.Context(), foreign, locker.StaffCodesEndInput{Account: member})
		require.Error(t, err)
		_, err = w.cloud.Lockers.EndStaffCodes(t.Context(), w.box.AdminCaller, locker.StaffCodesEndInput{Account: member})
		require.NoError(t, err)
		dead("an administrator", others)

		codes = w.drawStaffCodes(c)
		account := w.box.AdminCaller.Account
		account.Enabled = false
		save := func() {
			require.NoError(t, w.cloud.Store.Decide(t.Context(), 0, func(cloud.View) (*cloud.Changes, error) {
				return &cloud.Changes{AccountChanges: cloud.AccountChanges{Accounts: []cloud.Account{account}}}, nil
			}))
		}
		save()
		dead("the account", codes)
		account.Enabled = true
		save()
		found, err := w.cloud.Lockers.FindStaffCodes(t.Context(), w.box.AdminCaller, locker.StaffCodesInput{})
		require.NoError(t, err)
		require.Empty(t, found.Codes, "nothing comes back by itself")

		codes = w.drawStaffCodes(c)
		business := func(change func(*cloud.BusinessState)) {
			require.NoError(t, w.cloud.Store.Decide(t.Context(), 0, func(v cloud.View) (*cloud.Changes, error) {
				state, err := v.BusinessState(w.box.AdminCaller.Account.BusinessID)
				change(&state)
				return &cloud.Changes{PlatformChanges: cloud.PlatformChanges{BusinessStates: []cloud.BusinessState{state}},
					LockerChanges: cloud.LockerChanges{StaffRotas: []cloud.StaffRota{{BusinessID: state.BusinessID, NextAt: time.Now()}}}}, err
			}))
		}
		business(func(s *cloud.BusinessState) { s.SuspendedAt = time.Now() })
		dead("the suspension of the business", codes)
		business(func(s *cloud.BusinessState) { s.SuspendedAt = time.Time{} })
		w.awaits("codes after the suspension", time.Minute, func() bool {
			found, err = w.cloud.Lockers.FindStaffCodes(t.Context(), w.box.AdminCaller, locker.StaffCodesInput{})
			return err == nil && len(found.Codes) == 8 && found.Waiting == 0
		})
		require.Equal(t, wire.CodeOK, c.try(found.Codes[0].Code).Outcome)

		codes = w.drawStaffCodes(c)
		_, err = w.cloud.Lockers.ReplaceHardware(t.Context(), w.staff, locker.ReplaceInput{Device: w.box.Devices[0].DeviceID, Reason: "repair"})
		require.NoError(t, err)
		found, err = w.cloud.Lockers.FindStaffCodes(t.Context(), w.box.AdminCaller, locker.StaffCodesInput{})
		require.NoError(t, err)
		require.NotEqual(t, codes[0].Code, found.Codes[0].Code, "so does who repairs it")
		codes = found.Codes
		_, err = w.cloud.Lockers.ReportStolen(t.Context(), w.staff, locker.StolenInput{Device: w.box.Devices[0].DeviceID, Reason: "gone"})
		require.NoError(t, err)
		found, err = w.cloud.Lockers.FindStaffCodes(t.Context(), w.box.AdminCaller, locker.StaffCodesInput{})
		require.NoError(t, err)
		require.Len(t, found.Codes, 8)
		for i := range codes {
			require.NotEqual(t, codes[i].Code, found.Codes[i].Code, "who has the cabinet has time to guess")
		}
	})
}
