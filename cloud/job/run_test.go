package job_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/job"
)

// away is a database that cannot be reached; the second call ends the service.
type away struct {
	job.Store
	stop context.CancelFunc
}

func (away) ReleaseJobs(context.Context) error { return errors.New("away") }

func (a away) WaitingJobs(context.Context, time.Time, int) ([]cloud.Job, error) {
	a.stop()
	return nil, errors.New("away")
}

// A service without a log goes on while its database cannot be reached.
func TestAServiceNeedsNoLog(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	require.NoError(t, job.New(job.Config{Store: away{stop: stop}}).Run(ctx))
}
