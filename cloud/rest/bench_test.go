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

// BenchmarkTimeline reads a timeline over HTTP and compares it with a bare
// fasthttp answer of the same bytes.
func BenchmarkTimeline(b *testing.B) {
	r := newRig(b, nil)
	path := "/api/v1/otep/trackings/" + webtest.Waiting
	want := r.do("GET", path, "", "").body
	bare := &fasthttp.Server{Handler: func(ctx *fasthttp.RequestCtx) { ctx.SetBody(want) }}
	ln := webtest.Serve(b, bareServer{bare})
	run := func(c *fasthttp.Client) time.Duration {
		var req fasthttp.Request
		var resp fasthttp.Response
		req.SetRequestURI("http://cloud.test" + path)
		start := time.Now()
		for range b.N {
			require.NoError(b, c.Do(&req, &resp))
		}
		return time.Since(start)
	}
	base := run(webtest.Client(ln))
	b.ResetTimer()
	full := run(r.c)
	b.ReportMetric(float64(base)/float64(full), "ratio")
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
