package e2e

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud/server"
	"github.com/postern-io/postern/cloud/store/storetest"
	"github.com/postern-io/postern/internal/ring"
)

// The readers of the change feed are programs of a partner, which keep each change with its cursor in a file,
// and are killed at any moment, as the cloud is: one asks and waits, one follows the stream. In the end each has
// every event once that a writer was answered for, those that the timelines show and no others, and withdrawals
// too.
func TestKilledReadersOfTheFeedMissNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and kills programs")
	}
	t.Parallel()
	bin := build(t)
	t.Run("SQLite", func(t *testing.T) { t.Parallel(); killReaders(t, bin, "") })
	t.Run("PostgreSQL", func(t *testing.T) { t.Parallel(); killReaders(t, bin, storetest.SecondPostgresURL(t)) })
}

// readerEnv makes the test program a reader of the feed: addresses of nodes, token, file, and whether it
// follows the stream.
const readerEnv = "POSTERN_FEED_READER"

type feedReader struct {
	Bases  []string
	Token  string
	File   string
	Stream bool
}

// change is one line of a reader's file.
type change struct {
	Cursor string `json:"cursor"`
	Kind   string `json:"kind"`
	Number string `json:"tracking_number"`
	Event  struct {
		ID string `json:"event_id"`
	} `json:"event"`
}

// readFeed reads the feed until the process is killed.
func readFeed(text string) {
	var r feedReader
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		log.Fatal(err)
	}
	for n := 0; ; n++ {
		if err := r.read(r.Bases[n%len(r.Bases)]); err != nil {
			time.Sleep(50 * time.Millisecond)
		}
	}
}

// load is what a file holds; a line that a kill cut off is not there.
func (r feedReader) load() (out []change, size int64) {
	b, _ := os.ReadFile(r.File)
	b = b[:bytes.LastIndexByte(b, '\n')+1]
	for line := range bytes.Lines(b) {
		var k change
		if err := json.Unmarshal(line, &k); err != nil {
			log.Fatalf("%s: %v", line, err)
		}
		out = append(out, k)
	}
	return out, int64(len(b))
}

// read goes on behind the last change that is kept.
func (r feedReader) read(base string) error {
	had, size := r.load()
	after := ""
	if len(had) > 0 {
		after = had[len(had)-1].Cursor
	}
	f, err := os.OpenFile(r.File, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Seek(size, io.SeekStart); err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/api/v1/otep/changes?limit=50&wait=1&after="+after, nil)
	if err != nil {
		log.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+r.Token)
	if r.Stream {
		req.Header.Set("Accept", "text/event-stream")
		if after != "" {
			req.Header.Set("Last-Event-ID", after)
		}
		req.URL.RawQuery = ""
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return errors.New(resp.Status)
	}
	if !r.Stream {
		var page struct{ Changes []json.RawMessage }
		if err := json.NewDecoder(resp.Body).Decode(&page); err != nil {
			return err
		}
		for _, c := range page.Changes {
			fmt.Fprintf(f, "%s\n", c)
		}
		return nil
	}
	s := bufio.NewScanner(resp.Body)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		if data, ok := strings.CutPrefix(s.Text(), "data: "); ok {
			fmt.Fprintf(f, "%s\n", data)
		}
	}
	return cmp.Or(s.Err(), io.EOF)
}

// start starts the reader as a process.
func (r feedReader) start(t *testing.T) *process {
	t.Helper()
	text, err := json.Marshal(r)
	require.NoError(t, err)
	p := &process{name: "reader", cmd: exec.Command(os.Args[0]), done: make(chan error, 1)}
	p.cmd.Env = append(os.Environ(), readerEnv+"="+string(text))
	p.cmd.Stderr = p
	p.run(t)
	return p
}

// partner writes events until it has enough, again and again the same one until that is answered.
type partner struct {
	t     *testing.T
	bases []string
	token string
	mu    sync.Mutex
	acked map[string]int // how often the feed has the id
	left  int
}

func (p *partner) post(path string, body any) (status int, err error) {
	raw, err := json.Marshal(body)
	require.NoError(p.t, err)
	req, err := http.NewRequestWithContext(context.WithoutCancel(p.t.Context()), http.MethodPost, p.bases[rand.IntN(len(p.bases))]+path, bytes.NewReader(raw))
	require.NoError(p.t, err)
	req.Header.Set("Authorization", "Bearer "+p.token)
	req.Header.Set("Content-Type", "application/json")
	resp, err := page.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, err
}

// write is one writer's work: events of a shipment, every seventh of which it takes back.
func (p *partner) write(writer, events int, number string) {
	for i := range events {
		id := fmt.Sprintf("w%d-%d", writer, i)
		doc := map[string]any{"otep_version": "0.1", "subject": map[string]any{"tracking_number": number},
			"events": []any{map[string]any{"event_id": id, "status_code": "in_transit", "occurred_at": time.Now().UTC().Format(time.RFC3339Nano), "source": map[string]any{"type": "carrier"}}}}
		bodies := []map[string]any{doc}
		if i%7 == 3 {
			bodies = append(bodies, map[string]any{"otep_version": "0.1", "subject": map[string]any{"tracking_number": number}, "events": []any{},
				"withdrawals": []any{map[string]any{"event_id": id, "reason": "did_not_occur"}}})
		}
		for _, body := range bodies {
			for {
				status, err := p.post("/api/v1/otep/ingest", body)
				if err == nil && status == 200 {
					break
				}
				if p.t.Context().Err() != nil {
					return
				}
				time.Sleep(20 * time.Millisecond)
			}
			p.mu.Lock()
			p.acked[id]++
			p.mu.Unlock()
		}
		p.mu.Lock()
		p.left--
		p.mu.Unlock()
	}
}

func (p *partner) remain() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.left
}

func killReaders(t *testing.T, bin programs, database string) {
	const writers = 16
	each := ring.Count(40, 150)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 5))
	dir := t.TempDir()
	s, err := server.New(t.Context(), server.Config{Dir: dir, Database: database, Node: "one", Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	box, err := s.Sandbox(t.Context(), server.SandboxConfig{})
	require.NoError(t, err)
	require.NoError(t, errors.Join(s.Broker.Close(), s.Store.Close()))
	names := []string{"one"}
	if database != "" {
		names = append(names, "two")
	}
	var addrs, bases []string
	for range names {
		addrs = append(addrs, freeAddress(t))
		bases = append(bases, "http://"+addrs[len(addrs)-1])
	}
	start := func(i int) *process {
		p := bin.start(t, "cloud", "--data", dir, "--database", database, "--node", names[i], "--listen", addrs[i], "--mqtt-listen", freeAddress(t))
		ring.Await(t, func() bool { return listens(addrs[i]) }, "not up")
		return p
	}
	var nodes []*process
	for i := range names {
		nodes = append(nodes, start(i))
	}

	// Numbers of one order for each pair of writers.
	call := func(method, path, token, body string) (out map[string]any) {
		req, err := http.NewRequestWithContext(t.Context(), method, bases[0]+path, strings.NewReader(body))
		require.NoError(t, err)
		req.Header.Set("Authorization", "Bearer "+token)
		req.Header.Set("Content-Type", "application/json")
		resp, err := page.Do(req)
		require.NoError(t, err)
		defer resp.Body.Close()
		require.NoError(t, json.NewDecoder(resp.Body).Decode(&out))
		require.Less(t, resp.StatusCode, 300, "%v", out)
		return out
	}
	var numbers []string
	for range writers / 2 {
		numbers = append(numbers, call("POST", "/api/v1/client/orderCreate", box.Admin.Token, `{"type":"D","packages":[{"weight":1}],"recipient":{"name":"Ada","phone":"+14165550123",
"address_line1":"100 Queen St W","city":"Toronto","province":"ON","postal_code":"M5H 2N2","country":"CA"}}`)["tracking_number"].(string))
	}
	provider := call("POST", "/api/v1/providers", box.Admin.Token, `{"code":"swift","name":"Swift","services":["otep"],"source_type":"carrier","scope":"all"}`)["provider"].(map[string]any)
	token := call("POST", fmt.Sprintf("/api/v1/providers/%.0f/tokens", provider["id"]), box.Admin.Token, fmt.Sprintf(`{"name":"events","confirm":true,"password":%q}`, box.Admin.Password))["token"].(string)

	w := &partner{t: t, bases: bases, token: token, acked: map[string]int{}, left: writers * each}
	var work sync.WaitGroup
	for i := range writers {
		work.Go(func() { w.write(i, each, numbers[i/2]) })
	}
	readers := []feedReader{{bases, box.Admin.Token, filepath.Join(dir, "asked"), false}, {bases, box.Admin.Token, filepath.Join(dir, "streamed"), true}}
	running := []*process{readers[0].start(t), readers[1].start(t)}
	kills, deaths := 0, 0
	for w.remain() > 0 {
		time.Sleep(time.Duration(rnd.Int64N(int64(400 * time.Millisecond))))
		if rnd.IntN(6) == 0 {
			i := rnd.IntN(len(nodes))
			nodes[i].kill(t)
			nodes[i] = start(i)
			deaths++
			continue
		}
		i := rnd.IntN(len(running))
		running[i].kill(t)
		running[i] = readers[i].start(t)
		kills++
	}
	work.Wait()
	if kills == 0 {
		t.Fatal("no reader was killed")
	}

	for i, r := range readers {
		ring.Await(t, func() bool { // both have the last word of every writer
			had, _ := r.load()
			seen := map[string]bool{}
			for _, k := range had {
				seen[k.Kind+k.Event.ID] = true
			}
			for n := range writers {
				if !seen["event.recorded"+fmt.Sprintf("w%d-%d", n, each-1)] {
					return false
				}
			}
			return true
		}, "not all has arrived")
		running[i].kill(t)
		had, _ := r.load()
		times, cursors := map[string]int{}, map[string]bool{}
		for _, k := range had {
			require.False(t, cursors[k.Cursor], "%s: cursor %s twice", r.File, k.Cursor)
			cursors[k.Cursor] = true
			times[k.Kind+" "+k.Event.ID]++
			if k.Kind == "event.withdrawn" {
				require.Equal(t, 1, times["event.recorded "+k.Event.ID], "%s is taken back after it was recorded", k.Event.ID)
			}
		}
		for id, n := range w.acked {
			require.Equal(t, 1, times["event.recorded "+id], "%s: %s", r.File, id)
			require.Equal(t, n-1, times["event.withdrawn "+id], "%s: %s", r.File, id)
		}
		for key := range times {
			kind, id, _ := strings.Cut(key, " ")
			if strings.HasPrefix(id, "w") {
				require.NotZero(t, w.acked[id], "%s of %s, which no writer was answered for", kind, id)
			}
		}
	}
	t.Logf("%d events, %d kills of readers, %d of nodes", writers*each, kills, deaths)
}
