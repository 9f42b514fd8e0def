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
// where the cloud was known before, by its first code list or by a record that it has
// acknowledged, it is connected.
func TestAStartIsHealthyOnceItsPartsWork(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lines, want bool
		cloud       func(b *bench) // of an earlier start; nil: none
	}{
		"no board answers":                           {lines: true},
		"a cloud with a code list is silent":         {cloud: listCodes},
		"a cloud that has a record is silent":        {cloud: acknowledge(wire.Settlement)},
		"a cloud that has a health record is silent": {cloud: acknowledge(wire.Telemetry)},
		"neither was there before":                   {want: true},
		"neither answers, both were":                 {lines: true, cloud: listCodes},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t)
				if c.cloud != nil {
					c.cloud(b)
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

// listCodes gives the agent the first code list of its cloud.
func listCodes(b *bench) {
	b.codes(wire.Codes{To: 9, Generation: 1, Entries: staffCode(9)}, "n1")
}

// acknowledge has the cloud acknowledge the first record of a lane, and no other.
func acknowledge(l wire.Lane) func(*bench) {
	return func(b *bench) {
		b.t.Helper()
		require.NoError(b.t, b.agent.Record(b.t.Context(), wire.KindHealth, b.agent.healthBody()))
		run, err := b.agent.store.Read(l, 1, 1, 1<<20)
		require.NoError(b.t, err)
		require.NoError(b.t, b.agent.store.Ack(run.Epoch, l, 2, run.Head))
		require.NoError(b.t, b.agent.Record(b.t.Context(), wire.KindHealth, b.agent.healthBody())) // keeps the position too
	}
}
