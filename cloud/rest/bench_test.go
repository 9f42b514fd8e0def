package rest

import (
	"context"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud/webtest"
)

// BenchmarkTimeline reads a timeline over HTTP as different callers do. ratio is the CPU time of a bare
// fasthttp server that answers the same bytes, to that of the read, the client's part in both; cpu-us is
// the read without it, as far as a server that answers nothing shows it.
func BenchmarkTimeline(b *testing.B) {
	const rounds, calls = 30, 500
	r := newRig(b, nil)
	path := "/api/v1/otep/trackings/" + webtest.Waiting
	given := r.do("GET", path, r.provider(), "")
	serve := func(body []byte) *fasthttp.Client {
		return webtest.Client(webtest.Serve(b, bareServer{&fasthttp.Server{Handler: func(ctx *fasthttp.RequestCtx) { ctx.SetBody(body) }}}))
	}
	bare, empty := serve(given.body), serve(nil)
	for _, x := range []struct {
		name    string
		headers map[string]string
		bare    *fasthttp.Client
	}{
		{"anonymous", nil, bare},
		{"token", map[string]string{"Authorization": "Bearer " + r.provider()}, bare},
		{"unchanged", map[string]string{"Authorization": "Bearer " + r.provider(), "If-None-Match": given.header("ETag")}, empty},
	} {
		b.Run(x.name, func(b *testing.B) {
			took := func(c *fasthttp.Client) time.Duration {
				var req fasthttp.Request
				var resp fasthttp.Response
				req.SetRequestURI("http://cloud.test" + path)
				for name, value := range x.headers {
					req.Header.Set(name, value)
				}
				before := cpu(b)
				for range calls {
					require.NoError(b, c.Do(&req, &resp))
				}
				return cpu(b) - before
			}
			var full, base, client time.Duration
			for b.Loop() {
				full, base, client = 0, 0, 0
				for range rounds { // in turn, so that what else runs here slows all
					full, base, client = full+took(r.c), base+took(x.bare), client+took(empty)
				}
			}
			b.ReportMetric(float64(base)/float64(full), "ratio")
			b.ReportMetric(float64((full-client).Nanoseconds())/(rounds*calls)/1000, "cpu-us")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkAccessLog compares requests with and without a line in the access log.
func BenchmarkAccessLog(b *testing.B) {
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	require.NoError(b, err)
	defer null.Close()
	var req fasthttp.Request
	var resp fasthttp.Response
	req.SetRequestURI("http://cloud.test/api/v1/otep/trackings/" + webtest.Waiting)
	without, with := newRig(b, nil), newRig(b, func(o *options) { o.AccessLog = slog.New(slog.NewJSONHandler(null, nil)) })
	took := map[*rig]time.Duration{}
	b.ResetTimer()
	for range b.N { // in turn, so that what else runs here slows both
		for _, r := range []*rig{without, with} {
			start := time.Now()
			require.NoError(b, r.c.Do(&req, &resp))
			took[r] += time.Since(start)
		}
	}
	b.ReportMetric(float64(took[without])/float64(took[with]), "ratio")
	b.ReportMetric(float64(took[with]-took[without])/float64(b.N), "ns/line")
}

type bareServer struct{ *fasthttp.Server }

func (s bareServer) Shutdown(ctx context.Context) error { return s.ShutdownWithContext(ctx) }
