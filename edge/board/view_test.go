package board_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/edge"
	"github.com/postern-io/postern/edge/board"
	sim "github.com/postern-io/postern/firmware-sim/board"
	"github.com/postern-io/postern/protocol/lockbus"
)

// channelOf is a channel of a board's view.
func channelOf(t *testing.T, v edge.BoardView, n uint) edge.ChannelView {
	t.Helper()
	for _, c := range v.Channels {
		if c.Channel == n {
			return c
		}
	}
	t.Fatalf("no channel %d in %+v", n, v)
	return edge.ChannelView{}
}

// A view has what the board answers, on each channel that is known, and the bits that moved.
func TestAViewHasWhatTheBoardAnswers(t *testing.T) {
	t.Parallel()
	eachFamily(t, func(t *testing.T, fam lockbus.Family) {
		inBubble(t, single(fam), func(r *rig) {
			r.after(2 * time.Second)
			v := r.cab.Views()
			require.Len(t, v, 1)
			require.Equal(t, []string{"A", "main", fam.String(), "online", ""}, []string{v[0].Name, v[0].Line, v[0].Family, v[0].Health.State, v[0].Err})
			require.EqualValues(t, 1, v[0].Address)
			shut := channelOf(t, v[0], 3)
			require.EqualValues(t, 2, shut.Door)
			require.Equal(t, "closed", shut.State)
			require.NotNil(t, shut.Switch)
			require.Equal(t, fam.HasItems(), shut.Item != nil)

			asked := time.Now()
			r.cab.SetSession(true)
			r.cab.Pulse(2, edge.Authority{})
			r.after(2 * time.Second)
			open := channelOf(t, r.cab.Views()[0], 3)
			require.Equal(t, "open", open.State)
			require.NotEqual(t, *shut.Switch, *open.Switch)
			moves := r.cab.Moves("A", asked)
			require.NotEmpty(t, moves)
			require.LessOrEqual(t, len(moves), 128)
			for _, m := range moves {
				require.EqualValues(t, 3, m.Channel, "the other doors did not move")
			}
			require.Empty(t, r.cab.Moves("A", time.Now()))
			require.Empty(t, r.cab.Moves("B", asked))
		})
	})
}

// A lock whose switch is wired to another channel shows by the bit that moves.
func TestAViewShowsAMixedUpSwitch(t *testing.T) {
	t.Parallel()
	mixed := func(c *board.Config) {
		c.Layout.Doors[1], c.Layout.Doors[2] = edge.Place{Board: "A", Channel: 2}, edge.Place{Board: "A", Channel: 7}
	}
	inBubble(t, single(lockbus.CU48), func(r *rig) {
		r.after(2 * time.Second)
		asked := time.Now()
		r.do(r.sim.Force(2)) // on channel 3, where no door is laid
		r.after(2 * time.Second)
		moves := r.cab.Moves("A", asked)
		require.NotEmpty(t, moves)
		require.EqualValues(t, 3, moves[0].Channel)
		require.Zero(t, channelOf(t, r.cab.Views()[0], 3).Door)
	}, mixed)
}

func TestAViewSaysWhatWentWrong(t *testing.T) {
	t.Parallel()
	inBubble(t, single(lockbus.CU48), func(r *rig) {
		r.after(2 * time.Second)
		r.do(r.sim.Inject("A", sim.Silence, 1000))
		r.after(20 * time.Second)
		v := r.cab.Views()[0]
		require.Equal(t, "offline", v.Health.State)
		require.Equal(t, "no_answer", v.Err)
		require.Less(t, time.Since(v.ErrAt), 10*time.Second)
		require.Greater(t, time.Since(v.ReadAt), 15*time.Second)
		require.Equal(t, "unknown", channelOf(t, v, 2).State)
		r.do(r.sim.Unplug("main", time.Hour))
		r.after(20 * time.Second)
		require.Equal(t, "line_closed", r.cab.Views()[0].Err)
	})
}
