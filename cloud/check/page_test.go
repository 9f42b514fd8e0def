package check

import (
	"encoding/base64"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
)

type someList struct {
	Status []int `json:"status"`
	Sort   string
}

func TestCursors(t *testing.T) {
	t.Parallel()
	list := someList{Status: []int{1, 2}, Sort: "id"}
	for _, m := range []cloud.Mark{{ID: int64(7)}, {Key: int64(-1) << 62, ID: int64(1) << 62}, {Key: "2026-11-02", ID: int64(3)}, {Key: "", ID: "a b"}} {
		more := Keyset{}.More(list, cloud.Listed{Next: &m})
		got, err := Keyset{Cursor: *more.NextCursor}.Mark(list)
		require.NoError(t, err)
		require.Equal(t, m, *got)
		_, err = Keyset{Cursor: *more.NextCursor}.Mark(someList{Status: []int{1}, Sort: "id"})
		require.ErrorContains(t, err, Code, "of another list")
		_, err = Keyset{Cursor: *more.NextCursor, Paging: Paging{Page: new(2)}}.Mark(list)
		require.ErrorContains(t, err, Code)
	}
	none, err := Keyset{}.Mark(list)
	require.NoError(t, err)
	require.Nil(t, none)
	require.Equal(t, More{LowerBound: true}, Keyset{}.More(list, cloud.Listed{AtLeast: true}), "the last page")
}

func FuzzCursor(f *testing.F) {
	list := someList{Sort: "id"}
	hash := listHash(list)
	for _, s := range []string{`[1,2]`, `["a",2]`, `[null,2]`, `[1.5,2]`, `[1e99,2]`, `[{},1]`, `[1,2,3]`, `[1,2] x`, `["\u0000",1]`} {
		f.Add(append(hash[:], s...))
	}
	f.Add([]byte("short"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		k := Keyset{Cursor: base64.RawURLEncoding.EncodeToString(raw)}
		m, err := k.Mark(list)
		if err != nil || m == nil {
			require.Nil(t, m)
			return
		}
		for _, v := range []any{m.Key, m.ID} {
			switch v.(type) {
			case nil, int64, string:
			default:
				t.Fatalf("%T", v)
			}
		}
	})
}
