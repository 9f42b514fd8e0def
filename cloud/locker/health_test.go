package locker_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/protocol/wire"
)

// A cabinet's health is what it reported last, with the records that it could not
// deliver; a cabinet that has reported nothing has none.
func TestHealthOfACabinet(t *testing.T) {
	tell(t, 1, nil, func(s *story) {
		find := func() locker.CabinetHealth {
			out, err := s.Lockers.FindHealth(ctx, s.staff(), locker.HealthInput{Device: s.ID})
			require.NoError(s.t, err)
			return out.Health
		}
		_, err := s.Lockers.FindHealth(ctx, s.stranger(), locker.HealthInput{Device: s.ID})
		require.Equal(s.t, "DEVICE_NOT_FOUND", code(err))
		none := find()
		require.Nil(s.t, none.ReportedAt)
		require.Nil(s.t, none.StorePercent)
		require.Empty(s.t, none.Missing)

		for _, percent := range []uint64{12, 34} {
			s.Tell(wire.KindHealth, wire.Health{Boards: map[string]uint64{"b": 2, "a": 1}, StoreUse: map[string]uint64{"lane0": 1000, "lane1": 2000, "filled_percent": percent},
				Uplink: map[string]uint64{"connects": 3, "resends": 4}, Temperatures: map[string]float64{"inside": 21.5}, Versions: map[string]string{"agent": "1.2.3"}})
			time.Sleep(time.Second)
		}
		h := find()
		require.NotNil(s.t, h.ReportedAt)
		require.Equal(s.t, []any{uint64(34), uint64(3), uint64(4), "1.2.3"}, []any{*h.StorePercent, *h.Connects, *h.Resends, *h.AgentVersion}, "the newest counts")
		require.Equal(s.t, map[string]uint64{"settlement": 1000, "telemetry": 2000}, h.StoreBytes)
		require.Equal(s.t, []locker.BoardHealth{{Name: "a", Errors: 1}, {Name: "b", Errors: 2}}, h.Boards)
		require.Equal(s.t, []locker.TemperatureReading{{Name: "inside", Celsius: 21.5}}, h.Temperatures)
		require.NotNil(s.t, h.Clock)
		require.NotNil(s.t, h.ClockOffsetMS)
		require.InDelta(s.t, 0, *h.ClockOffsetMS, 1000)
		require.EqualValues(s.t, 5, *h.ClockErrorMS)

		first := s.Next[wire.Telemetry]
		s.Next[wire.Telemetry] += 5 // they were evicted before they could be sent
		s.Tell(wire.KindGap, wire.Gap{Epoch: s.Epoch, Lane: wire.Telemetry, First: first, Last: first + 4, Reason: wire.GapEvicted, HeadAfter: new(s.Head[wire.Telemetry])})
		require.Equal(s.t, []locker.MissingRange{{Lane: "telemetry", First: first, Last: first + 4, Missing: 5, Reason: "evicted"}}, find().Missing)
	})
}

// Locks are judged by what they have done lately and by the cabinet's other doors; those of
// the newest report that has any count, and reports after it take nothing away.
func TestLocksAreJudgedBeforeTheyFail(t *testing.T) {
	tell(t, 1, nil, func(s *story) {
		s.Tell(wire.KindHealth, wire.Health{Locks: []wire.LockWear{
			{Door: 1, Cycles: 900, Acts: 32, DelayMS: 300, Trouble: 1 << 20},
			{Door: 2, Cycles: 900, Acts: 32, DelayMS: 310, Trouble: 1<<20 | 1<<9},
			{Door: 3, Cycles: 20, Failed: 1, Acts: 21, DelayMS: 320, Trouble: 3},
			{Door: 4, Cycles: 900, Acts: 32, DelayMS: 1400},
			{Door: 99, Cycles: 1, Acts: 1},
		}})
		time.Sleep(time.Second)
		s.Tell(wire.KindHealth, wire.Health{StoreUse: map[string]uint64{"filled_percent": 7}})
		out, err := s.Lockers.FindHealth(ctx, s.staff(), locker.HealthInput{Device: s.ID})
		require.NoError(s.t, err)
		require.EqualValues(s.t, 7, *out.Health.StorePercent)
		got := map[uint]string{}
		var order []uint
		for _, l := range out.Health.Locks {
			got[l.Door] = l.Condition
			order = append(order, l.Door)
		}
		require.Equal(s.t, map[uint]string{1: "ok", 2: "weak", 3: "failing", 4: "slow"}, got, "a door that the cabinet has not is left out")
		require.Equal(s.t, []uint{3, 2, 4, 1}, order)
		require.Equal(s.t, []any{uint64(20), uint64(1), 21, 2, uint32(320)}, []any{out.Health.Locks[0].Cycles, out.Health.Locks[0].Failed, out.Health.Locks[0].Acts, out.Health.Locks[0].Troubled, out.Health.Locks[0].OpeningMS})
	})
}
