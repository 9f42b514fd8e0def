package ring

import (
	"fmt"
	"testing"
	"time"
)

// The pauses of Await between two looks: they begin short, so that a quick test
// stays quick, and grow, so that a slow one leaves the machine to what it awaits.
const (
	shortPause = time.Millisecond
	longPause  = 20 * time.Millisecond
)

// endBefore is how long before the test binary's own -timeout Await gives up, so
// that its message is printed in place of all stacks.
const endBefore = 10 * time.Second

// Await looks until ok is true. It has no bound of its own: a busy machine may
// take as long as the test binary's -timeout allows, and then the test fails with
// what as its message, formatted as by fmt.Sprintf when it has more than one
// part. ok runs in the caller's goroutine and may fail the test. In a bubble of
// synctest, sleep and wait instead.
func Await(t testing.TB, ok func() bool, what ...any) {
	t.Helper()
	deadline, bounded := findDeadline(t)
	for pause := shortPause; !ok(); pause = min(2*pause, longPause) {
		if bounded && time.Until(deadline) < endBefore {
			t.Fatalf("did not come true before the test's time was over%s", formatWhat(what))
		}
		select {
		case <-time.After(pause):
		case <-t.Context().Done():
			t.Fatalf("did not come true before the test ended%s", formatWhat(what))
		}
	}
}

func findDeadline(t testing.TB) (time.Time, bool) {
	if d, ok := t.(interface{ Deadline() (time.Time, bool) }); ok {
		return d.Deadline()
	}
	return time.Time{}, false
}

func formatWhat(what []any) string {
	switch len(what) {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf(": %v", what[0])
	}
	return ": " + fmt.Sprintf(fmt.Sprint(what[0]), what[1:]...)
}
