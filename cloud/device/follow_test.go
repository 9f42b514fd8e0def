package device

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
)

// A node that looks at the store finds what others committed, each change once: by clocks
// that differ, late, and after a time in which it could not look.
func TestEveryChangeOfOtherNodesIsSeen(t *testing.T) {
	t.Parallel()
	begun := time.UnixMilli(1_000_000_000)
	var rows []cloud.DeviceChange
	away := false
	f := follower{looked: begun, changed: func(_ context.Context, since time.Time) (out []cloud.DeviceChange, err error) {
		for _, r := range rows {
			if r.At >= since.UnixMilli() {
				out = append(out, r)
			}
		}
		if away {
			return nil, errors.New("the database is away")
		}
		return out, nil
	}}
	at := func(seconds float64) time.Time { return begun.Add(time.Duration(seconds * float64(time.Second))) }
	commit := func(d cloud.DeviceID, command string, seconds float64) {
		rows = append(rows, cloud.DeviceChange{DeviceID: d, Command: command, At: at(seconds).UnixMilli()})
	}
	look := func(seconds float64) []cloud.DeviceID {
		list, err := f.look(t.Context(), at(seconds))
		require.Equal(t, away, err != nil)
		return list
	}
	commit(1, "a", 2) // by a clock that is ahead
	require.Equal(t, []cloud.DeviceID{1}, look(1))
	require.Empty(t, look(2))
	commit(1, "b", 1.5) // later, by one that is not
	commit(2, "c", -5)  // late
	require.ElementsMatch(t, []cloud.DeviceID{1, 2}, look(3))
	require.Empty(t, look(4))
	commit(1, "d", 2)
	require.Equal(t, []cloud.DeviceID{1}, look(5))
	away = true
	for s := range 60 {
		if commit(3, "", float64(6+s)); s == 3 {
			commit(4, "e", 9)
		}
		require.Empty(t, look(float64(6+s)))
	}
	away = false
	require.ElementsMatch(t, []cloud.DeviceID{3, 4}, look(66))
	require.Empty(t, look(67))
	require.Empty(t, look(67+followMost.Seconds()))
}
