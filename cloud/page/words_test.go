package page

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The time that is left is in its two largest units, without one of which there is nothing.
func TestTimeThatIsLeft(t *testing.T) {
	t.Parallel()
	f := frame{Lang: "en", Made: time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)}
	for d, want := range map[time.Duration]string{
		29 * time.Second: "< 1 min", time.Minute: "1 min", 59 * time.Minute: "59 min", time.Hour: "1 h", 61 * time.Minute: "1 h 1 min", 23*time.Hour + 59*time.Minute: "23 h 59 min",
		24 * time.Hour: "1 d", 24*time.Hour + 59*time.Minute: "1 d", 25*time.Hour + time.Minute: "1 d 1 h",
	} {
		require.Equal(t, want, left(f, f.Made.Add(d)), d)
	}
}

// A value that two people changed is shown in words where it is one of a few, and else as it was
// typed.
func TestValuesThatTwoPeopleChanged(t *testing.T) {
	t.Parallel()
	m := maker{f: frame{Lang: "en"}}
	require.Equal(t, "Return to the sender", m.fieldWords("outcome", "return_to_sender"))
	require.Equal(t, "Leave it_at the desk", m.fieldWords("note", "Leave it_at the desk"))
	require.Equal(t, "Two\nlines", m.fieldWords("note", "Two\nlines"))
	require.Empty(t, m.fieldWords("note", ""))
}
