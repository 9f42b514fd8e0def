package attack

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud/server"
)

// costsFile names the variable with the file that the costs of requests without an account
// are written to; this machine should be calm meanwhile:
//
//	POSTERN_RING=check POSTERN_COSTS=$PWD/docs/anonymous.md go test ./cmd/attack -run TestStrangersCostLittle
const costsFile = "POSTERN_COSTS"

// Bounds of an answer to a stranger. The processor time is written down, and judged by who
// reads it: a test that measures time fails on a busy machine.
const (
	maxAnswer = 64 << 10 // bytes, compressed
	costRuns  = 30
)

// asked is a request of a stranger.
type asked struct{ method, path, body string }

// cost is what a request costs us.
type cost struct {
	asked
	status, bytes int
	cpu           time.Duration // over that of /healthz
}

// large are files and documents of discovery, which may be larger: they are the same for
// everybody, and are made once.
var large = regexp.MustCompile(`^/(assets/|api/openapi\.json|api/asyncapi|api/v1/openapi|(api/)?\.well-known/|api/ai/|(api/)?mcp(/|$)|llms|skill|api/otep-guide/.)`)

// Every address is asked without an account, in the ways that strangers can: no answer is large.
func TestStrangersCostLittle(t *testing.T) {
	t.Parallel()
	c := start(t, func(cfg *server.Config) {
		cfg.Rates = map[string]int{}
		for _, name := range server.RateNames() {
			cfg.Rates[name] = -1
		}
	})
	number := fmt.Sprint(c.did("get_order_detail", fmt.Sprintf(`{"order_id":%d}`, c.order("COST-1")), c.box.Admin.Token).at("order.tracking_number"))
	file := os.Getenv(costsFile)
	var costs []cost
	base := time.Duration(0)
	if file != "" {
		c.spend(asked{"GET", "/healthz", ""}, 10*costRuns)
		base = c.spend(asked{"GET", "/healthz", ""}, 10*costRuns)
	}
	for _, q := range strangersAsk(server.Addresses(c.server), number) {
		x := cost{asked: q}
		x.status, x.bytes = c.weigh(q)
		require.Less(t, x.status, 500, "%s %s", q.method, q.path)
		if !large.MatchString(q.path) {
			require.LessOrEqual(t, x.bytes, maxAnswer, "%s %s: bytes, compressed", q.method, q.path)
		}
		if file != "" {
			x.cpu = max(0, c.spend(q, costRuns)-base)
		}
		costs = append(costs, x)
	}
	require.Greater(t, len(costs), 500)
	if file != "" {
		require.NoError(t, os.WriteFile(file, tableOf(costs, base, number), 0o644))
	}
}

var inBraces = regexp.MustCompile(`\{[^}]*\}`)

// strangersAsk are requests of every address, with a parcel's number where one belongs, and of
// what an address answers in several ways.
func strangersAsk(addresses []string, number string) (out []asked) {
	for _, a := range addresses {
		method, path, _ := strings.Cut(a, " ")
		path = inBraces.ReplaceAllStringFunc(path, func(part string) string {
			if strings.Contains(part, "number") || strings.Contains(part, "subject") {
				return number
			}
			return "1"
		})
		methods := []string{method}
		if method == "*" {
			methods = []string{"GET", "POST"}
		}
		for _, m := range methods {
			q := asked{m, path, ""}
			if m != "GET" && m != "HEAD" && m != "OPTIONS" {
				q.body = `{}`
			}
			out = append(out, q)
		}
	}
	for _, format := range []string{"otep", "epcis", "onerecord", "uncefact", "otlp", "sensorthings", "aftership", "shopify", "amazon"} {
		out = append(out, asked{"GET", "/api/v1/otep/trackings/" + number + "?format=" + format, ""})
	}
	for _, path := range []string{"/mcp", "/mcp/developer", "/mcp/lockers"} {
		out = append(out, asked{"POST", path, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`})
	}
	return append(out,
		asked{"GET", "/track?number=" + number, ""},
		asked{"POST", "/api/v1/otep/trackings/batch", fmt.Sprintf(`{"tracking_numbers":[%q]}`, number)},
		asked{"POST", "/mcp", fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"track_package","arguments":{"tracking_number":%q}}}`, number)},
		asked{"POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"get_capabilities","arguments":{}}}`},
		asked{"POST", "/api/graphql", `{"query":"{__schema{types{name fields{name type{name ofType{name}}}}}}"}`},
		asked{"POST", "/api/graphql", `{"query":"{` + strings.Repeat("a ", 240) + `}"}`},
		asked{"POST", "/api/graphql", `{"query":"{` + strings.Repeat("a ", 900) + `}"}`},
		asked{"POST", "/api/v1/user/login", `{"email":"a@b.example","password":"not the password"}`},
		asked{"GET", "/no/such/page", ""}, asked{"GET", "/api/v1/no/such", ""},
	)
}

// request sends a request as browsers do, which take answers compressed.
func (c *target) request(q asked) *http.Response {
	req, err := http.NewRequestWithContext(c.t.Context(), q.method, c.base+q.path, strings.NewReader(q.body))
	require.NoError(c.t, err)
	req.Header.Set("Accept", "application/json, text/event-stream, text/html")
	req.Header.Set("Accept-Encoding", "gzip")
	if q.body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	require.NoError(c.t, err, "%s %s", q.method, q.path)
	return resp
}

// weigh gives the status of an answer and the bytes of its body as they came. A stream is read
// until it has come to rest.
func (c *target) weigh(q asked) (status, size int) {
	resp := c.request(q)
	defer resp.Body.Close()
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") && resp.ContentLength < 0 {
		rest := time.AfterFunc(2*time.Second, func() { _ = resp.Body.Close() })
		defer rest.Stop()
		n, _ := io.Copy(io.Discard, resp.Body) // closed by ourselves
		return resp.StatusCode, int(n)
	}
	n, err := io.Copy(io.Discard, resp.Body)
	require.NoError(c.t, err, "%s %s", q.method, q.path)
	return resp.StatusCode, int(n)
}

// spend is the processor time of a request, of client and server: the mean of several.
func (c *target) spend(q asked, runs int) time.Duration {
	before := processorTime(c.t)
	for range runs {
		c.weigh(q)
	}
	return (processorTime(c.t) - before) / time.Duration(runs)
}

func processorTime(t *testing.T) time.Duration {
	var u syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// tableOf writes the costs down, the dearest first.
func tableOf(costs []cost, base time.Duration, number string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `# What requests without an account cost

Every address, asked without an account: bytes of the answer, compressed, and processor time over that of /healthz, of which a request takes %.2f ms with the client's share; the mean of %d, in one process with the client. Written by a test in cmd/attack, which refuses answers over %d KiB that are no files and no documents of discovery.

| Request | Status | Bytes | Processor ms | Times /healthz |
|---|---:|---:|---:|---:|
`, milliseconds(base), costRuns, maxAnswer>>10)
	slices.SortStableFunc(costs, func(a, b cost) int { return cmp.Or(cmp.Compare(b.cpu, a.cpu), cmp.Compare(b.bytes, a.bytes)) })
	refused := map[int][]cost{}
	for _, x := range costs {
		if x.status == 401 || x.status == 404 || x.status == 405 {
			refused[x.status] = append(refused[x.status], x)
			continue
		}
		what := x.method + " " + strings.ReplaceAll(x.path, number, "{number}")
		if x.body != "" && x.body != "{}" {
			what += " `" + strings.ReplaceAll(x.body[:min(90, len(x.body))], number, "{number}") + "`"
		}
		fmt.Fprintf(&b, "| %s | %d | %d | %.2f | %.1f |\n", strings.ReplaceAll(what, "|", `\|`), x.status, x.bytes, milliseconds(x.cpu), float64(x.cpu+base)/float64(base))
	}
	fmt.Fprintf(&b, "\nRequests that are refused for what they are:\n\n| Status | Requests | Bytes, at most | Processor ms, at most |\n|---|---:|---:|---:|\n")
	for _, status := range slices.Sorted(maps.Keys(refused)) {
		list := refused[status]
		fmt.Fprintf(&b, "| %d | %d | %d | %.2f |\n", status, len(list), slices.MaxFunc(list, func(a, b cost) int { return cmp.Compare(a.bytes, b.bytes) }).bytes, milliseconds(list[0].cpu))
	}
	return b.Bytes()
}

func milliseconds(d time.Duration) float64 { return float64(d) / 1e6 }
