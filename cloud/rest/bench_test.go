package rest

import (
	"context"
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

type bareServer struct{ *fasthttp.Server }

func (s bareServer) Shutdown(ctx context.Context) error { return s.ShutdownWithContext(ctx) }
