package update

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/postern-io/postern/edge/origin"
	"github.com/postern-io/postern/protocol/release"
	"github.com/postern-io/postern/protocol/signed"
	"github.com/postern-io/postern/protocol/wire"
)

// Times of a fetch.
const (
	stallTime  = time.Minute      // without a byte, after which a connection is given up
	firstPause = 5 * time.Second  // before it is tried again; each further pause is twice as long
	lastPause  = 10 * time.Minute // at most
	fetchTime  = 12 * time.Hour   // for all of it
)

// ErrFetch says that the cloud did not give an artefact, or not in time.
var ErrFetch = errors.New("the artefact was not fetched")

// Remote takes updates from the cloud of a cabinet. Safe for concurrent use.
type Remote struct {
	versions *Versions
	cloud    *origin.Cloud
	log      *slog.Logger
}

// NewRemote takes updates from cloud.
func NewRemote(v *Versions, cloud *origin.Cloud) *Remote {
	return &Remote{versions: v, cloud: cloud, log: v.cfg.Log}
}

// Judge says why an update is not taken, one of wire's reasons, before anything is fetched;
// "" when it is.
func (r *Remote) Judge(u wire.Update) string {
	if len(r.versions.keys) == 0 {
		return wire.ReasonNoKey
	}
	m, err := release.Verify(u.Signature, r.versions.keys)
	if err != nil || m.Version != u.Version || m.Size != u.Size || !bytes.Equal(m.Digest, u.Digest) {
		return wire.ReasonForged
	}
	if err := r.versions.checkMachine(m); err != nil {
		return Reason(err)
	}
	s, err := r.versions.read()
	if err == nil {
		err = r.versions.checkFloor(m, s)
	}
	if err != nil {
		return Reason(err)
	}
	if _, err := r.cloud.Address(u.URL); err != nil {
		return wire.ReasonNoCloud
	}
	return ""
}

// Reason is one of wire's reasons for an error of Install.
func Reason(err error) string {
	switch {
	case errors.Is(err, ErrNoKeys):
		return wire.ReasonNoKey
	case errors.Is(err, ErrOther):
		return wire.ReasonMachine
	case errors.Is(err, ErrOlder):
		return wire.ReasonNotNewer
	case errors.Is(err, ErrTrial):
		return wire.ReasonTrial
	case errors.Is(err, ErrBusy):
		return wire.ReasonUpdating
	case errors.Is(err, ErrFetch):
		return wire.ReasonFetch
	case isForged(err):
		return wire.ReasonForged
	}
	return wire.ReasonDisk
}

// Install fetches an update that Judge has let pass, and installs it. It goes on where a
// connection broke. One that is installed already is no error, so that it may be called
// again after a power cut. The errors are those of Versions.Install, ErrFetch, and
// context.Canceled.
func (r *Remote) Install(ctx context.Context, u wire.Update) error {
	if s, err := r.versions.read(); err == nil && s.Floor == u.Version {
		return nil
	}
	address, err := r.cloud.Address(u.URL)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrFetch, err)
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	head := release.Head(u.Signature)
	f := &fetch{ctx: ctx, remote: r, address: address, at: int64(len(head)), end: int64(len(head)) + u.Size, pause: firstPause}
	defer f.drop()
	_, err = r.versions.Install(io.MultiReader(bytes.NewReader(head), f))
	return err
}

// Waiting reports whether a version waits for its first start.
func (r *Remote) Waiting() bool {
	s, err := r.versions.read()
	return err == nil && s.Trial != nil && s.Trial.Starts == 0
}

// maxReason is how much is said of why a version was given up, in bytes.
const maxReason = 200

// State is where updates stand for the agent of a version, as its status says it.
func (r *Remote) State(version string) wire.UpdateState {
	report := r.versions.Report()
	reason := report.Reason
	if len(reason) > maxReason {
		reason = strings.ToValidUTF8(reason[:maxReason], "")
	}
	return wire.UpdateState{Trial: report.Trial != "" && report.Trial == release.VersionOf(version), GivenUp: report.GivenUp, Reason: reason}
}

// fetch reads the program of an artefact, over as many connections as it takes. One
// goroutine uses it.
type fetch struct {
	ctx     context.Context // of the one Install that it is for
	remote  *Remote
	address string
	at, end int64 // offsets in the artefact
	pause   time.Duration

	body  io.ReadCloser // nil: not connected
	stall *time.Timer
	stop  context.CancelFunc
}

// Read reads on, and connects again after an error that passes.
func (f *fetch) Read(p []byte) (int, error) {
	for f.at < f.end {
		n, err := f.read(p[:min(int64(len(p)), f.end-f.at)])
		if n > 0 {
			f.at, f.pause = f.at+int64(n), firstPause
			return n, nil
		}
		f.drop()
		var final *origin.Refusal
		if errors.As(err, &final) {
			return 0, fmt.Errorf("%w: %w", ErrFetch, err)
		}
		f.remote.log.Warn("an update is not fetched yet", "bytes", f.at, "of", f.end, "err", origin.WithoutAddress(err), "again_in", f.pause)
		select {
		case <-f.ctx.Done():
			return 0, fmt.Errorf("%w: %w", ErrFetch, context.Cause(f.ctx))
		case <-time.After(f.pause):
		}
		f.pause = min(2*f.pause, lastPause)
	}
	return 0, io.EOF
}

func (f *fetch) read(p []byte) (int, error) {
	if f.body == nil {
		if err := f.connect(); err != nil {
			return 0, err
		}
	}
	f.stall.Reset(stallTime)
	n, err := f.body.Read(p)
	if n == 0 && err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// connect asks for what is still missing.
func (f *fetch) connect() error {
	ctx, stop := context.WithCancel(f.ctx)
	f.stop, f.stall = stop, time.AfterFunc(stallTime, stop)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, f.address, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Range", fmt.Sprintf("bytes=%d-%d", f.at, f.end-1))
	answer, err := f.remote.cloud.Do(req)
	if err != nil {
		return err
	}
	f.body = answer.Body
	if answer.StatusCode == http.StatusPartialContent && strings.HasPrefix(answer.Header.Get("Content-Range"), fmt.Sprintf("bytes %d-", f.at)) {
		return nil
	}
	if err := origin.CheckAnswer(answer.StatusCode); err != nil {
		return err
	}
	return &origin.Refusal{Status: answer.StatusCode} // it is not the part that was asked for
}

// drop ends the connection.
func (f *fetch) drop() {
	if f.stop != nil {
		f.stop()
		f.stall.Stop()
	}
	if f.body != nil {
		_ = f.body.Close()
	}
	f.body, f.stop, f.stall = nil, nil, nil
}

func isForged(err error) bool {
	return errors.Is(err, release.ErrArtefact) || errors.Is(err, signed.ErrSignature)
}
