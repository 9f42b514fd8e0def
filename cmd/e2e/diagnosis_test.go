package e2e

import (
	"bytes"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/edge"
	"github.com/postern-io/postern/edge/origin"
	simboard "github.com/postern-io/postern/firmware-sim/board"
	"github.com/postern-io/postern/protocol/diagnosis"
	"github.com/postern-io/postern/protocol/wire"
)

// upload is the way of a cabinet's answers to the cloud, which can be cut.
type upload struct {
	c *cabinet

	mu sync.Mutex // guards all below
	// meddle changes or loses an answer; nil lets it through.
	meddle func(try int, a *locker.Answer) (lost bool)
	tries  int
}

func (x *upload) set(meddle func(try int, a *locker.Answer) bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.tries, x.meddle = 0, meddle
}

// RoundTrip hands a file to the cloud as its HTTP face does.
func (x *upload) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet {
		return x.fetchProgram(r)
	}
	file, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	if x.c.cut.Load() || x.c.dead.Load() || x.c.w.broker.Load() == nil {
		return nil, errCut
	}
	signature, err := base64.StdEncoding.DecodeString(r.Header.Get(diagnosis.HeaderSignature))
	if err != nil {
		return nil, err
	}
	a := locker.Answer{Token: strings.TrimPrefix(r.URL.Path, locker.AnswerPrefix), Digest: r.Header.Get(diagnosis.HeaderDigest), Signature: signature, File: file}
	x.mu.Lock()
	x.tries++
	try, meddle := x.tries, x.meddle
	x.mu.Unlock()
	lost := meddle != nil && meddle(try, &a)
	status := http.StatusOK
	if err := x.c.w.server().Lockers.TakeAnswer(r.Context(), a); err != nil {
		status = http.StatusServiceUnavailable
		var refused *cloud.Error
		if errors.As(err, &refused) {
			status = catalog.Status(refused)
		}
	}
	if lost || x.c.dead.Load() {
		return nil, errCut
	}
	return &http.Response{StatusCode: status, Body: http.NoBody, Request: r}, nil
}

// origin is the cloud of a cabinet by HTTPS.
func (c *cabinet) origin() *origin.Cloud {
	if c.upload == nil {
		c.upload = &upload{c: c}
	}
	return origin.New("https://cloud.example", c.upload)
}

// diagnosed waits for the end of a diagnosis, and shows it.
func (w *world) diagnosed(id cloud.DiagnosisID) locker.DiagnosisDetail {
	w.t.Helper()
	var out locker.DiagnosisOutput
	w.awaits("answer to a diagnosis", 40*time.Minute, func() bool {
		var err error
		out, err = w.cloud.Lockers.FindDiagnosis(w.t.Context(), w.staff, locker.ByDiagnosis{ID: id})
		require.NoError(w.t, err)
		return out.Diagnosis.State != cloud.DiagnosisWaiting && out.Diagnosis.State != cloud.DiagnosisRunning
	})
	return out.Diagnosis
}

func (w *world) ask(kind wire.CommandKind) cloud.DiagnosisID {
	w.t.Helper()
	out, err := w.cloud.Lockers.Diagnose(w.t.Context(), w.staff, locker.DiagnoseInput{Device: w.box.Devices[0].DeviceID, Type: string(kind), Reason: "at three in the night"})
	require.NoError(w.t, err)
	return out.Diagnosis.ID
}

func (w *world) testChannel(door uint, occupied bool) (locker.DiagnosisOutput, error) {
	w.t.Helper()
	yes := true
	cell, err := w.cell(door)
	require.NoError(w.t, err)
	return w.cloud.Lockers.TestChannel(w.t.Context(), w.staff, locker.ChannelTestInput{Device: w.box.Devices[0].DeviceID, Grid: cell.GridID, Reason: "the lock sticks", Attended: &yes, Occupied: occupied})
}

func (w *world) cell(door uint) (cell cloud.Compartment, err error) {
	err = w.cloud.Store.Look(w.t.Context(), func(v cloud.View) error {
		cell, err = v.Compartment(w.box.Devices[0].DeviceID, door)
		return err
	})
	return cell, err
}

// A member of the staff looks at the boards, also once one is dead, and gets a support bundle,
// over a network that loses what was said.
func TestStaffDiagnoseACabinetFromAfar(t *testing.T) {
	story(t, func(t *testing.T, w *world, c *cabinet) {
		got := w.diagnosed(w.ask(wire.CmdBoardView))
		require.Equal(t, cloud.DiagnosisDone, got.State)
		require.NotNil(t, got.FileURL)
		require.Len(t, got.Boards, 1)
		b := got.Boards[0]
		require.Equal(t, []string{"A", "online"}, []string{b.Name, b.State})
		require.Nil(t, b.Error)
		require.Equal(t, "closed", *b.Channels[0].State)
		require.NotNil(t, b.Channels[0].Switch)
		require.Equal(t, 1, *b.Channels[0].Door)

		require.NoError(t, c.sim.Inject("A", simboard.Silence, 1000))
		time.Sleep(time.Minute)
		got = w.diagnosed(w.ask(wire.CmdBoardView))
		require.Equal(t, cloud.DiagnosisDone, got.State)
		require.Equal(t, []string{"offline", "no_answer", "unknown"}, []string{got.Boards[0].State, *got.Boards[0].Error, *got.Boards[0].Channels[0].State})
		_, err := w.testChannel(1, false)
		require.NoError(t, err, "the cloud does not know of boards")
		list, err := w.cloud.Lockers.ListDiagnoses(t.Context(), w.staff, locker.DiagnosesInput{Device: w.box.Devices[0].DeviceID})
		require.NoError(t, err)
		refused := w.diagnosed(list.Diagnoses[0].ID)
		require.Equal(t, []any{cloud.DiagnosisRefused, wire.ReasonBoard}, []any{refused.State, *refused.Note})
		require.NoError(t, c.sim.Inject("A", simboard.Silence, -1000))
		time.Sleep(time.Minute)

		// What was said is lost twice, power goes, and the cloud has one file.
		c.upload.set(func(try int, _ *locker.Answer) bool { return try%3 != 0 })
		id := w.ask(wire.CmdSupportBundle)
		time.Sleep(3 * time.Second)
		c.restart(time.Minute)
		got = w.diagnosed(id)
		require.Equal(t, cloud.DiagnosisDone, got.State)
		require.Greater(t, *got.SizeBytes, int64(500))
		require.Empty(t, got.Boards)
		c.upload.set(nil)

		// Offline it waits, and expires.
		c.setCut(true)
		id = w.ask(wire.CmdBoardView)
		require.Equal(t, cloud.DiagnosisExpired, w.diagnosed(id).State)
		c.setCut(false)
		w.ready(c)

		// A file that was changed on its way is not taken, and none is called done.
		c.upload.set(func(_ int, a *locker.Answer) bool { a.File = bytes.ToUpper(a.File); return false })
		failed := w.diagnosed(w.ask(wire.CmdBoardView))
		require.Equal(t, []any{cloud.DiagnosisFailed, wire.ReasonNotSent}, []any{failed.State, *failed.Note})
		require.Nil(t, failed.FileURL)
	})
}

// A channel test opens one door as staff do: the truth has one pulse with that command's
// authority, and the report tells a lock that works from one that is stuck and a door that
// stays open.
func TestStaffTestAChannelFromAfar(t *testing.T) {
	story(t, func(t *testing.T, w *world, c *cabinet) {
		test := func(door uint, happens func()) locker.DiagnosisDetail {
			t.Helper()
			out, err := w.testChannel(door, false)
			require.NoError(t, err)
			happens()
			got := w.diagnosed(out.Diagnosis.ID)
			require.Equal(t, cloud.DiagnosisDone, got.State)
			require.NotNil(t, got.Test)
			require.Len(t, got.Boards, 1)
			return got
		}
		good := test(2, func() {
			time.Sleep(8 * time.Second)
			require.NoError(t, c.sim.CloseDoor(2))
		})
		require.Equal(t, []any{diagnosis.Opened, true, 2, 1}, []any{good.Test.Result, good.Test.Closed, good.Test.Channel, good.Test.Pulses})
		require.Less(t, *good.Test.DelayMS, int64(3000))
		require.Greater(t, *good.Test.OpenMS, int64(3000))
		require.NotEmpty(t, good.Test.Moves)
		for _, m := range good.Test.Moves {
			require.Equal(t, 2, m.Channel)
		}
		time.Sleep(time.Minute)

		require.NoError(t, c.sim.Jam(3))
		stuck := test(3, func() {})
		require.Equal(t, []any{diagnosis.NotOpened, false}, []any{stuck.Test.Result, stuck.Test.Closed})
		require.Empty(t, stuck.Test.Moves)
		require.NoError(t, c.sim.Free(3))
		time.Sleep(time.Minute)

		left := test(4, func() {})
		require.Equal(t, []any{diagnosis.Opened, false}, []any{left.Test.Result, left.Test.Closed})
		second, err := w.testChannel(1, false)
		require.NoError(t, err)
		busy := w.diagnosed(second.Diagnosis.ID)
		require.Equal(t, []any{cloud.DiagnosisRefused, wire.ReasonBusy}, []any{busy.State, *busy.Note}, "a door stands open, its opening runs")
		require.NoError(t, c.sim.CloseDoor(4))
		time.Sleep(time.Minute)

		cut, err := w.testChannel(1, false)
		require.NoError(t, err)
		w.awaits("open door", 20*time.Second, func() bool { return c.agent.Loop().State().Doors[edge.DoorNumber(1)].Open })
		c.restart(5 * time.Second)
		w.ready(c)
		require.NoError(t, c.sim.CloseDoor(1))
		got := w.diagnosed(cut.Diagnosis.ID)
		require.Equal(t, cloud.DiagnosisDone, got.State)
		require.True(t, got.Test.Restarted)
		require.Empty(t, got.Test.Moves)

		history, err := w.cloud.Lockers.ListDoorHistory(t.Context(), w.staff, locker.HistoryInput{Device: w.box.Devices[0].DeviceID})
		require.NoError(t, err)
		require.Len(t, history.Reports, 5, "each is an opening of the history, and the refused one ended")
		for _, r := range history.Reports {
			require.Equal(t, "staff", r.Kind)
		}
		w.judge(t)
	})
}

// A cabinet that loses its memory in the middle of a test never says what came of it: the cloud
// does, and the next diagnosis runs.
func TestAChannelTestOutlivesALostStore(t *testing.T) {
	story(t, func(t *testing.T, w *world, c *cabinet) {
		lost, err := w.testChannel(1, false)
		require.NoError(t, err)
		w.awaits("open door", 20*time.Second, func() bool { return c.agent.Loop().State().Doors[edge.DoorNumber(1)].Open })
		c.loseStore()
		w.ready(c)
		require.NoError(t, c.sim.CloseDoor(1))
		require.Equal(t, cloud.DiagnosisInterrupted, w.diagnosed(lost.Diagnosis.ID).State)
		require.NoError(t, w.cloud.Store.Look(t.Context(), func(v cloud.View) error {
			open, err := v.OpenCommands(w.box.Devices[0].DeviceID)
			require.Empty(t, open)
			return err
		}))
		require.Equal(t, cloud.DiagnosisDone, w.diagnosed(w.ask(wire.CmdBoardView)).State)
	})
}

// A command that no cabinet takes in time expires, also when the cloud was started anew meanwhile.
func TestCommandsExpireAfterARestartOfTheCloud(t *testing.T) {
	story(t, func(t *testing.T, w *world, c *cabinet) {
		c.setCut(true)
		id := w.ask(wire.CmdSupportBundle)
		w.stopCloud()
		w.startCloud()
		open := func() (out []cloud.Command) {
			require.NoError(t, w.cloud.Store.Look(t.Context(), func(v cloud.View) (err error) {
				out, err = v.OpenCommands(w.box.Devices[0].DeviceID)
				return err
			}))
			return out
		}
		require.Len(t, open(), 1)
		time.Sleep(time.Until(open()[0].ExpiresAt) + 2*time.Second)
		require.Empty(t, open())
		c.setCut(false)
		require.Equal(t, cloud.DiagnosisExpired, w.diagnosed(id).State)
	})
}
