package thirdparty

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
)

var errAsked = errors.New("the database was asked")

// askedView reports that the database was asked for an assignment.
type askedView struct{ cloud.View }

func (askedView) ThirdPartyByNumber(cloud.BusinessID, string) (cloud.ThirdPartyAssignment, error) {
	return cloud.ThirdPartyAssignment{}, errAsked
}

// A number that no database can hold is not found; the database is not asked.
func TestNumbersThatCannotBeAreNotFound(t *testing.T) {
	t.Parallel()
	c := cloud.Caller{Account: cloud.Account{ID: 2, BusinessID: 42, Type: cloud.ClientEmployee}}
	_, err := findAssignment(askedView{}, c, "TP-1")
	require.ErrorIs(t, err, errAsked)
	for _, number := range []string{"TP\x001", "TP\xff"} {
		_, err = findAssignment(askedView{}, c, number)
		var e *cloud.Error
		require.ErrorAs(t, err, &e, "%q", number)
		require.Equal(t, codeNoThird, e.Code)
		require.Equal(t, cloud.NotFound, e.Kind)
	}
}
