package e2e

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cmd/internal/postgres"
	"github.com/postern-io/postern/edge/kiosk"
	simboard "github.com/postern-io/postern/firmware-sim/board"
	"github.com/postern-io/postern/internal/ring"
)

// clusterSides are what happens to programs of a deployment of several nodes, each once in
// a round.
var clusterSides = []string{"edge", "cloud", "boards", "rolling", "namesake", "database"}

// Three nodes on one PostgreSQL database behind a balancer, with a cabinet and a partner
// that reach them by it: nodes are killed, restarted in order and started twice under one
// name, agent and boards are killed, the database crashes, and half-way its synchronous
// standby takes over and restarted nodes are of a later release, while the partner opens
// doors at whatever node the balancer chooses. The nodes' clocks are up to two seconds apart.
// The oracle judges as in TestKilledProgramsTellTheTruth.
func TestNodesBehindABalancerTellTheTruth(t *testing.T) {
	ring.SkipUnlessFull(t, "two nodes of one program, the model of their leases, and the killed programs of one node")
	t.Parallel()
	balancer, err := exec.LookPath("haproxy")
	ring.Needs(t, ring.EnvTools, "haproxy", err == nil)
	first, last := ring.Rounds(1, 200)
	bin := build(t)
	clocks := shiftedClocks(t)
	maps.Copy(clocks, shortSessions(t))
	now, next := buildCloud(t, clocks), migrations(t, 1)
	maps.Copy(next, clocks)
	later := buildCloud(t, next)
	for from := first; from <= last; from += roundsPerCluster {
		to := min(from+roundsPerCluster-1, last)
		t.Run(fmt.Sprintf("rounds %d-%d", from, to), func(t *testing.T) {
			s := newCluster(t, bin, balancer, uint64(from))
			for i, n := range s.nodes {
				n.bin, n.env = now, []string{clockShift + "=" + []string{"0", "1", "-1"}[i]}
			}
			s.startSim()
			s.startCloud()
			s.startEdge()
			s.awaits("boards are read and codes are held", func(v kiosk.View) bool { return v.Online && v.CodeList >= uint64(2*len(s.parcels)) && known(v) })
			s.opensInCalm(from)
			for n := from; n <= to; n++ {
				s.rnd = rand.New(rand.NewPCG(uint64(n), 13))
				if n == (from+to)/2 {
					s.round("failover")
					s.later = later
				}
				for _, side := range s.rnd.Perm(len(clusterSides)) {
					s.round(clusterSides[side])
				}
			}
			s.endAfar()
			s.calm()
			s.judge()
			require.NotEmpty(t, s.opened, "no door was opened from afar")
			slices.Sort(s.opened)
			t.Logf("%d doors opened from afar, %s at the median, %s at most; %d calls refused", len(s.opened), s.opened[len(s.opened)/2].Round(time.Millisecond),
				s.opened[len(s.opened)-1].Round(time.Millisecond), s.refused)
		})
	}
}

// roundsPerCluster bounds how many codes one cabinet's list holds.
const roundsPerCluster = 20

// newCluster makes three nodes and starts their balancer, as deploy/cluster describes it.
func newCluster(t *testing.T, bin programs, balancer string, seed uint64) *slaughter {
	front, mqtt := freeAddress(t), freeAddress(t)
	env := append(os.Environ(), "HTTP_BIND="+front, "MQTT_BIND="+mqtt)
	var nodes []*killNode
	for i := range 3 {
		n := &killNode{name: fmt.Sprintf("node%d", i+1), http: freeAddress(t), mqtt: freeAddress(t)}
		_, port, err := net.SplitHostPort(n.http)
		require.NoError(t, err)
		env = append(env, fmt.Sprintf("NODE%d_HTTP=%s", i+1, n.http), fmt.Sprintf("NODE%d_MQTT=%s", i+1, n.mqtt), fmt.Sprintf("NODE%d_CHECK=%s", i+1, port))
		nodes = append(nodes, n)
	}
	primary, standby := newDatabase(t)
	s := newSlaughterOf(t, bin, seed, parcelsPerWorld, postgres.Address(primary, standby), mqtt, nodes...)
	s.front, s.primary, s.standby = "http://"+front, primary, standby
	p := &process{name: "haproxy", cmd: exec.Command(balancer, "-db", "-f", filepath.Join("..", "..", "deploy", "cluster", "haproxy.cfg")), done: make(chan error, 1)}
	p.cmd.Env, p.cmd.Stderr, p.cmd.Stdout = env, p, p
	p.run(t)
	ring.Await(t, func() bool { return listens(mqtt) }, "the balancer listens", p.text)
	return s
}

// newDatabase starts a database and its synchronous standby.
func newDatabase(t *testing.T) (primary, standby *postgres.Server) {
	primary, err := postgres.New(t.Context(), os.TempDir())
	require.NoError(t, err)
	ends := func(s *postgres.Server) {
		t.Cleanup(func() { require.NoError(t, errors.Join(s.Crash(), s.Remove())) })
	}
	ends(primary)
	require.NoError(t, primary.Start(t.Context()))
	require.NoError(t, primary.CreateDatabase(t.Context()))
	standby, err = primary.Standby(t.Context(), os.TempDir())
	require.NoError(t, err)
	ends(standby)
	return primary, standby
}

// supervise starts nodes again that ended because the database went away while they
// started, which is until they have taken their lease. One that serves goes on without it.
func (s *slaughter) supervise() {
	for _, n := range s.nodes {
		select {
		case err := <-n.done:
			n.done <- err
			if !strings.Contains(n.text(), "cloud: take the lease of") {
				require.NotContains(s.t, n.text(), `"msg":"serving"`, "a node that served ended by itself: %s", n.tail())
			}
			s.startNode(n)
		default:
		}
	}
}

// awaitServing waits for a node, which may have to be started again.
func (s *slaughter) awaitServing(n *killNode) {
	ring.Await(s.t, func() bool { s.supervise(); return answers(n.http) }, "the node serves", n.text)
}

// crashDatabase crashes the database, and starts it again.
func (s *slaughter) crashDatabase() {
	require.NoError(s.t, s.primary.Crash())
	time.Sleep(time.Duration(s.rnd.Int64N(int64(2 * time.Second))))
	require.NoError(s.t, s.primary.Start(s.t.Context()))
	s.supervise()
}

// failOver crashes the database for good and lets its standby take over.
func (s *slaughter) failOver() {
	require.NoError(s.t, s.primary.Crash())
	time.Sleep(time.Duration(s.rnd.Int64N(int64(2 * time.Second))))
	require.NoError(s.t, s.standby.Promote(s.t.Context()))
	s.primary, s.standby = s.standby, nil
	s.supervise()
}

// startNamesake starts a second process with the name of a running node, which refuses.
func (s *slaughter) startNamesake() {
	n := s.nodes[s.rnd.IntN(len(s.nodes))]
	s.awaitServing(n)
	twin := *n
	twin.http, twin.mqtt = freeAddress(s.t), freeAddress(s.t)
	p := cmp.Or(n.bin, s.bin).startIn(s.t, n.env, "cloud", s.nodeArgs(&twin)...)
	require.Error(s.t, p.await())
	require.Contains(s.t, p.text(), "another running process has this node's name")
}

func answers(addr string) bool {
	a, err := page.Get("http://" + addr + "/readyz")
	return err == nil && a.Body.Close() == nil && a.StatusCode == http.StatusOK
}

// useFromAfar lets the partner open a door for a deposit, and a person use it who was told
// its number: at once, or when it opens later.
func (s *slaughter) useFromAfar(x try) {
	begun := time.Now()
	status, answer := s.call(http.MethodPost, fmt.Sprintf("/api/v1/third-party-delivery/deliveries/%d/open-doors", x.parcel.id), `{"wait_seconds":0}`)
	if status >= 300 {
		s.refused++
		s.parcels = append(s.parcels, x.parcel)
		s.t.Logf("%s is not opened: %d %s", x.parcel.number, status, answer.Code)
		return
	}
	_, answer = s.call(http.MethodGet, fmt.Sprintf("/api/v1/third-party-delivery/deliveries/%d/doors", x.parcel.id), "")
	put := false
	for _, d := range answer.Doors {
		put = s.atDoor(d.Door, x) || put
		for _, f := range readLines[simboard.Fact](s.t, filepath.Join(s.dir, "truth.jsonl")) {
			if f.Kind == simboard.Opened && f.Door == d.Door && f.At.After(begun) {
				s.opened = append(s.opened, f.At.Sub(begun))
				break
			}
		}
	}
	s.inside = append(s.inside, x.parcel)
	s.afar = append(s.afar, opened{x.parcel, put})
}

// opensInCalm has the partner open doors by calls at any node while nothing is disturbed, and
// says how long that takes to the door.
func (s *slaughter) opensInCalm(seed int) {
	s.rnd = rand.New(rand.NewPCG(uint64(seed), 14))
	for _, n := range s.nodes {
		s.awaitServing(n)
	}
	for range 8 {
		s.awaits("doors are known", known)
		s.useFromAfar(try{"", s.parcels[s.next], false})
		s.next++
	}
	require.Zero(s.t, s.refused)
	require.Len(s.t, s.opened, 8)
	slices.Sort(s.opened)
	s.t.Logf("in calm a door is open %s after the call at the median, %s at most", s.opened[4].Round(time.Millisecond), s.opened[7].Round(time.Millisecond))
	s.opened = nil
}

// opened is a deposit whose door was opened from afar, and whether the person used it.
type opened struct {
	parcel
	put bool
}

// endAfar lets the partner say what became of deposits whose end no agent saw, once the
// cloud knows what agents did see.
func (s *slaughter) endAfar() {
	s.awaitSent()
	for _, x := range s.afar {
		path := fmt.Sprintf("/api/v1/third-party-delivery/deliveries/%d/", x.id)
		_, answer := s.call(http.MethodGet, path+"doors", "")
		session := answer.Session.State
		if session == "closed" {
			continue
		}
		verb, body := "confirm", `{}`
		if !x.put {
			verb, body = "fail", `{"failure_code":"NOT_DEPOSITED"}`
		}
		if status, answer := s.call(http.MethodPost, path+verb, body); status >= 300 {
			_, found := s.call(http.MethodGet, strings.TrimSuffix(path, "/"), "")
			s.t.Logf("%s (%s) is not ended by %s: %d %s in session %q", x.number, found.Delivery.Status, verb, status, answer.Code, session)
		}
	}
}

// partnerAnswer is what the partner reads of answers.
type partnerAnswer struct {
	Code     string `json:"code"`
	Delivery struct {
		Status string `json:"status"`
	} `json:"delivery"`
	Session struct {
		State string `json:"state"`
	} `json:"session"`
	Doors []struct {
		Door uint `json:"compartment_number"`
	} `json:"doors"`
}

// call asks whatever node the balancer chooses, again while none answers, while one that was
// killed may have been at it, and after a while where calls come too fast. A call is done
// once: the key says so.
func (s *slaughter) call(method, path, body string) (status int, answer partnerAnswer) {
	key := fmt.Sprint(time.Now().UnixNano())
	ring.Await(s.t, func() bool {
		req, err := http.NewRequestWithContext(s.t.Context(), method, s.front+path, strings.NewReader(body))
		require.NoError(s.t, err)
		req.Header.Set("Authorization", "Bearer "+s.token)
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Idempotency-Key", key)
		resp, err := page.Do(req)
		if err != nil {
			return false
		}
		answer = partnerAnswer{}
		err = json.NewDecoder(resp.Body).Decode(&answer)
		status = resp.StatusCode
		return errors.Join(err, resp.Body.Close()) == nil && status < 500 && !slices.Contains([]string{"IDEMPOTENCY_IN_PROGRESS", "RATE_LIMITED"}, answer.Code)
	}, "a node answers")
	return status, answer
}
