package platform_test

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/object"
	"github.com/postern-io/postern/cloud/platform"
	"github.com/postern-io/postern/cloud/store"
	"github.com/postern-io/postern/cloud/webtest"
)

// ending is a database whose process ends before or after every few steps.
type ending struct {
	*store.DB
	mu sync.Mutex
	n  int
}

var errEnded = errors.New("the process ended")

func (e *ending) KeepStep(ctx context.Context, from, to cloud.BusinessJob) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if from.Part == to.Part && from.Step == to.Step && from.Position == to.Position { // no step
		return e.DB.KeepStep(ctx, from, to)
	}
	e.n++
	if e.n%3 == 0 { // the part is written, its row is not
		return errEnded
	}
	err := e.DB.KeepStep(ctx, from, to)
	if err == nil && e.n%4 == 0 {
		err = errEnded
	}
	return err
}

// archives are those of a folder.
func archives(t *testing.T) platform.Archives {
	f, err := object.Open(t.TempDir(), make([]byte, 32))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	return f.Archives()
}

func service(t *testing.T, db *store.DB, jobs platform.Jobs) *platform.Service {
	return platform.New(platform.Config{Store: db, Jobs: jobs, Over: store.ExportOver, Archives: archives(t), DigestKey: []byte("k"), InvitationPath: "/invitation"})
}

// lines are an archive's lines by table, without the audit trail, which exports grow.
func lines(t *testing.T, s *platform.Service, job cloud.BusinessJobID) (out []string) {
	t.Helper()
	body, size, _, err := s.Download(t.Context(), cloud.Caller{}, platform.ByJob{ID: job})
	require.NoError(t, err)
	defer body.Close()
	counted := &counter{Reader: body}
	z, err := gzip.NewReader(counted)
	require.NoError(t, err)
	r := tar.NewReader(z)
	seen := map[string]bool{}
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		require.False(t, seen[h.Name], h.Name)
		seen[h.Name] = true
		raw, err := io.ReadAll(r)
		require.NoError(t, err)
		if !strings.Contains(h.Name, "-audit.") {
			out = append(out, strings.Split(strings.TrimSpace(string(raw)), "\n")...)
		}
	}
	_, err = io.Copy(io.Discard, counted)
	require.NoError(t, err)
	require.Equal(t, size, counted.n)
	slices.Sort(out)
	return out
}

type counter struct {
	io.Reader
	n int64
}

func (c *counter) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	c.n += int64(n)
	return n, err
}

// An export whose process ends again and again is the archive of one that went through.
func TestAnExportGoesOnAfterTheProcessEnded(t *testing.T) {
	t.Parallel()
	w := webtest.New(t)
	operator := cloud.Caller{Account: cloud.Account{ID: 6, Type: cloud.PlatformAdmin}}
	smooth := service(t, w.DB, w.DB)
	first, err := smooth.Export(t.Context(), operator, platform.ByBusiness{ID: 42})
	require.NoError(t, err)
	require.NoError(t, smooth.Work(t.Context()))
	want := lines(t, smooth, first.Job.JobID)
	require.Greater(t, len(want), 20)

	broken := service(t, w.DB, &ending{DB: w.DB})
	second, err := broken.Export(t.Context(), operator, platform.ByBusiness{ID: 42})
	require.NoError(t, err)
	ends := 0
	for {
		err := broken.Work(t.Context())
		if err == nil {
			break
		}
		require.ErrorIs(t, err, errEnded)
		ends++
		require.Less(t, ends, 200)
	}
	require.Greater(t, ends, 3)
	require.Equal(t, want, lines(t, broken, second.Job.JobID))
}

// Two nodes remove a business at once: it is removed once, with one last line.
func TestTwoNodesRemoveABusinessOnce(t *testing.T) {
	t.Parallel()
	w := webtest.New(t)
	operator := cloud.Caller{Account: cloud.Account{ID: 6, Type: cloud.PlatformAdmin}}
	a, b := service(t, w.DB, w.DB), service(t, w.DB, w.DB)
	_, err := a.Suspend(t.Context(), operator, platform.SuspendInput{ID: 43, Reason: "Over"})
	require.NoError(t, err)
	shown, err := a.PreviewRemoval(t.Context(), operator, platform.ByBusiness{ID: 43})
	require.NoError(t, err)
	yes := true
	begun, err := a.Remove(t.Context(), operator, platform.RemoveInput{ID: 43, Digest: shown.Digest, Code: "other", Reason: "Over", Confirm: &yes})
	require.NoError(t, err)
	var wg sync.WaitGroup
	for _, s := range []*platform.Service{a, b, a, b} {
		wg.Go(func() {
			for { // one that is overtaken looks again
				if err := s.Work(t.Context()); err != nil {
					t.Error(err)
					return
				}
				if j, err := s.FindRemoval(t.Context(), operator, platform.ByJob{ID: begun.Job.JobID}); err != nil || j.Job.Status == "finished" {
					return
				}
			}
		})
	}
	wg.Wait()
	require.False(t, t.Failed())
	list, err := w.DB.ListAudits(t.Context(), 0, 0, 50)
	require.NoError(t, err)
	n := 0
	for _, l := range list {
		if l.Action == "business_removed" {
			n++
		}
	}
	require.Equal(t, 1, n)
	_, err = a.Find(t.Context(), operator, platform.ByBusiness{ID: 43})
	require.Error(t, err)
	_, err = a.Find(t.Context(), operator, platform.ByBusiness{ID: 42})
	require.NoError(t, err)
}

// Two nodes at one export: one makes it, the other leaves it alone until the first is
// gone for a minute.
func TestOneNodeMakesAnExport(t *testing.T) {
	t.Parallel()
	w := webtest.New(t)
	operator := cloud.Caller{Account: cloud.Account{ID: 6, Type: cloud.PlatformAdmin}}
	a, b := service(t, w.DB, &ending{DB: w.DB}), service(t, w.DB, w.DB)
	job, err := a.Export(t.Context(), operator, platform.ByBusiness{ID: 42})
	require.NoError(t, err)
	require.ErrorIs(t, a.Work(t.Context()), errEnded)
	require.NoError(t, b.Work(t.Context()))
	state, err := b.FindExport(t.Context(), operator, platform.ByJob{ID: job.Job.JobID})
	require.NoError(t, err)
	require.Equal(t, "running", state.Job.Status, "the first node has it")
	for a.Work(t.Context()) != nil {
	}
	require.NotEmpty(t, lines(t, a, job.Job.JobID))
}

// lookout is a database that says when jobs are looked for.
type lookout struct {
	*store.DB
	looked chan struct{}
}

func (l lookout) OpenBusinessJobs(ctx context.Context) ([]cloud.BusinessJob, error) {
	l.looked <- struct{}{}
	return l.DB.OpenBusinessJobs(ctx)
}

// A job begins when it is asked for, not with the next round of the loop, 15 seconds later.
func TestAJobBeginsAtOnce(t *testing.T) {
	t.Parallel()
	w := webtest.New(t)
	jobs := lookout{w.DB, make(chan struct{}, 100)}
	s := service(t, w.DB, jobs)
	_, err := s.Export(t.Context(), cloud.Caller{Account: cloud.Account{ID: 6, Type: cloud.PlatformAdmin}}, platform.ByBusiness{ID: 42})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx, slog.New(slog.DiscardHandler)) }()
	select {
	case <-jobs.looked:
	case <-time.After(10 * time.Second):
		t.Error("the job waits for the next round")
	}
	stop()
	require.NoError(t, <-ended)
}

// An export holds uploaded files of the business and none of another; one that is gone
// since does not keep it from its end, and a process that ends in the middle changes
// nothing.
func TestAnExportHoldsUploadedFiles(t *testing.T) {
	onBoth(t, func(t *testing.T, w *webtest.World, _ *platform.Service) {
		ch := cloud.Changes{}
		path := func(n int) string { return fmt.Sprintf("proof/%032x.jpg", n*0x1000003) }
		for n := range 60 {
			ch.Files = append(ch.Files, cloud.KeptFile{Path: path(n), BusinessID: cloud.BusinessID(42 + n%2), At: time.Now()})
		}
		w.Write(t, ch)
		open := func(_ context.Context, p string) (io.ReadCloser, int64, error) {
			if p == path(10) {
				return nil, 0, cloud.ErrNotFound
			}
			body := strings.Repeat(p, 9000)
			return io.NopCloser(strings.NewReader(body)), int64(len(body)), nil
		}
		s := platform.New(platform.Config{Store: w.DB, Jobs: &ending{DB: w.DB}, Over: store.ExportOver, Archives: archives(t), DigestKey: []byte("k"), Open: open})
		job, err := s.Export(t.Context(), someOperator, platform.ByBusiness{ID: 42})
		require.NoError(t, err)
		for err = errEnded; err != nil; err = s.Work(t.Context()) {
			require.ErrorIs(t, err, errEnded)
		}
		body, _, _, err := s.Download(t.Context(), someOperator, platform.ByJob{ID: job.Job.JobID})
		require.NoError(t, err)
		defer body.Close()
		z, err := gzip.NewReader(body)
		require.NoError(t, err)
		r := tar.NewReader(z)
		files := 0
		for {
			h, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err)
			stored, ok := strings.CutPrefix(h.Name, "business-42/files/")
			if !ok || !strings.HasPrefix(stored, "proof/") { // the world has others
				continue
			}
			raw, err := io.ReadAll(r)
			require.NoError(t, err)
			require.Equal(t, strings.Repeat(stored, 9000), string(raw))
			var n int
			_, err = fmt.Sscanf(stored, "proof/%x.jpg", &n)
			require.NoError(t, err)
			require.Zero(t, n/0x1000003%2)
			files++
		}
		require.Equal(t, 29, files)
	})
}
