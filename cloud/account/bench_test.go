package account

import (
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud/auth"
	"github.com/postern-io/postern/cloud/store/storetest"
)

// atOnce is how many people sign in at one moment.
const atOnce = 20

// BenchmarkSignIn measures logins with the password, 20 at once: how long each waits for
// its turn, its hash and its commit. p99-ms is the figure that has a bound, 400.
func BenchmarkSignIn(b *testing.B) {
	d := newDesk(b, storetest.OpenSQLite(b), true)
	var mu sync.Mutex
	var took []time.Duration
	before := processorTime()
	for b.Loop() {
		var wg sync.WaitGroup
		for range atOnce {
			wg.Go(func() {
				start := time.Now()
				_, _, err := d.gate.Login(b.Context(), auth.Try{Email: "cus@a.example", Password: password, IP: "192.0.2.1"})
				mu.Lock()
				defer mu.Unlock()
				took = append(took, time.Since(start))
				if err != nil {
					b.Error(err)
				}
			})
		}
		wg.Wait()
	}
	cpu := processorTime() - before
	slices.Sort(took)
	require.NotEmpty(b, took)
	at := func(share float64) float64 {
		return float64(took[int(float64(len(took)-1)*share)].Microseconds()) / 1000
	}
	b.ReportMetric(float64(cpu.Microseconds())/1000/float64(len(took)), "cpu-ms/login") // on a machine with other work p99 says less
	b.ReportMetric(at(0.5), "p50-ms")
	b.ReportMetric(at(0.99), "p99-ms")
}

// processorTime is what this process has used so far.
func processorTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
