package cloud

import (
	"testing"

	"github.com/stretchr/testify/require"
)

type guide struct {
	Kept[int64]
	Name   string `row:",unique"`
	Pages  []string
	Secret []byte `row:"sealed,secret,text"`
}

func (guide) RowKind() IDKind { return "guide" }

// Columns follow the members, of an embedded struct too, and a row without an owner of
// its own is its business's.
func TestColumnsFollowMembers(t *testing.T) {
	t.Parallel()
	var names []string
	for _, c := range ColumnsOf(guide{}) {
		names = append(names, c.Name)
		require.Equal(t, c.Name == "business_id", c.Owner, c.Name)
		require.Equal(t, c.Name == "name", c.Unique, c.Name)
		require.Equal(t, c.Name == "sealed", c.Secret && c.Text, c.Name)
		require.Equal(t, c.Name == "id" || c.Name == "created_at", c.Sort, c.Name)
		require.Equal(t, c.Name == "business_id" || c.Name == "created_at", c.Fixed, c.Name)
	}
	require.Equal(t, []string{"id", "business_id", "created_at", "updated_at", "name", "pages", "sealed"}, names)
	for _, c := range ColumnsOf(Passkey{}) {
		require.Equal(t, c.Name == "account_id", c.Owner, c.Name)
	}
}

// shelf is a View of one guide.
type shelf struct {
	missing
	one guide
}

func (s shelf) FindRow(r Row) (Row, error) {
	if r.RowID() != s.one.ID {
		return nil, ErrNotFound
	}
	return s.one, nil
}

// A preview shows that a row is new, changes or is removed, and an approval is bound to
// the row as it was shown.
func TestPreviewsShowRows(t *testing.T) {
	t.Parallel()
	known := guide{Kept: Kept[int64]{ID: 7, BusinessID: 1}, Name: "Lobby"}
	take := func(v View, c RowChanges) (Effect, string) {
		p := &Preview{}
		require.NoError(t, p.Take(v, &Changes{RowChanges: c}))
		require.Len(t, p.Effects(), 1)
		return p.Effects()[0], p.Marks()[0]
	}
	changed := known
	changed.Name = "Hall"
	e, mark := take(shelf{one: known}, RowChanges{Rows: []Row{changed}})
	require.Equal(t, "guide", e.Type)
	require.EqualValues(t, 7, e.ID)
	require.Equal(t, "Hall", e.Name)
	other := known
	other.Pages = []string{"A"}
	_, later := take(shelf{one: other}, RowChanges{Rows: []Row{changed}})
	require.NotEqual(t, mark, later, "another state of the row")
	e, _ = take(shelf{one: known}, RowChanges{Rows: []Row{guide{Kept: Kept[int64]{ID: 8}, Name: "New"}}})
	require.Nil(t, e.ID)
	e, _ = take(shelf{one: known}, RowChanges{DroppedRows: []Row{known}})
	require.Nil(t, e.After)
}
