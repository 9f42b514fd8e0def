package edge

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWhatMovedSaysHowADoorIsWired(t *testing.T) {
	t.Parallel()
	move := func(board string, channel uint, set bool) LearnedMove {
		return LearnedMove{Board: board, Channel: channel, Bit: "switch", Set: set}
	}
	item := LearnedMove{Board: "A", Channel: 7, Bit: "item", Set: true}
	for _, inverted := range []bool{false, true} {
		layout := Wiring{"A", 3, inverted}
		for _, c := range []struct {
			moves  []LearnedMove
			result string
			needs  *Wiring
		}{
			{nil, LearnWaiting, nil},
			{[]LearnedMove{item}, LearnWaiting, nil},
			{[]LearnedMove{move("A", 3, inverted)}, LearnRight, nil},
			{[]LearnedMove{item, move("A", 3, inverted), move("A", 3, !inverted), item}, LearnRight, nil},
			{[]LearnedMove{move("A", 3, !inverted)}, LearnOtherPolarity, &Wiring{"A", 3, !inverted}},
			{[]LearnedMove{move("A", 3, !inverted), move("A", 3, inverted)}, LearnOtherPolarity, &Wiring{"A", 3, !inverted}},
			{[]LearnedMove{move("A", 4, false)}, LearnOtherChannel, &Wiring{"A", 4, false}},
			{[]LearnedMove{move("B", 3, true)}, LearnOtherChannel, &Wiring{"B", 3, true}},
			{[]LearnedMove{move("A", 3, inverted), move("A", 4, false)}, LearnSeveral, nil},
			{[]LearnedMove{move("A", 3, inverted), move("B", 3, false)}, LearnSeveral, nil},
		} {
			l := Learned{Layout: layout, Moves: c.moves}
			l.Judge()
			require.Equal(t, c.result, l.Result, "%+v", c.moves)
			require.Equal(t, c.needs, l.Needs, "%+v", c.moves)
		}
	}
}
