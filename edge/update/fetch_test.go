package update

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/edge/origin"
	"github.com/postern-io/postern/protocol/release"
	"github.com/postern-io/postern/protocol/wire"
)

// pipes is a network of one server.
type pipes struct {
	conns chan net.Conn
	ended chan struct{}
	once  sync.Once
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.ended:
		return nil, net.ErrClosed
	}
}
func (p *pipes) Close() error   { p.once.Do(func() { close(p.ended) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }
func (p *pipes) dial(context.Context, string, string) (net.Conn, error) {
	near, far := net.Pipe()
	p.conns <- far
	return near, nil
}

// fetching runs f in a bubble with a cloud that answers by serve.
func fetching(t *testing.T, cloud string, serve http.HandlerFunc, f func(t *testing.T, r *Remote, d *simDisk)) {
	synctest.Test(t, func(t *testing.T) {
		p := &pipes{conns: make(chan net.Conn), ended: make(chan struct{})}
		server := &http.Server{Handler: serve}
		done := make(chan struct{})
		go func() { defer close(done); _ = server.Serve(p) }()
		transport := &http.Transport{DialContext: p.dial, DisableKeepAlives: true}
		d := newSimDisk()
		defer func() {
			transport.CloseIdleConnections()
			_ = server.Close()
			<-done
			synctest.Wait()
		}()
		f(t, NewRemote(open(t, "1.0.0", d), origin.New(cloud, transport)), d)
	})
}

// wanted is the command's body for an artefact.
func wanted(t *testing.T, raw []byte) wire.Update {
	t.Helper()
	m, envelope, err := release.Read(bytes.NewReader(raw), open(t, "", newSimDisk()).keys)
	require.NoError(t, err)
	return wire.Update{Version: m.Version, URL: "/a?signature=secret", Size: m.Size, Digest: m.Digest, Signature: envelope}
}

const testCloud = "http://cloud.example"

func bigArtefact(t *testing.T) []byte {
	return artefactOf(t, signer(t, 1), release.Manifest{Product: release.Edge, Version: "1.4.0", System: "linux", Arch: "arm64"}, bytes.Repeat([]byte("program"), 10_000))
}

// A connection breaks every few thousand bytes, stands still, or is refused for a while: the
// fetch goes on where it was, and what is installed is whole.
func TestFetchGoesOnWhereItBroke(t *testing.T) {
	t.Parallel()
	raw := bigArtefact(t)
	calls := 0
	fetching(t, testCloud, func(w http.ResponseWriter, r *http.Request) {
		require.Equal(t, "/a?signature=secret", r.URL.String())
		switch calls++; {
		case calls%4 == 1:
			http.Error(w, "", http.StatusServiceUnavailable)
			return
		case calls%4 == 2: // stands still
			<-r.Context().Done()
			return
		}
		http.ServeContent(&breaking{ResponseWriter: w, left: 9000}, r, "", time.Time{}, bytes.NewReader(raw))
	}, func(t *testing.T, r *Remote, d *simDisk) {
		u := wanted(t, raw)
		require.Empty(t, r.Judge(u))
		require.NoError(t, r.Install(t.Context(), u))
		require.Equal(t, Choice{Version: "1.4.0", Path: "/versions/edge-1.4.0", Trial: true}, r.versions.Choose())
		n := calls
		require.NoError(t, r.Install(t.Context(), u), "it is installed")
		require.Equal(t, n, calls, "nothing is fetched again")
		require.Equal(t, wire.UpdateState{Trial: true}, r.State("v1.4.0"))
		require.False(t, r.Waiting())
	})
	require.Greater(t, calls, 10)
}

type breaking struct {
	http.ResponseWriter
	left int
}

func (b *breaking) Write(p []byte) (int, error) {
	n, err := b.ResponseWriter.Write(p[:min(len(p), b.left)])
	if b.left -= n; b.left == 0 {
		b.ResponseWriter.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
	return n, err
}

// What the cloud answers besides the artefact installs nothing and is said.
func TestFetchRefuses(t *testing.T) {
	t.Parallel()
	raw := bigArtefact(t)
	other := bytes.Replace(bigArtefact(t), []byte("programprogram"), []byte("ProgramProgram"), 1)
	for name, c := range map[string]struct {
		serve  http.HandlerFunc
		reason string
	}{
		"it is gone":         {http.NotFound, wire.ReasonFetch},
		"it leads elsewhere": {http.RedirectHandler("http://elsewhere.example/", http.StatusFound).ServeHTTP, wire.ReasonFetch},
		"whole from the start": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write(raw)
		}, wire.ReasonFetch},
		"another program": {func(w http.ResponseWriter, r *http.Request) {
			http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(other))
		}, wire.ReasonForged},
		"never": {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, wire.ReasonFetch},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fetching(t, testCloud, c.serve, func(t *testing.T, r *Remote, d *simDisk) {
				start := time.Now()
				err := r.Install(t.Context(), wanted(t, raw))
				require.Error(t, err)
				require.Equal(t, c.reason, Reason(err), "%v", err)
				require.NotContains(t, err.Error(), "secret")
				require.LessOrEqual(t, time.Since(start), fetchTime+time.Minute)
				require.Equal(t, "1.0.0", r.versions.Choose().Version)
			})
		})
	}
}

// A command is judged before anything is fetched.
func TestJudge(t *testing.T) {
	t.Parallel()
	raw := bigArtefact(t)
	good := wanted(t, raw)
	judge := func(want, cloud string, change func(*wire.Update, *Versions)) {
		t.Helper()
		v, u := open(t, "1.0.0", newSimDisk()), good
		change(&u, v)
		require.Equal(t, want, NewRemote(v, origin.New(cloud, nil)).Judge(u))
	}
	judge("", testCloud, func(*wire.Update, *Versions) {})
	for _, forged := range []func(*wire.Update){
		func(u *wire.Update) { u.Version = "1.5.0" }, func(u *wire.Update) { u.Size++ }, func(u *wire.Update) { u.Digest = nil },
		func(u *wire.Update) { u.Signature = nil }, func(u *wire.Update) { u.Signature = wanted(t, artefact(t, "1.9.0")).Signature },
	} {
		judge(wire.ReasonForged, testCloud, func(u *wire.Update, _ *Versions) { forged(u) })
	}
	for _, path := range []string{"", "a", "//elsewhere.example/a", "https://elsewhere.example/a", "http://u:p@elsewhere.example/"} {
		judge(wire.ReasonNoCloud, testCloud, func(u *wire.Update, _ *Versions) { u.URL = path })
	}
	judge(wire.ReasonNoCloud, "", func(*wire.Update, *Versions) {})
	judge(wire.ReasonNoKey, testCloud, func(_ *wire.Update, v *Versions) { v.keys = nil })
	judge(wire.ReasonMachine, testCloud, func(_ *wire.Update, v *Versions) { v.cfg.Arch = "arm" })
	judge(wire.ReasonNotNewer, testCloud, func(_ *wire.Update, v *Versions) { v.packaged = "1.4.0" })
	judge(wire.ReasonTrial, testCloud, func(_ *wire.Update, v *Versions) {
		_, err := v.Install(bytes.NewReader(artefact(t, "1.3.0")))
		require.NoError(t, errors.Join(err))
		v.Choose()
	})
}
