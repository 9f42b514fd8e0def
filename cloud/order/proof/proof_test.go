package proof

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
)

var errDatabase = errors.New("the database is away")

// failingView is a database that answers nothing.
type failingView struct{ cloud.View }

func (failingView) Business(cloud.BusinessID) (cloud.Business, error) {
	return cloud.Business{}, errDatabase
}

// A file has its time in the zone of the business: without the business there is
// no file.
func TestDescribeNeedsTheBusiness(t *testing.T) {
	t.Parallel()
	_, err := describe(failingView{}, cloud.Caller{}, cloud.Order{BusinessID: 42}, AttachInput{Type: "photo"})
	require.ErrorIs(t, err, errDatabase)
}
