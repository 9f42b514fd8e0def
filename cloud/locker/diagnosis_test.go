package locker_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/cloud/webtest"
	"github.com/postern-io/postern/protocol/diagnosis"
	"github.com/postern-io/postern/protocol/signed"
	"github.com/postern-io/postern/protocol/wire"
)

// clinic is a cabinet that is diagnosed.
type clinic struct {
	t     *testing.T
	w     *webtest.World
	staff cloud.Caller
	key   *signed.DeviceKey
}

func newClinic(t *testing.T) *clinic {
	k := &clinic{t: t, w: webtest.New(t), staff: cloud.Caller{Account: cloud.Account{ID: 2, BusinessID: 42, Type: cloud.ClientEmployee, Name: "Sam"}}}
	seed, public := signed.NewSeed()
	k.change(func(d *cloud.Device) { d.UpKey = public })
	var err error
	k.key, err = signed.NewDeviceKey(k.device().Code, seed)
	require.NoError(t, err)
	return k
}

func (k *clinic) device() (d cloud.Device) {
	require.NoError(k.t, k.w.DB.Look(ctx, func(v cloud.View) (err error) { d, err = v.Device(88); return err }))
	return d
}

func (k *clinic) change(f func(*cloud.Device)) {
	d := k.device()
	f(&d)
	k.w.Write(k.t, cloud.Changes{DeviceChanges: cloud.DeviceChanges{Devices: []cloud.Device{d}}})
}

// ask asks for a diagnosis, and gives the command and the address of the answer.
func (k *clinic) ask(kind wire.CommandKind) (id cloud.DiagnosisID, command string, u wire.Upload) {
	k.t.Helper()
	out, err := k.w.Lockers.Diagnose(ctx, k.staff, locker.DiagnoseInput{Device: 88, Type: string(kind), Reason: "night"})
	require.NoError(k.t, err)
	require.Equal(k.t, cloud.DiagnosisWaiting, out.Diagnosis.State)
	require.NoError(k.t, k.w.DB.Look(ctx, func(v cloud.View) error {
		list, err := v.OpenCommands(88)
		for _, c := range list {
			if c.Kind == kind {
				var b wire.Diagnosis
				require.NoError(k.t, wire.Decode(c.Body, &b))
				command, u = c.ID, b.Upload
			}
		}
		return err
	}))
	return out.Diagnosis.ID, command, u
}

// answer is a file for an address, as the cabinet sends it.
func (k *clinic) answer(u wire.Upload, file []byte) locker.Answer {
	sum := sha256.Sum256(file)
	return locker.Answer{Token: strings.TrimPrefix(u.Path, locker.AnswerPrefix), Digest: diagnosis.Digest(sum), Signature: k.key.SignAnswer(u.Path, sum), File: file}
}

// outcome is the cabinet's record of what came of a command.
func (k *clinic) outcome(o wire.CommandOutcome) {
	k.t.Helper()
	require.NoError(k.t, k.w.DB.Decide(ctx, 88, func(v cloud.View) (*cloud.Changes, error) {
		d, err := v.Device(88)
		if err != nil {
			return nil, err
		}
		now := time.Now().UTC().Truncate(time.Millisecond)
		work := k.w.Lockers.Begin(v, d, now)
		problem, err := work.Apply(locker.Occurrence{Record: wire.Record{Kind: wire.KindCommandOutcome, Body: wire.MustEncode(o)}, OccurredAt: now})
		require.Empty(k.t, problem)
		if err != nil {
			return nil, err
		}
		ch := &cloud.Changes{Unaudited: true}
		return ch, work.Finish(ch)
	}))
}

func (k *clinic) find(id cloud.DiagnosisID) locker.DiagnosisDetail {
	k.t.Helper()
	out, err := k.w.Lockers.FindDiagnosis(ctx, k.staff, locker.ByDiagnosis{ID: id})
	require.NoError(k.t, err)
	return out.Diagnosis
}

// files are the paths of rows that say that a file of an answer is needed.
func (k *clinic) files() (all []string) {
	const digits = "0123456789abcdef"
	for _, a := range digits {
		for _, b := range digits {
			list, err := k.w.DB.ListKeptFiles(ctx, "answer/"+string(a)+string(b))
			require.NoError(k.t, err)
			all = append(all, list...)
		}
	}
	return all
}

func viewFile(t *testing.T, name string) []byte {
	file, err := diagnosis.Encode(diagnosis.Boards{At: time.Unix(1, 0), Boards: []diagnosis.Board{{Name: name, State: "online"}}})
	require.NoError(t, err)
	return file
}

// An answer is taken once, from that cabinet, for that command; the same file again is no
// error, and it counts once the cabinet's record names it.
func TestAnswerIsTakenOnce(t *testing.T) {
	t.Parallel()
	k := newClinic(t)
	before := len(k.files())
	id, command, u := k.ask(wire.CmdBoardView)
	require.GreaterOrEqual(t, len(strings.TrimPrefix(u.Path, locker.AnswerPrefix)), 43, "256 bits")
	good := k.answer(u, viewFile(t, "A"))
	refused := func(want, why string, a locker.Answer) {
		t.Helper()
		require.Equal(t, want, code(k.w.Lockers.TakeAnswer(ctx, a)), why)
		require.Len(t, k.files(), before, why)
	}
	other := good
	other.Token = strings.Repeat("A", 43)
	refused("DIAGNOSIS_NOT_FOUND", "an address that was never made", other)
	other = good
	other.Signature = nil
	refused("DIAGNOSIS_NOT_FOUND", "not signed", other)
	seed, _ := signed.NewSeed()
	foreign, err := signed.NewDeviceKey(k.device().Code, seed)
	require.NoError(t, err)
	other.Signature = foreign.SignAnswer(u.Path, sha256.Sum256(good.File))
	refused("DIAGNOSIS_NOT_FOUND", "by another device", other)
	other = good
	other.Digest = diagnosis.Digest([32]byte{1})
	refused("VALIDATION_FAILED", "another digest", other)
	refused("VALIDATION_FAILED", "of no form", k.answer(u, []byte("{}")))
	refused("VALIDATION_FAILED", "a bundle in its place", k.answer(u, bytes.Repeat([]byte{0x1f, 0x8b, 8}, 9)))
	refused("PAYLOAD_TOO_LARGE", "too long", k.answer(u, make([]byte, diagnosis.MaxView+1)))
	require.Equal(t, cloud.DiagnosisWaiting, k.find(id).State)

	require.NoError(t, k.w.Lockers.TakeAnswer(ctx, good))
	require.NoError(t, k.w.Lockers.TakeAnswer(ctx, good), "the answer to it was lost")
	require.Equal(t, "DIAGNOSIS_ANSWERED", code(k.w.Lockers.TakeAnswer(ctx, k.answer(u, viewFile(t, "B")))))
	require.Len(t, k.files(), before+1)
	require.Nil(t, k.find(id).FileURL, "the cabinet has not said that it is its own")
	sum := sha256.Sum256(good.File)
	k.outcome(wire.CommandOutcome{CommandID: command, Outcome: wire.OutcomeDone, Digest: sum[:]})
	got := k.find(id)
	require.Equal(t, cloud.DiagnosisDone, got.State)
	require.NotNil(t, got.FileURL)
	require.Equal(t, "A", got.Boards[0].Name)
	require.EqualValues(t, len(good.File), *got.SizeBytes)
	k.outcome(wire.CommandOutcome{CommandID: command, Outcome: wire.OutcomeFailed, Reason: wire.ReasonDisk})
	require.Equal(t, cloud.DiagnosisDone, k.find(id).State, "one outcome")
	require.Equal(t, "DIAGNOSIS_ANSWERED", code(k.w.Lockers.TakeAnswer(ctx, k.answer(u, viewFile(t, "B")))))

	_, err = k.w.Lockers.FindDiagnosis(ctx, cloud.Caller{Account: cloud.Account{ID: 9, BusinessID: 9999, Type: cloud.ClientAdmin}}, locker.ByDiagnosis{ID: id})
	require.Equal(t, "DIAGNOSIS_NOT_FOUND", code(err), "of another business")
	_, err = k.w.Lockers.ListDiagnoses(ctx, cloud.Caller{Account: cloud.Account{ID: 9, BusinessID: 9999, Type: cloud.ClientAdmin}}, locker.DiagnosesInput{Device: 88})
	require.Equal(t, "DEVICE_NOT_FOUND", code(err))
}

// Neither a "done" without a file nor one about another file is believed, and nothing is taken
// once the command is over.
func TestAnswerThatDoesNotFitIsNotShown(t *testing.T) {
	t.Parallel()
	k := newClinic(t)
	before := len(k.files())
	for name, outcome := range map[string]wire.CommandOutcome{
		"another digest": {Outcome: wire.OutcomeDone, Digest: bytes.Repeat([]byte{7}, 32)},
		"no digest":      {Outcome: wire.OutcomeDone},
		"failed":         {Outcome: wire.OutcomeFailed, Reason: wire.ReasonNotSent},
		"refused":        {Outcome: wire.OutcomeRefused, Reason: wire.ReasonDiagnosing},
	} {
		for _, sent := range []bool{true, false} {
			id, command, u := k.ask(wire.CmdBoardView)
			a := k.answer(u, viewFile(t, name))
			if sent {
				require.NoError(t, k.w.Lockers.TakeAnswer(ctx, a))
			}
			outcome.CommandID = command
			k.outcome(outcome)
			got := k.find(id)
			require.NotEqual(t, cloud.DiagnosisDone, got.State, name)
			require.NotNil(t, got.Note, name)
			require.Nil(t, got.FileURL)
			require.Len(t, k.files(), before, "the file goes")
			require.Equal(t, "GONE", code(k.w.Lockers.TakeAnswer(ctx, a)), name)
		}
	}
	_, _, u := k.ask(wire.CmdSupportBundle)
	require.EqualValues(t, diagnosis.MaxBundle, u.Max)
	a := k.answer(u, []byte{0x1f, 0x8b, 8, 1})
	k.change(func(d *cloud.Device) { d.Disabled = true })
	require.Equal(t, "DIAGNOSIS_NOT_FOUND", code(k.w.Lockers.TakeAnswer(ctx, a)), "stolen")
	_, err := k.w.Lockers.Diagnose(ctx, k.staff, locker.DiagnoseInput{Device: 88, Type: "board_view"})
	require.Equal(t, "DEVICE_DISABLED", code(err))
}

// Any order of answers, lost words, outcomes and time, from several calls at once: a file is
// shown if and only if it came first and the cabinet named it; one file is kept at most.
func TestAnyOrderOfAnswers(t *testing.T) {
	t.Parallel()
	k := newClinic(t)
	before := len(k.files())
	kept := before
	for seed := range uint64(12) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		id, command, u := k.ask(wire.CmdBoardView)
		all := []locker.Answer{k.answer(u, viewFile(t, "A")), k.answer(u, viewFile(t, "B"))}
		var first []byte
		ended, done := false, false
		for range 6 {
			switch which := all[rnd.IntN(2)]; rnd.IntN(3) {
			case 0:
				err := k.w.Lockers.TakeAnswer(ctx, which)
				if err == nil && first == nil {
					first = which.File
					require.False(t, ended)
				}
				require.Equal(t, err == nil, first != nil && bytes.Equal(first, which.File) && (!ended || done), "seed %d: %v", seed, err)
			case 1:
				var wg sync.WaitGroup
				got := make([]error, 4)
				for i := range got {
					wg.Go(func() { got[i] = k.w.Lockers.TakeAnswer(ctx, which) })
				}
				wg.Wait()
				for _, err := range got {
					if err == nil && first == nil {
						first = which.File
						require.False(t, ended)
					}
					require.Equal(t, err == nil, first != nil && bytes.Equal(first, which.File) && (!ended || done), "seed %d: %v", seed, err)
				}
			case 2:
				sum := sha256.Sum256(which.File)
				k.outcome(wire.CommandOutcome{CommandID: command, Outcome: wire.OutcomeDone, Digest: sum[:]})
				if !ended {
					ended, done = true, first != nil && bytes.Equal(first, which.File)
				}
			}
		}
		got := k.find(id)
		require.Equal(t, done, got.State == cloud.DiagnosisDone, "seed %d", seed)
		require.Equal(t, done, got.FileURL != nil)
		if first != nil && (!ended || done) {
			kept++
		}
		require.Len(t, k.files(), kept, "seed %d", seed)
	}
}

// Old diagnoses go with their files; younger ones stay.
func TestOldDiagnosesAreRemoved(t *testing.T) {
	t.Parallel()
	k := newClinic(t)
	old, file := k.w.Diagnosed(t, 8, 88, wire.CmdChannelTest)
	old.CreatedAt = time.Now().Add(-31 * 24 * time.Hour).UTC().Truncate(time.Millisecond)
	k.w.Write(t, cloud.Changes{RowChanges: cloud.RowChanges{Rows: []cloud.Row{old}}, FileChanges: cloud.FileChanges{Files: []cloud.KeptFile{file}}})
	require.Equal(t, "opened", k.find(8).Test.Result)
	before := len(k.files())
	over := make(chan error, 1)
	sweeping, stop := context.WithCancel(ctx)
	go func() { over <- k.w.Lockers.RunFiles(sweeping, k.w.DB) }()
	require.Eventually(t, func() bool {
		_, err := k.w.Lockers.FindDiagnosis(ctx, k.staff, locker.ByDiagnosis{ID: 8})
		return code(err) == "DIAGNOSIS_NOT_FOUND"
	}, time.Minute, 10*time.Millisecond)
	stop()
	require.Error(t, <-over)
	require.Len(t, k.files(), before-1)
	require.NotContains(t, k.files(), file.Path)
	require.Equal(t, cloud.DiagnosisDone, k.find(7).State)
}

// A server that looks for old files, and stops, has no failure to log.
func TestALookForOldFilesIsNoFailure(t *testing.T) {
	t.Parallel()
	var failures bytes.Buffer
	tell(t, 1, slog.New(slog.NewTextHandler(&failures, &slog.HandlerOptions{Level: slog.LevelError})), func(*story) {})
	require.Empty(t, failures.String())
}

// A channel test needs a person at the cabinet, one that is connected and an empty compartment;
// it is an opening with a name in the history.
func TestChannelTestIsRefusedWhereDoorsAre(t *testing.T) {
	t.Parallel()
	k := newClinic(t)
	yes, no := true, false
	ask := func(grid cloud.GridID, attended *bool, occupied bool) (locker.DiagnosisOutput, error) {
		return k.w.Lockers.TestChannel(ctx, k.staff, locker.ChannelTestInput{Device: 88, Grid: grid, Reason: "stuck", Attended: attended, Occupied: occupied})
	}
	refused := func(want string, grid cloud.GridID, attended *bool) {
		t.Helper()
		_, err := ask(grid, attended, false)
		require.Equal(t, want, code(err))
	}
	k.w.Write(t, cloud.Changes{DeviceChanges: cloud.DeviceChanges{Sessions: []cloud.Session{{DeviceID: 88, Generation: 1}}}})
	refused("DEVICE_OFFLINE", 8804, &yes)
	k.w.Write(t, cloud.Changes{DeviceChanges: cloud.DeviceChanges{Sessions: []cloud.Session{{DeviceID: 88, Generation: 2, Online: true}}}})
	refused("VALIDATION_FAILED", 8804, nil)
	refused("VALIDATION_FAILED", 8804, &no)
	refused("GRID_NOT_FOUND", 9999, &yes)
	var occupied cloud.Compartment
	require.NoError(t, k.w.DB.Look(ctx, func(v cloud.View) error {
		cells, err := v.Compartments(88)
		for _, c := range cells {
			if c.DeliveryID != 0 {
				occupied = c
			}
		}
		return err
	}))
	require.NotZero(t, occupied.GridID)
	refused("GRID_NOT_EMPTY", occupied.GridID, &yes)
	out, err := ask(occupied.GridID, &yes, true)
	require.NoError(t, err)
	require.Equal(t, occupied.GridID, *out.Diagnosis.GridID)
	var b wire.ChannelTest
	require.NoError(t, k.w.DB.Look(ctx, func(v cloud.View) error {
		list, err := v.OpenCommands(88)
		for _, c := range list {
			if c.Kind == wire.CmdChannelTest {
				require.Equal(t, 20*time.Second, c.ExpiresAt.Sub(c.IssuedAt))
				require.NoError(t, wire.Decode(c.Body, &b))
				require.Equal(t, b.OpeningID, c.OpeningID)
			}
		}
		o, err2 := v.Opening(b.OpeningID)
		require.Equal(t, wire.OpenStaff, o.Kind)
		require.Equal(t, "Sam", o.Requester.Name)
		return errors.Join(err, err2)
	}))
	require.Equal(t, []any{wire.OpenStaff, []uint{occupied.Door}, true}, []any{b.Kind, b.Doors, b.Occupied})
	k.change(func(d *cloud.Device) { d.Protocol = cloud.ProtocolHTTP })
	refused("DIAGNOSIS_NOT_POSSIBLE", 8804, &yes)
}
