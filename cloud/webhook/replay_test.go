package webhook

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
)

// jobs has two jobs that never end, of which the first cannot be moved on.
type jobs struct {
	Store
	moved map[string]int
}

func (jobs) OpenReplays(context.Context) ([]cloud.ReplayJob, error) {
	return []cloud.ReplayJob{{ID: "broken"}, {ID: "well"}}, nil
}

func (jobs) Decide(context.Context, cloud.DeviceID, func(cloud.View) (*cloud.Changes, error)) error {
	return nil
}

func (s jobs) StepReplay(_ context.Context, j cloud.ReplayJob, _ []cloud.OutboxID, _ time.Time) error {
	s.moved[j.ID]++
	if j.ID == "broken" {
		return errors.New("the body cannot be read")
	}
	return nil
}

// A job that cannot be moved on holds up no other job.
func TestJobsDoNotHoldEachOtherUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := jobs{moved: map[string]int{}}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second+replayEvery/2)
		defer cancel()
		require.NoError(t, New(s, nil).Run(ctx, slog.New(slog.DiscardHandler)))
		require.Equal(t, map[string]int{"broken": 11, "well": 11}, s.moved)
	})
}
