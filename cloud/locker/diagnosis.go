package locker

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
	"github.com/postern-io/postern/cloud/collection"
	"github.com/postern-io/postern/protocol/diagnosis"
	"github.com/postern-io/postern/protocol/signed"
	"github.com/postern-io/postern/protocol/wire"
)

// AnswerPrefix is what addresses begin with at which cabinets answer diagnoses; a token follows.
const AnswerPrefix = "/api/v1/devices/answers/"

// Times of diagnoses.
const (
	diagnosisLife = 15 * time.Minute    // of a command that opens no door
	uploadTime    = 15 * time.Minute    // from the end of the command, or of its session, for the answer to come
	testSession   = 2 * time.Minute     // of a channel test
	keepDiagnosis = 30 * 24 * time.Hour // and its file
	fileLife      = time.Hour           // of an address at which it is read
	sweepEvery    = time.Hour
	sweepPage     = 100
)

// answerArea is where answers are kept among the files.
const answerArea = "answer"

// diagnoses ask cabinets how they are, for the staff that looks after them.
type diagnoses struct{ *core }

// DiagnoseInput asks a cabinet for a file.
type DiagnoseInput struct {
	Device cloud.DeviceID `path:"id" json:"-"`
	Type   string         `json:"type" required:"true" enum:"board_view,support_bundle" doc:"board_view: what each lock controller board answers, channel by channel; support_bundle: settings, status, counters, versions and the newest lines of the log, without secrets or codes"`
	Reason string         `json:"reason" max:"255" line:"true"`
}

// ChannelTestInput tests the channel of one compartment.
type ChannelTestInput struct {
	Device   cloud.DeviceID `path:"id" json:"-"`
	Grid     cloud.GridID   `json:"grid_id" required:"true" min:"1"`
	Reason   string         `json:"reason" required:"true" max:"255" doc:"Why; the door history keeps it with your name"`
	Attended *bool          `json:"attended" required:"true" doc:"true confirms that a person whom you trust stands at the cabinet. The door opens, and cannot be closed from afar."`
	Occupied bool           `json:"test_occupied" doc:"true tests the channel also with a delivery inside, which stays as it is"`
}

// DiagnosisBody is a diagnosis in a list.
type DiagnosisBody struct {
	ID          cloud.DiagnosisID    `json:"diagnosis_id"`
	DeviceID    cloud.DeviceID       `json:"device_id"`
	Type        string               `json:"type" enum:"board_view,support_bundle,channel_test"`
	GridID      *cloud.GridID        `json:"grid_id" doc:"Of a channel test"`
	State       cloud.DiagnosisState `json:"state" enum:"waiting,running,done,failed,refused,expired,interrupted" doc:"waiting: for the cabinet to fetch the command; running: it has it, and has not answered yet; done: the answer is there"`
	Note        *string              `json:"state_reason" doc:"Why it failed or was refused, as the cabinet says it; null otherwise"`
	Reason      *string              `json:"reason"`
	RequestedBy string               `json:"requested_by_name"`
	RequestedAt *string              `json:"requested_at"`
	EndedAt     *string              `json:"ended_at"`
	SizeBytes   *int64               `json:"size_bytes" doc:"Of the file; null until it is there"`
}

// DiagnosisDetail is a diagnosis with its answer.
type DiagnosisDetail struct {
	DiagnosisBody
	FileURL *string     `json:"file_url" doc:"The answer as a file, by an address that is good for an hour; null until it is there"`
	Boards  []BoardBody `json:"boards" doc:"What the boards answered; of a channel test the board of its channel as it stood afterwards. Empty for a support bundle"`
	Test    *TestBody   `json:"test" doc:"Of a channel test; null otherwise"`
}

// BoardBody is a lock controller board as it answered.
type BoardBody struct {
	Name       string        `json:"name"`
	Line       string        `json:"line"`
	Family     string        `json:"family"`
	Address    int           `json:"address"`
	State      string        `json:"state" doc:"online, offline or noisy"`
	Polls      int64         `json:"polls" doc:"Since the line was set up, as the other counts"`
	Silent     int64         `json:"silent" doc:"Polls without an answer"`
	Damaged    int64         `json:"damaged" doc:"Answers with a wrong check or shape"`
	Pulses     int64         `json:"pulses"`
	AnsweredMS *int64        `json:"answered_ms_ago" doc:"null: never"`
	Error      *string       `json:"error" doc:"What went wrong last: no_answer, damaged or line_closed"`
	ErrorMS    *int64        `json:"error_ms_ago"`
	Channels   []ChannelBody `json:"channels"`
}

// ChannelBody is a channel of a board.
type ChannelBody struct {
	Channel int     `json:"channel"`
	Door    *int    `json:"door" doc:"compartment_number of the door on it"`
	Switch  *bool   `json:"switch_bit" doc:"The bit as the board sends it, before its polarity counts"`
	Item    *bool   `json:"item_bit" doc:"null: no sensor, or no reading"`
	State   *string `json:"door_state" doc:"open, closed or unknown, after debouncing"`
	Edges   int64   `json:"edges" doc:"Raw changes of the switch"`
}

// TestBody is what a channel test has shown.
type TestBody struct {
	OpeningID string     `json:"opening_id"`
	Door      int        `json:"door"`
	Channel   int        `json:"channel"`
	Result    string     `json:"result" doc:"opened, not_opened, or not_seen where the board or the agent stopped in the middle of it"`
	Pulses    int        `json:"pulses"`
	DelayMS   *int64     `json:"delay_ms" doc:"From the last pulse to the open door"`
	Closed    bool       `json:"closed" doc:"Whether it was closed again within the session of two minutes"`
	OpenMS    *int64     `json:"open_ms" doc:"How long it was open; null while that is not known"`
	Item      *string    `json:"item" doc:"present or absent at the end; null without a sensor"`
	Restarted bool       `json:"restarted" doc:"Whether the agent started in the middle of it and knows no moves"`
	Moves     []MoveBody `json:"moves" doc:"Raw bits of the board that changed during the test, oldest first. A switch that moves on another channel is wired to it"`
}

// MoveBody is a raw bit that changed.
type MoveBody struct {
	AfterMS int64  `json:"after_ms" doc:"Since the test began"`
	Channel int    `json:"channel"`
	Bit     string `json:"bit" doc:"switch or item"`
	Set     bool   `json:"set"`
}

// DiagnosisOutput shows a diagnosis.
type DiagnosisOutput struct {
	Result    bool            `json:"result"`
	Diagnosis DiagnosisDetail `json:"diagnosis"`
}

// DiagnosesInput asks for a part of a cabinet's diagnoses.
type DiagnosesInput struct {
	Device cloud.DeviceID `path:"id"`
	collection.PageInput
}

// DiagnosesOutput lists diagnoses.
type DiagnosesOutput struct {
	Result bool `json:"result"`
	check.PageOutput
	Diagnoses []DiagnosisBody `json:"diagnoses"`
}

// ByDiagnosis names a diagnosis.
type ByDiagnosis struct {
	ID cloud.DiagnosisID `path:"diagnosis_id"`
}

// Diagnose asks a cabinet of the caller's business for a file; it is carried out at once, or when
// the cabinet connects within 15 minutes. Errors: DEVICE_NOT_FOUND, DEVICE_DISABLED,
// DEVICE_HAS_NO_DOORS (a view of the boards of a warehouse post), DIAGNOSIS_NOT_POSSIBLE.
func (s diagnoses) Diagnose(ctx context.Context, c cloud.Caller, in DiagnoseInput) (out DiagnosisOutput, err error) {
	now := time.Now().UTC().Truncate(time.Millisecond)
	err = s.cfg.Store.Decide(ctx, in.Device, func(v cloud.View) (*cloud.Changes, error) {
		device, err := s.testable(v, c, in.Device)
		if err != nil {
			return nil, err
		}
		if in.Type == string(wire.CmdBoardView) && device.IsPost() {
			return nil, errNoDoors()
		}
		w := s.Begin(v, device, now)
		d, upload, err := newDiagnosis(w, c, wire.CommandKind(in.Type), in.Reason, now.Add(diagnosisLife+uploadTime))
		if err != nil {
			return nil, err
		}
		cmd, err := w.send("", d.Kind, wire.Diagnosis{Upload: upload}, nil, diagnosisLife)
		if err != nil {
			return nil, err
		}
		d.CommandID = cmd.ID
		return w.keepDiagnosis(c, d, &out)
	})
	return out, err
}

// TestChannel opens a door as OpenGrids does, and asks the cabinet for what its board read
// meanwhile. Errors: DEVICE_NOT_FOUND, DEVICE_HAS_NO_DOORS, GRID_NOT_FOUND, GRID_NOT_EMPTY,
// VALIDATION_FAILED, DEVICE_DISABLED, DEVICE_OFFLINE, DIAGNOSIS_NOT_POSSIBLE.
func (s diagnoses) TestChannel(ctx context.Context, c cloud.Caller, in ChannelTestInput) (out DiagnosisOutput, err error) {
	open := StaffOpenInput{Device: in.Device, Grids: []cloud.GridID{in.Grid}, Reason: in.Reason, Attended: in.Attended}
	if err := open.check(); err != nil {
		return out, err
	}
	now := time.Now().UTC().Truncate(time.Millisecond)
	err = s.cfg.Store.Decide(ctx, in.Device, func(v cloud.View) (*cloud.Changes, error) {
		if _, err := withDoors(v, c, in.Device); err != nil {
			return nil, err
		}
		device, err := s.testable(v, c, in.Device)
		if err != nil {
			return nil, err
		}
		w := s.Begin(v, device, now)
		o, opened, err := beginForStaff(w.requests, c, open)
		if err != nil {
			return nil, err
		}
		if inside := opened.Contents[0]; inside.DeliveryID != nil && !in.Occupied {
			return nil, &cloud.Error{Kind: cloud.Conflict, Code: "GRID_NOT_EMPTY", Details: map[string]any{"state": inside.State}}
		}
		d, upload, err := newDiagnosis(w, c, wire.CmdChannelTest, in.Reason, now.Add(commandLife+testSession+uploadTime))
		if err != nil {
			return nil, err
		}
		d.GridID = in.Grid
		cmd, err := w.send(o.ID, d.Kind, wire.ChannelTest{OpeningID: o.ID, Kind: o.Kind, Doors: doorsOf(*o), SessionSeconds: uint(testSession / time.Second), Upload: upload, Occupied: in.Occupied}, doorsOf(*o), commandLife)
		if err != nil {
			return nil, err
		}
		d.CommandID = cmd.ID
		return w.keepDiagnosis(c, d, &out)
	})
	return out, err
}

// testable is a device of the caller's business that can be asked.
func (s diagnoses) testable(v cloud.View, c cloud.Caller, id cloud.DeviceID) (cloud.Device, error) {
	device, err := owned(v, c, id)
	switch {
	case err != nil:
		return device, err
	case device.Disabled:
		return device, cloud.E(cloud.Conflict, "DEVICE_DISABLED")
	case device.Protocol != cloud.ProtocolMQTT || s.cfg.Files == nil:
		return device, cloud.E(cloud.Conflict, "DIAGNOSIS_NOT_POSSIBLE")
	}
	return device, nil
}

// newDiagnosis makes a diagnosis, and the address at which its answer is taken once.
func newDiagnosis(w *Work, c cloud.Caller, kind wire.CommandKind, reason string, until time.Time) (d cloud.Diagnosis, upload wire.Upload, err error) {
	id, err := w.v.NewID(cloud.DiagnosisIDs)
	if err != nil {
		return d, upload, err
	}
	var random [32]byte
	_, _ = rand.Read(random[:]) // never fails
	token := base64.RawURLEncoding.EncodeToString(random[:])
	d = cloud.Diagnosis{DeviceID: w.device.ID, Kind: kind, TokenHash: hashToken(token), RequestedBy: employee(c).Name, Reason: reason, Until: until, State: cloud.DiagnosisWaiting}
	d.Begin(id, w.device.BusinessID, w.received)
	return d, wire.Upload{Path: AnswerPrefix + token, Until: until.UnixNano(), Max: maxAnswer(kind)}, nil
}

func hashToken(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

func (w *Work) keepDiagnosis(c cloud.Caller, d cloud.Diagnosis, out *DiagnosisOutput) (*cloud.Changes, error) {
	biz, err := w.v.Business(w.device.BusinessID)
	if err != nil {
		return nil, err
	}
	detail, err := json.Marshal(map[string]string{"type": string(d.Kind), "reason": d.Reason, "command_id": d.CommandID})
	if err != nil {
		return nil, err
	}
	w.ch.Audits = append(w.ch.Audits, cloud.Audit{BusinessID: d.BusinessID, At: w.received, Actor: actor(c), Action: "diagnosis_made", Target: w.device.Code, Detail: string(detail)})
	w.ch.Rows = append(w.ch.Rows, d)
	*out = DiagnosisOutput{Result: true, Diagnosis: DiagnosisDetail{DiagnosisBody: diagnosisBody(d, biz.Location()), Boards: []BoardBody{}}}
	w.ch.Answer = *out
	ch := &cloud.Changes{}
	return ch, w.Finish(ch)
}

func diagnosisBody(d cloud.Diagnosis, l *time.Location) DiagnosisBody {
	b := DiagnosisBody{ID: d.ID, DeviceID: d.DeviceID, Type: string(d.Kind), GridID: cloud.OrNull(d.GridID), State: d.State, Note: textOrNil(d.Note), Reason: textOrNil(d.Reason), RequestedBy: d.RequestedBy,
		RequestedAt: cloud.Stamp(d.CreatedAt, l), EndedAt: cloud.Stamp(d.EndedAt, l)}
	if d.State == cloud.DiagnosisDone {
		b.SizeBytes = &d.SizeBytes
	}
	return b
}

// present is a diagnosis as it stands: while its command has no outcome, the command says how.
func present(v cloud.View, d cloud.Diagnosis, now time.Time) (cloud.Diagnosis, error) {
	if d.State != cloud.DiagnosisWaiting {
		return d, nil
	}
	cmd, err := v.Command(d.CommandID)
	switch {
	case errors.Is(err, cloud.ErrNotFound), err == nil && (cmd.Expired(now) || now.After(d.Until)):
		d.State = cloud.DiagnosisExpired
	case err != nil:
		return d, err
	case cmd.State.Ended(): // without a word of the cabinet: its memory or its hardware is gone
		d.State, d.Note, d.EndedAt = cloud.DiagnosisInterrupted, cmd.Reason, cmd.EndedAt
	case cmd.State != cloud.CommandQueued:
		d.State = cloud.DiagnosisRunning
	}
	return d, nil
}

// ListDiagnoses lists the diagnoses of a cabinet of the caller's business, newest first, of the
// last 30 days. Error: DEVICE_NOT_FOUND.
func (s diagnoses) ListDiagnoses(ctx context.Context, c cloud.Caller, in DiagnosesInput) (out DiagnosesOutput, err error) {
	part, err := in.Sorted(in, "id", "created_at")
	if err != nil {
		return out, err
	}
	out.Diagnoses = []DiagnosisBody{}
	err = s.cfg.Store.Look(ctx, func(v cloud.View) error {
		if _, err := owned(v, c, in.Device); err != nil {
			return err
		}
		biz, err := v.Business(c.Account.BusinessID)
		if err != nil {
			return err
		}
		list, listed, err := cloud.List(v, cloud.Diagnosis{Kept: cloud.Kept[cloud.DiagnosisID]{BusinessID: c.Account.BusinessID}, DeviceID: in.Device}, part)
		if err != nil {
			return err
		}
		now := time.Now()
		for _, d := range list {
			if d, err = present(v, d, now); err != nil {
				return err
			}
			out.Diagnoses = append(out.Diagnoses, diagnosisBody(d, biz.Location()))
		}
		out.Result, out.PageOutput = true, in.Output(in, listed)
		return nil
	})
	return out, err
}

// FindDiagnosis shows a diagnosis of the caller's business with its answer. Error:
// DIAGNOSIS_NOT_FOUND.
func (s diagnoses) FindDiagnosis(ctx context.Context, c cloud.Caller, in ByDiagnosis) (out DiagnosisOutput, err error) {
	var d cloud.Diagnosis
	now := time.Now()
	err = s.cfg.Store.Look(ctx, func(v cloud.View) error {
		if d, err = collection.FindIn(v, cloud.Diagnosis{Kept: cloud.Kept[cloud.DiagnosisID]{ID: in.ID, BusinessID: c.Account.BusinessID}}); err != nil {
			return err
		}
		biz, err := v.Business(d.BusinessID)
		if err != nil {
			return err
		}
		if d, err = present(v, d, now); err != nil {
			return err
		}
		out = DiagnosisOutput{Result: true, Diagnosis: DiagnosisDetail{DiagnosisBody: diagnosisBody(d, biz.Location()), Boards: []BoardBody{}}}
		return nil
	})
	if err != nil || d.State != cloud.DiagnosisDone || s.cfg.Files == nil {
		return out, err
	}
	address := s.cfg.SignFile(d.Path, now.Add(fileLife))
	out.Diagnosis.FileURL = &address
	return out, s.readAnswer(ctx, d, &out.Diagnosis)
}

// readAnswer puts what a file says into an answer. One that is gone or of no form says nothing.
func (s diagnoses) readAnswer(ctx context.Context, d cloud.Diagnosis, out *DiagnosisDetail) error {
	if d.Kind == wire.CmdSupportBundle {
		return nil
	}
	file, _, err := s.cfg.OpenFile(ctx, d.Path)
	if errors.Is(err, cloud.ErrNotFound) {
		out.FileURL = nil
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the answer to diagnosis %d: %w", d.ID, err)
	}
	defer file.Close()
	if d.Kind == wire.CmdBoardView {
		b, err := diagnosis.DecodeBoards(file)
		if err != nil {
			return fmt.Errorf("read the answer to diagnosis %d: %w", d.ID, err)
		}
		for _, x := range b.Boards {
			out.Boards = append(out.Boards, boardBody(x))
		}
		return nil
	}
	t, err := diagnosis.DecodeTest(file)
	if err != nil {
		return fmt.Errorf("read the answer to diagnosis %d: %w", d.ID, err)
	}
	out.Test = testBody(t)
	if t.Board != nil {
		out.Boards = append(out.Boards, boardBody(*t.Board))
	}
	return nil
}

func boardBody(b diagnosis.Board) BoardBody {
	out := BoardBody{Name: b.Name, Line: b.Line, Family: b.Family, Address: int(b.Address), State: b.State, Polls: int64(b.Polls), Silent: int64(b.Silent), Damaged: int64(b.Damaged), Pulses: int64(b.Pulses),
		AnsweredMS: b.AnsweredMS, Error: textOrNil(b.Error), ErrorMS: b.ErrorMS, Channels: []ChannelBody{}}
	for _, c := range b.Channels {
		out.Channels = append(out.Channels, ChannelBody{Channel: int(c.Channel), Door: cloud.OrNull(int(c.Door)), Switch: c.Switch, Item: c.Item, State: textOrNil(c.State), Edges: int64(c.Edges)})
	}
	return out
}

func testBody(t diagnosis.Test) *TestBody {
	out := &TestBody{OpeningID: t.OpeningID, Door: int(t.Door), Channel: int(t.Channel), Result: t.Result, Pulses: int(t.Pulses), DelayMS: t.DelayMS, Closed: t.Closed, OpenMS: t.OpenMS, Item: textOrNil(t.Item),
		Restarted: t.Restarted, Moves: []MoveBody{}}
	for _, m := range t.Moves {
		out.Moves = append(out.Moves, MoveBody{m.AfterMS, int(m.Channel), m.Bit, m.Set})
	}
	return out
}

// Answer is a file that a cabinet sends.
type Answer struct {
	Token     string
	Digest    string // as the header says it
	Signature []byte // of the device; nil: none
	File      []byte
}

// TakeAnswer keeps the answer to a diagnosis, once. The same file again is no error: the
// cabinet may not have heard that it was taken. Errors: DIAGNOSIS_NOT_FOUND, also for a file
// that the device has not signed, GONE, DIAGNOSIS_ANSWERED, PAYLOAD_TOO_LARGE,
// VALIDATION_FAILED.
func (s diagnoses) TakeAnswer(ctx context.Context, in Answer) error {
	if s.cfg.Files == nil {
		return cloud.E(cloud.NotFound, "DIAGNOSIS_NOT_FOUND")
	}
	sum := sha256.Sum256(in.File)
	now := time.Now().UTC().Truncate(time.Millisecond)
	var d cloud.Diagnosis
	err := s.cfg.Store.Look(ctx, func(v cloud.View) (err error) {
		d, err = askedAnswer(v, in, sum, now)
		return err
	})
	if err != nil || d.Path != "" {
		return err
	}
	if err := checkAnswer(d.Kind, in, sum); err != nil {
		return err
	}
	stored, err := s.cfg.Files.Put(ctx, answerArea, bytes.NewReader(in.File), maxAnswer(d.Kind), diagnosis.MIME)
	if err != nil {
		return err
	}
	used := false
	err = s.cfg.Store.Decide(ctx, d.DeviceID, func(v cloud.View) (*cloud.Changes, error) {
		used = false
		if d, err = askedAnswer(v, in, sum, now); err != nil || d.Path != "" {
			return nil, err
		}
		used = true
		d.Path, d.SizeBytes, d.Digest = stored.Path, stored.Size, hex.EncodeToString(sum[:])
		d.Touch(now)
		return &cloud.Changes{RowChanges: cloud.RowChanges{Rows: []cloud.Row{d}}, FileChanges: cloud.FileChanges{Files: []cloud.KeptFile{{Path: stored.Path, BusinessID: d.BusinessID, At: now}}}, Unaudited: true}, nil
	})
	var refused *cloud.Error
	if errors.As(err, &refused) || err == nil && !used { // what may have been stored is not known: it is swept if it has no row
		err = errors.Join(err, s.cfg.Files.Delete(ctx, stored.Path))
	}
	return err
}

// askedAnswer is the diagnosis whose answer may come now, or has come with the same file.
func askedAnswer(v cloud.View, in Answer, sum [sha256.Size]byte, now time.Time) (d cloud.Diagnosis, err error) {
	unknown := cloud.E(cloud.NotFound, "DIAGNOSIS_NOT_FOUND")
	if d, err = collection.FindIn(v, cloud.Diagnosis{TokenHash: hashToken(in.Token)}); err != nil {
		return d, err
	}
	device, err := v.Device(d.DeviceID)
	if err != nil {
		return d, err
	}
	if device.Disabled || len(device.UpKey) > 0 && !signed.VerifyAnswer(device.UpKey, device.Code, AnswerPrefix+in.Token, sum, in.Signature) {
		return d, unknown
	}
	switch cmd, err := v.Command(d.CommandID); {
	case err != nil && !errors.Is(err, cloud.ErrNotFound):
		return d, err
	case d.Path != "" && d.Digest == hex.EncodeToString(sum[:]):
		return d, nil
	case d.Path != "":
		return d, cloud.E(cloud.Conflict, "DIAGNOSIS_ANSWERED")
	case err != nil, d.State != cloud.DiagnosisWaiting, cmd.State.Ended() && cmd.State != cloud.CommandExpired, now.After(d.Until):
		return d, cloud.E(cloud.NotFound, "GONE")
	}
	return d, nil
}

// maxAnswer is the most bytes that an answer may have.
func maxAnswer(kind wire.CommandKind) int64 {
	if kind == wire.CmdSupportBundle {
		return diagnosis.MaxBundle
	}
	return diagnosis.MaxView
}

// Messages about answers.
const (
	messageAnswerDigest = "The header Content-Digest must name the SHA-256 of the body, as in RFC 9530: sha-256=:…:."
	messageAnswerForm   = "The body must be the gzip file that the command asks for."
)

// checkAnswer refuses a file that is not what was asked for.
func checkAnswer(kind wire.CommandKind, in Answer, sum [sha256.Size]byte) error {
	if int64(len(in.File)) > maxAnswer(kind) {
		return cloud.E(cloud.TooLarge, "PAYLOAD_TOO_LARGE")
	}
	f := newFields()
	if in.Digest != diagnosis.Digest(sum) {
		f.Say("digest", messageAnswerDigest)
		return f.Err()
	}
	var err error
	switch kind {
	case wire.CmdBoardView:
		_, err = diagnosis.DecodeBoards(bytes.NewReader(in.File))
	case wire.CmdChannelTest:
		_, err = diagnosis.DecodeTest(bytes.NewReader(in.File))
	default:
		if !bytes.HasPrefix(in.File, []byte{0x1f, 0x8b, 8}) {
			err = diagnosis.ErrBad
		}
	}
	if err != nil {
		f.Say("file", messageAnswerForm)
	}
	return f.Err()
}

// diagnosed: the cabinet says what came of a diagnosis. It is done only with the file whose
// digest it names.
func (w reports) diagnosed(r Occurrence, c *cloud.Command, digest []byte) error {
	d, err := cloud.Find(w.v, cloud.Diagnosis{CommandID: c.ID})
	if errors.Is(err, cloud.ErrNotFound) {
		return nil // it was asked for long ago
	}
	if err != nil || d.State != cloud.DiagnosisWaiting {
		return err
	}
	d.State, d.Note, d.EndedAt = cloud.DiagnosisState(c.State), c.Reason, r.OccurredAt
	switch {
	case c.State == cloud.CommandPartial:
		d.State = cloud.DiagnosisFailed
	case c.State == cloud.CommandDone && (d.Path == "" || d.Digest != hex.EncodeToString(digest)):
		d.State, d.Note = cloud.DiagnosisFailed, wire.ReasonNotSent
	}
	if d.State != cloud.DiagnosisDone && d.Path != "" {
		w.ch.DroppedFiles = append(w.ch.DroppedFiles, cloud.KeptFile{Path: d.Path, BusinessID: d.BusinessID})
		d.Path = ""
	}
	d.Touch(w.received)
	w.ch.Rows = append(w.ch.Rows, d)
	return nil
}

// OldFiles lists what devices sent long ago, of every business.
type OldFiles interface {
	ListOldDiagnoses(ctx context.Context, before time.Time, limit int) ([]cloud.Diagnosis, error)
	ListOldPhotos(ctx context.Context, before time.Time, limit int) ([]cloud.DevicePhoto, error)
}

// RunFiles removes diagnoses and their files once they are 30 days old, and photos after 90, until
// ctx ends. Any number of nodes may run it.
func (s diagnoses) RunFiles(ctx context.Context, rows OldFiles) error {
	t := time.NewTicker(sweepEvery)
	defer t.Stop()
	for {
		now := time.Now()
		err := sweepRows(ctx, s.core, now.Add(-keepDiagnosis), rows.ListOldDiagnoses, func(d cloud.Diagnosis) cloud.KeptFile { return cloud.KeptFile{Path: d.Path, BusinessID: d.BusinessID} })
		err = errors.Join(err, sweepRows(ctx, s.core, now.Add(-keepPhoto), rows.ListOldPhotos, func(p cloud.DevicePhoto) cloud.KeptFile {
			return cloud.KeptFile{Path: p.Path, BusinessID: p.BusinessID}
		}))
		if err != nil && ctx.Err() == nil {
			s.log.Error("remove old files of devices", "err", err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-t.C:
		}
	}
}

func sweepRows[R cloud.Row](ctx context.Context, s *core, before time.Time, old func(context.Context, time.Time, int) ([]R, error), file func(R) cloud.KeptFile) error {
	for {
		list, err := old(ctx, before, sweepPage)
		if err != nil || len(list) == 0 {
			return err
		}
		err = s.cfg.Store.Decide(ctx, 0, func(cloud.View) (*cloud.Changes, error) {
			ch := &cloud.Changes{Unaudited: true}
			for _, r := range list {
				ch.DroppedRows = append(ch.DroppedRows, r)
				if f := file(r); f.Path != "" {
					ch.DroppedFiles = append(ch.DroppedFiles, f)
				}
			}
			return ch, nil
		})
		if err != nil {
			return err
		}
	}
}
