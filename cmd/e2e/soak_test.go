package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/edge/kiosk"
	"github.com/postern-io/postern/protocol/wire"
)

// envSoak is how long TestSoak goes on, as time.ParseDuration reads it.
const envSoak = "POSTERN_SOAK"

const (
	soakPeople = 8               // at the doors at once
	soakLies   = 9 * time.Second // that a parcel lies: a lock that is pulsed three times in ten seconds rests
	soakEvery  = 5 * time.Second

	soakOpens    = 10 * time.Second // after which a person takes a door for one that does not open
	soakPatience = 2 * time.Minute
)

// The built programs work for a long time: partners make deliveries and open doors,
// people put parcels in and collect them, staff, agents and strangers read, receivers are
// sent every event. Memory and goroutines of cloud and agent stay as they were after the
// first third, files grow by what a parcel costs and no more, and the oracle judges what
// happened.
func TestSoak(t *testing.T) {
	text := os.Getenv(envSoak)
	if text == "" {
		t.Skipf("runs with %s=10m, as `make soak` does", envSoak)
	}
	long, err := time.ParseDuration(text)
	require.NoError(t, err, envSoak)
	bin := build(t)
	mqtt := freeAddress(t)
	n := &killNode{http: freeAddress(t), mqtt: mqtt, admin: freeAddress(t)}
	s := newSlaughterOf(t, bin, 1, 0, "", mqtt, n)
	s.front = "http://" + n.http
	s.startSim()
	s.startCloud()
	s.startEdge()
	s.awaits("boards are read", func(v kiosk.View) bool { return v.Online && known(v) })

	k := &soak{slaughter: s, node: n, done: make(chan struct{})}
	var work sync.WaitGroup
	for i := range soakPeople {
		work.Go(func() { k.person(i) })
	}
	for _, q := range k.questions() {
		work.Go(func() { k.reader(q) })
	}
	begun := time.Now()
	for time.Since(begun) < long && !t.Failed() {
		time.Sleep(min(soakEvery, long-time.Since(begun)))
		k.measure(time.Since(begun))
	}
	close(k.done)
	work.Wait()
	s.calm()
	k.judge(long)
	s.judge()
}

// soak is a long run. Its people and readers share it.
type soak struct {
	*slaughter
	node *killNode
	done chan struct{}

	keys    sync.Mutex // one person types at a time
	mu      sync.Mutex // guards all below
	parcels int
	asked   map[string]int // questions that were answered, by name and status
	samples []sample
}

// sample is what the programs have at a moment.
type sample struct {
	at                            time.Duration
	parcels                       int
	goroutines, heap, cloud, edge float64 // heap and resident bytes
	data, log, store              float64 // bytes on disk: the cloud's database, its log, the agent's store
}

func (k *soak) over() bool {
	select {
	case <-k.done:
		return true
	default:
		return k.t.Failed()
	}
}

// person carries parcels, one after the other.
func (k *soak) person(i int) {
	for n := 0; !k.over(); n++ {
		k.carry(fmt.Sprintf("S-%d-%d", i, n))
	}
}

// carry has a parcel delivered, deposited and collected.
func (k *soak) carry(name string) {
	status, made := k.ask(http.MethodPost, k.front+"/api/v1/third-party-delivery/deliveries", k.token, map[string]any{"reference_number": name, "device_id": k.device,
		"recipient": map[string]any{"name": "Jane Smith", "phone": "+14165550123"}, "packages": []map[string]any{{"tracking_number": name, "size": "M"}}})
	if !k.good(status == http.StatusCreated, "create %s: %d %s", name, status, made) {
		return
	}
	var out locker.DeliveryOutput
	_ = json.Unmarshal(made, &out)
	at := k.front + fmt.Sprintf("/api/v1/third-party-delivery/deliveries/%d", out.Delivery.DeliveryID)
	var raw []byte
	for end := time.Now().Add(soakPatience); ; time.Sleep(5 * time.Second) { // a lock may have to rest
		if status, raw = k.ask(http.MethodPost, at+"/open-doors", k.token, map[string]any{"wait_seconds": 20}); status == http.StatusOK || time.Now().After(end) {
			break
		}
	}
	if !k.good(status == http.StatusOK, "open %s: %d %s", name, status, raw) {
		return
	}
	var doors partnerAnswer
	_, raw = k.ask(http.MethodGet, at+"/doors", k.token, nil)
	_ = json.Unmarshal(raw, &doors)
	if !k.good(len(doors.Doors) == 1, "doors of %s: %s", name, raw) {
		return
	}
	if !k.good(k.use(doors.Doors[0].Door, fmt.Sprintf("insert %d %s", doors.Doors[0].Door, name)), "the door of %s does not open", name) {
		return
	}
	d, ok := k.becomes(at, cloud.DeliveryDelivered)
	if !ok || !k.good(d.PickupCode != nil, "%s has no code", name) {
		return
	}
	time.Sleep(soakLies)
	k.collect(d)
	if _, ok = k.becomes(at, cloud.DeliveryPickedUp); ok {
		k.mu.Lock()
		k.parcels++
		k.mu.Unlock()
	}
}

// collect types the code of a delivery and takes out what is behind the door; again, as
// people do, while the cabinet does not know the code yet or the lock has to rest.
func (k *soak) collect(d locker.DeliveryBody) {
	for end := time.Now().Add(soakPatience); ; time.Sleep(time.Second) {
		k.keys.Lock()
		doors, ok, err := k.enter(d.DeliveryNumber, wire.CodePickup, *d.PickupCode)
		k.keys.Unlock()
		if ok && len(doors) == 1 && k.use(doors[0], fmt.Sprintf("empty %d", doors[0])) {
			return
		}
		if !k.good(time.Now().Before(end), "%s is not collected: %v %v", d.DeliveryNumber, doors, err) {
			return
		}
	}
}

// use does something at a door and closes it. It reports whether the door opened.
func (k *soak) use(door uint, what string) bool {
	return k.reach(door, what, soakOpens) && k.hands.do(fmt.Sprintf("close %d", door)) == "ok"
}

// becomes waits for the status of a delivery.
func (k *soak) becomes(at string, want cloud.DeliveryStatus) (locker.DeliveryBody, bool) {
	var out locker.DeliveryOutput
	for end := time.Now().Add(60 * time.Second); time.Now().Before(end); time.Sleep(250 * time.Millisecond) {
		_, raw := k.ask(http.MethodGet, at, k.token, nil)
		out = locker.DeliveryOutput{}
		if json.Unmarshal(raw, &out) == nil && out.Delivery.Status == want {
			return out.Delivery, true
		}
	}
	return out.Delivery, k.good(false, "%s is %s, not %s", out.Delivery.ReferenceNumber, out.Delivery.Status, want)
}

// good has the test fail unless ok; the run then ends.
func (k *soak) good(ok bool, format string, args ...any) bool {
	if !ok {
		k.t.Errorf(format, args...)
	}
	return ok
}

func (k *soak) ask(method, address, token string, body any) (status int, answer []byte) {
	var raw []byte
	if body != nil {
		raw, _ = json.Marshal(body)
	}
	q, err := http.NewRequestWithContext(k.t.Context(), method, address, bytes.NewReader(raw))
	if err != nil {
		return 0, []byte(err.Error())
	}
	if token != "" {
		q.Header.Set("Authorization", "Bearer "+token)
	}
	if body != nil {
		q.Header.Set("Content-Type", "application/json")
		q.Header.Set("Accept", "application/json, text/event-stream")
	}
	r, err := page.Do(q)
	if err != nil {
		return 0, []byte(err.Error())
	}
	defer r.Body.Close()
	answer, _ = io.ReadAll(r.Body)
	return r.StatusCode, answer
}

// question is one that is asked again and again while parcels move.
type question struct {
	name, method, address, token string
	body                         any
	every                        time.Duration
}

func (k *soak) questions() []question {
	tool := func(name string) any {
		return map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": map[string]any{"name": name, "arguments": map[string]any{}}}
	}
	api := k.front + "/api/v1"
	return []question{
		{"cabinets", http.MethodGet, api + "/smart-lockers/devices", k.admin, nil, time.Second},
		{"work", http.MethodGet, api + "/work-items", k.admin, nil, 2 * time.Second},
		{"audit", http.MethodGet, api + "/audit", k.admin, nil, 3 * time.Second},
		{"graph", http.MethodPost, k.front + "/api/graphql", k.admin, map[string]any{"query": "{ __typename }"}, time.Second},
		{"tools", http.MethodPost, k.front + "/mcp", k.admin, tool("get_orders"), 2 * time.Second},
		{"stranger", http.MethodGet, k.front + "/track/SRNOTTHERE0000", "", nil, 3 * time.Second},
		{"documents", http.MethodGet, k.front + "/docs", "", nil, 5 * time.Second},
	}
}

func (k *soak) reader(q question) {
	for !k.over() {
		status, raw := k.ask(q.method, q.address, q.token, q.body)
		k.good(status != 0 && status < 500, "%s: %d %.300s", q.name, status, raw)
		k.mu.Lock()
		if k.asked == nil {
			k.asked = map[string]int{}
		}
		k.asked[fmt.Sprintf("%s %d", q.name, status)]++
		k.mu.Unlock()
		select {
		case <-k.done:
		case <-time.After(q.every):
		}
	}
}

// measure takes a sample.
func (k *soak) measure(at time.Duration) {
	status, raw := k.ask(http.MethodGet, "http://"+k.node.admin+"/metrics", "", nil)
	if !k.good(status == http.StatusOK, "metrics: %d %s", status, raw) {
		return
	}
	values := map[string]float64{}
	for line := range strings.Lines(string(raw)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			values[name], _ = strconv.ParseFloat(value, 64)
		}
	}
	size := func(parts ...string) float64 {
		info, err := os.Stat(filepath.Join(append([]string{k.dir}, parts...)...))
		if err != nil {
			return 0
		}
		return float64(info.Size())
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.samples = append(k.samples, sample{at: at, parcels: k.parcels, goroutines: values["go_goroutines"], heap: values["go_memstats_heap_alloc_bytes"], cloud: values["process_resident_memory_bytes"],
		edge: k.resident(k.edge.cmd.Process.Pid), data: size("cloud", "postern.db"), log: size("cloud", "postern.db-wal"), store: size("edge", "edge.db")})
}

// resident is the resident memory of a process, in bytes.
func (k *soak) resident(pid int) float64 {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0
	}
	pages, _ := strconv.ParseFloat(strings.Fields(string(raw))[1], 64)
	return pages * float64(os.Getpagesize())
}

// Bounds of what may grow after the first third.
const (
	soakMore    = 1.10     // of the second third
	soakMemory  = 12 << 20 // bytes
	soakRoutine = 10
	soakLog     = 96 << 20 // the database's log, in bytes: it is kept at 64 MiB between checkpoints
	soakParcel  = 96 << 10 // a parcel's whole life in the cloud's database, in bytes
	soakStore   = 16 << 10 // and in the agent's store
)

// judge looks at the lowest figures of the second and of the last third: a heap that is
// collected comes down to what lives, and what leaks does not.
func (k *soak) judge(long time.Duration) {
	var middle, last []sample
	for _, x := range k.samples {
		switch {
		case x.at > 2*long/3:
			last = append(last, x)
		case x.at > long/3:
			middle = append(middle, x)
		}
	}
	require.GreaterOrEqual(k.t, min(len(middle), len(last)), 5, "samples of a third: let it run for longer")
	lowest := func(list []sample, of func(sample) float64) float64 {
		v := of(list[0])
		for _, x := range list {
			v = min(v, of(x))
		}
		return v
	}
	for _, f := range []struct {
		name  string
		of    func(sample) float64
		slack float64
	}{
		{"goroutines", func(x sample) float64 { return x.goroutines }, soakRoutine},
		{"heap", func(x sample) float64 { return x.heap }, soakMemory},
		{"memory of the cloud", func(x sample) float64 { return x.cloud }, soakMemory},
		{"memory of the agent", func(x sample) float64 { return x.edge }, soakMemory},
	} {
		was, is := lowest(middle, f.of), lowest(last, f.of)
		k.t.Logf("%s: %.0f in the second third, %.0f in the last", f.name, was, is)
		require.NotZero(k.t, was, f.name)
		require.LessOrEqual(k.t, is, was*soakMore+f.slack, f.name)
	}
	from, to := middle[0], last[len(last)-1]
	parcels := float64(to.parcels - from.parcels)
	require.Positive(k.t, parcels, "parcels")
	k.t.Logf("%d parcels; a parcel takes %.0f bytes of the cloud's database and %.0f of the agent's store; the log has %.0f; %v", to.parcels, (to.data-from.data)/parcels, (to.store-from.store)/parcels, to.log, k.asked)
	require.NotZero(k.t, to.data)
	require.NotZero(k.t, to.store)
	require.LessOrEqual(k.t, (to.data-from.data)/parcels, float64(soakParcel), "the cloud's database")
	require.LessOrEqual(k.t, (to.store-from.store)/parcels, float64(soakStore), "the agent's store")
	for _, x := range k.samples {
		require.LessOrEqual(k.t, x.log, float64(soakLog), "the database's log")
	}
	for _, q := range k.questions() {
		answered := 0
		for name, n := range k.asked {
			if strings.HasPrefix(name, q.name+" 2") || q.name == "stranger" && strings.HasPrefix(name, "stranger 4") {
				answered += n
			}
		}
		require.NotZero(k.t, answered, "%s was not answered: %v", q.name, k.asked)
	}
}
