package kiosk

import (
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/edge"
	"github.com/postern-io/postern/edge/locker"
	"github.com/postern-io/postern/protocol/wire"
)

// Only a staff session learns how a door is wired; what was learned is kept once it ends, and
// nothing is where no switch has moved.
func TestStaffLearnHowADoorIsWired(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fake{state: newState(), answer: locker.Answer{Outcome: wire.CodeOK}}
		k := newKiosk(f, io.Discard)
		result, kept, fails := edge.LearnWaiting, []edge.Learned{}, false
		k.cfg.Learn = func(door edge.DoorNumber, since time.Time) (edge.Learned, bool) {
			return edge.Learned{Door: door, At: since, Layout: edge.Wiring{Board: "A", Channel: 1}, Moves: []edge.LearnedMove{}, Result: result}, door == 7
		}
		k.cfg.KeepLearned = func(l edge.Learned) error {
			if fails {
				return errors.New("disk full")
			}
			kept = append(kept, l)
			return nil
		}
		post := func(path, body, token string) int {
			status, _, _ := call(k, "POST", path, body, with(token))
			return status
		}
		require.Equal(t, 401, post("/api/staff/learn", `{"door":7}`, ""))
		require.Equal(t, 401, post("/api/staff/learn", `{"door":7}`, pageKey), "programs only look")
		require.Equal(t, 401, post("/api/staff/learned", `{}`, "x"))
		token := signIn(t, k)
		require.Equal(t, 400, post("/api/staff/learn", `{"door":9}`, token))
		require.Equal(t, 400, post("/api/staff/learn", `{}`, token))
		require.Equal(t, 200, post("/api/staff/learn", `{"door":7}`, token))
		began := time.Now().UTC()
		time.Sleep(time.Minute)
		_, body, _ := call(k, "GET", "/api/staff", "", with(token))
		require.Contains(t, body, `"learn":{"door":7,`)
		require.Contains(t, body, `"result":"waiting"`)
		_, body, _ = call(k, "GET", "/api/state", "")
		require.NotContains(t, body, "learn", "passers-by see nothing of it")
		require.Equal(t, 200, post("/api/staff/learned", `{}`, token))
		require.Empty(t, kept, "nothing moved")

		require.Equal(t, 200, post("/api/staff/learn", `{"door":7}`, token))
		result = edge.LearnRight
		fails = true
		require.Equal(t, 503, post("/api/staff/learned", `{}`, token))
		fails = false
		require.Equal(t, 200, post("/api/staff/learn", `{"door":7}`, token))
		require.Equal(t, 200, post("/api/staff/learned", `{}`, token))
		require.Len(t, kept, 1)
		require.Equal(t, began.Add(time.Minute), kept[0].At.UTC())
		require.Equal(t, 200, post("/api/staff/learned", `{}`, token), "it is over")
		require.Len(t, kept, 1)

		require.Equal(t, 200, post("/api/staff/learn", `{"door":7}`, token))
		time.Sleep(3 * time.Minute)
		require.Equal(t, 401, post("/api/staff/learned", `{}`, token))
		_, body, _ = call(k, "GET", "/api/staff", "", keyed)
		require.NotContains(t, body, "learn", "it ends with the session")
		token = signIn(t, k)
		_, body, _ = call(k, "GET", "/api/staff", "", with(token))
		require.NotContains(t, body, "learn")
	})
}
