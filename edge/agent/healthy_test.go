package agent

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/edge/board"
	"github.com/postern-io/postern/protocol/wire"
)

// A start is healthy once its parts work: with a line that is wired, a board has answered;
// where the cloud was known before, it is connected.
func TestAStartIsHealthyOnceItsPartsWork(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lines, cloud, want bool
	}{
		"no board answers":           {lines: true},
		"the cloud does not answer":  {cloud: true},
		"neither was there before":   {want: true},
		"neither answers, both were": {lines: true, cloud: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t)
				if c.cloud {
					b.codes(wire.Codes{To: 9, Generation: 3, Entries: staffCode(9)}, "n1")
				}
				b.halt()
				healthy := 0
				b.change = func(s *Config) {
					s.Healthy = func() { healthy++ }
					if !c.lines {
						s.Lines = []board.LineConfig{}
					}
				}
				b.start()
				defer b.halt()
				time.Sleep(time.Hour)
				synctest.Wait()
				if c.want {
					require.Equal(t, 1, healthy, "once")
				} else {
					require.Zero(t, healthy)
				}
			})
		})
	}
}
