package e2e

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/edge/kiosk"
	"github.com/postern-io/postern/internal/ring"
)

// soakEnv is how long the soak lasts, as Go writes durations; ten minutes without it.
const soakEnv = "POSTERN_SOAK"

// Programs that run for long under mixed load stay as they are: after a first third, in
// which caches fill, memory, threads, goroutines and open files are flat, the cabinet's
// store is bounded, and the cloud's data grows by what each parcel leaves and no faster.
// People bring and collect parcels all the while, a partner makes deliveries, others read
// lists, timelines and pages. What is measured is what the operating system says of the
// processes; at the end the oracle judges as in TestKilledProgramsTellTheTruth.
func TestSoak(t *testing.T) {
	ring.SkipUnlessFull(t, "the same programs for some seconds, killed")
	length, err := time.ParseDuration(cmp.Or(os.Getenv(soakEnv), "10m"))
	require.NoError(t, err, soakEnv)
	require.GreaterOrEqual(t, length, time.Minute, soakEnv)
	mqtt := freeAddress(t)
	s := newSlaughterOf(t, build(t), 1, "", mqtt, &killNode{http: freeAddress(t), admin: freeAddress(t), mqtt: mqtt})
	s.front = "http://" + s.nodes[0].http
	s.startSim()
	s.startCloud()
	s.startEdge()
	s.awaits("boards are read and codes are held", func(v kiosk.View) bool { return v.Online && v.CodeList >= uint64(2*len(s.parcels)) && known(v) })

	end := time.Now().Add(length)
	var load sync.WaitGroup
	var reads, failed atomic.Int64
	for i := range 3 {
		load.Go(func() { s.readUntil(end, uint64(i), &reads, &failed) })
	}
	var list []usage
	load.Go(func() {
		for time.Now().Before(end) {
			time.Sleep(length / 120)
			list = append(list, s.usage())
		}
	})
	for time.Now().Before(end) {
		for s.next == len(s.parcels) {
			s.deliver()
		}
		s.use(s.choose())
	}
	load.Wait()
	require.Zero(t, failed.Load(), "reads that were not answered, of %d", reads.Load())
	middle, last := list[len(list)/3:2*len(list)/3], list[2*len(list)/3:]
	t.Logf("%v, %d parcels brought, %d reads\nmiddle third %s\nlast third   %s", length, s.next, reads.Load(), median(middle), median(last))
	require.Empty(t, growing(middle, last))
	s.calm()
	s.judge()
}

// deliver has the partner make another delivery.
func (s *slaughter) deliver() {
	n := len(s.parcels)
	p := parcel{tracking: fmt.Sprintf("PK-%d", n)}
	status, answer := s.call(http.MethodPost, "/api/v1/third-party-delivery/deliveries", fmt.Sprintf(
		`{"reference_number":"R-%d","device_id":%d,"reserve":false,"recipient":{"name":"Jane Smith","phone":"+14165550123"},"packages":[{"tracking_number":%q,"size":"M"}]}`, n, s.device, p.tracking))
	require.Less(s.t, status, 300, "%d %s", status, answer.Code)
	d := answer.Delivery
	p.id, p.number, p.delivery, p.pickup = d.ID, d.Number, d.DeliveryCode, d.PickupCode
	s.parcels = append(s.parcels, p)
	s.awaits("the cabinet knows the codes", func(v kiosk.View) bool { return v.CodeList >= uint64(2*(n+1)) })
}

// readUntil reads what others read: a partner its deliveries, a customer a timeline and a
// page, a monitor whether the node is ready.
func (s *slaughter) readUntil(end time.Time, seed uint64, reads, failed *atomic.Int64) {
	rnd := rand.New(rand.NewPCG(seed, 17))
	for time.Now().Before(end) {
		number := fmt.Sprintf("PK-%d", rnd.IntN(200))
		path := []string{"/api/v1/third-party-delivery/deliveries?per_page=50", "/api/v1/otep/trackings/" + number, "/track/" + number, "/readyz", "/docs"}[rnd.IntN(5)]
		req, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.front+path, nil)
		if err != nil {
			failed.Add(1)
			return
		}
		if strings.HasPrefix(path, "/api/v1/third") {
			req.Header.Set("Authorization", "Bearer "+s.token)
		}
		resp, err := page.Do(req)
		reads.Add(1)
		if err != nil || resp.StatusCode >= 500 {
			failed.Add(1)
			s.t.Log(path, err)
		}
		if err == nil {
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
		}
		time.Sleep(time.Duration(rnd.IntN(200)) * time.Millisecond)
	}
}

// usage is what the programs use at a moment.
type usage struct {
	cloudMemory, edgeMemory   int // bytes, resident
	cloudThreads, edgeThreads int
	cloudFiles, edgeFiles     int // open
	goroutines                int // of the cloud
	cloudData, edgeData       int // bytes, of files
	events                    int // that the receiver got so far
}

func (u usage) String() string {
	return fmt.Sprintf("cloud: %d MiB, %d threads, %d files, %d goroutines, %d MiB of data; edge: %d MiB, %d threads, %d files, %d KiB of data; %d events",
		u.cloudMemory>>20, u.cloudThreads, u.cloudFiles, u.goroutines, u.cloudData>>20, u.edgeMemory>>20, u.edgeThreads, u.edgeFiles, u.edgeData>>10, u.events)
}

func (s *slaughter) usage() (u usage) {
	cloud := s.nodes[0].cmd.Process.Pid
	u.cloudMemory, u.cloudThreads, u.cloudFiles = ofProcess(cloud)
	u.edgeMemory, u.edgeThreads, u.edgeFiles = ofProcess(s.edge.cmd.Process.Pid)
	u.cloudData, u.edgeData = sizeOf(filepath.Join(s.dir, "cloud")), sizeOf(filepath.Join(s.dir, "edge"))
	u.events = len(s.hooks.all())
	resp, err := page.Get("http://" + s.nodes[0].admin + "/metrics")
	if err != nil {
		return u
	}
	defer resp.Body.Close()
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		if n, ok := strings.CutPrefix(lines.Text(), "go_goroutines "); ok {
			u.goroutines, _ = strconv.Atoi(n)
		}
	}
	return u
}

// ofProcess is what Linux says of a process; zeros where it says nothing.
func ofProcess(pid int) (memory, threads, files int) {
	dir := filepath.Join("/proc", strconv.Itoa(pid))
	text, _ := os.ReadFile(filepath.Join(dir, "status"))
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		n, _ := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(value), " kB"))
		switch name {
		case "VmRSS":
			memory = n << 10
		case "Threads":
			threads = n
		}
	}
	open, _ := os.ReadDir(filepath.Join(dir, "fd"))
	return memory, threads, len(open)
}

func sizeOf(dir string) (bytes int) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if info, err := d.Info(); err == nil {
				bytes += int(info.Size())
			}
		}
		return nil
	})
	return bytes
}

// median is the middle of each figure.
func median(list []usage) usage {
	of := func(get func(usage) int) int {
		var all []int
		for _, u := range list {
			all = append(all, get(u))
		}
		slices.Sort(all)
		return all[len(all)/2]
	}
	return usage{of(func(u usage) int { return u.cloudMemory }), of(func(u usage) int { return u.edgeMemory }), of(func(u usage) int { return u.cloudThreads }), of(func(u usage) int { return u.edgeThreads }),
		of(func(u usage) int { return u.cloudFiles }), of(func(u usage) int { return u.edgeFiles }), of(func(u usage) int { return u.goroutines }),
		of(func(u usage) int { return u.cloudData }), of(func(u usage) int { return u.edgeData }), of(func(u usage) int { return u.events })}
}

// growing names what grew from one third of a run to the next, beyond a tenth and what a
// program needs at any size; of the cloud's data, what grew faster than before.
func growing(middle, last []usage) (out []string) {
	a, b := median(middle), median(last)
	for name, x := range map[string][3]int{
		"memory of the cloud": {a.cloudMemory, b.cloudMemory, 12 << 20}, "memory of the agent": {a.edgeMemory, b.edgeMemory, 6 << 20},
		"threads of the cloud": {a.cloudThreads, b.cloudThreads, 4}, "threads of the agent": {a.edgeThreads, b.edgeThreads, 4},
		"open files of the cloud": {a.cloudFiles, b.cloudFiles, 16}, "open files of the agent": {a.edgeFiles, b.edgeFiles, 8},
		"goroutines of the cloud": {a.goroutines, b.goroutines, 30}, "data of the agent": {a.edgeData, b.edgeData, 1 << 20},
	} {
		if x[0] == 0 || x[1] > x[0]+x[0]/10+x[2] {
			out = append(out, fmt.Sprintf("%s: %d, then %d", name, x[0], x[1]))
		}
	}
	grown := func(list []usage) float64 {
		first, end := list[0], list[len(list)-1]
		return float64(end.cloudData-first.cloudData) / float64(max(end.events-first.events, 1))
	}
	if before, now := grown(middle), grown(last); now > 1.5*before+4096 {
		out = append(out, fmt.Sprintf("data of the cloud for each event: %.0f bytes, then %.0f", before, now))
	}
	return out
}

// What grows is found.
func TestUsageThatGrowsIsFound(t *testing.T) {
	flat := func(from, n int) (list []usage) {
		for i := range n {
			at := from + i
			list = append(list, usage{60 << 20, 20 << 20, 12, 9, 40, 12, 200, (10 << 20) + at*6000, 1 << 20, 4 * at})
		}
		return list
	}
	middle, last := flat(40, 40), flat(80, 40)
	require.Empty(t, growing(middle, last))
	for name, grow := range map[string]func(u *usage){
		"memory": func(u *usage) { u.cloudMemory += 20 << 20 }, "threads": func(u *usage) { u.edgeThreads += 8 }, "files": func(u *usage) { u.cloudFiles += 30 },
		"goroutines": func(u *usage) { u.goroutines += 60 }, "data of the agent": func(u *usage) { u.edgeData += 3 << 20 },
		"unread": func(u *usage) { u.goroutines = 0 }, "data of the cloud": func(u *usage) { u.cloudData += u.events * 20_000 },
	} {
		worse := slices.Clone(last)
		for i := range worse {
			grow(&worse[i])
		}
		before := middle
		if name == "unread" {
			before = worse
		}
		require.Len(t, growing(before, worse), 1, name)
	}
}
