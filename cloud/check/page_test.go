package check

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
)

type someList struct {
	Status []int `json:"status"`
	Sort   string
	Keyset
}

type otherList someList

type longList struct{ LongKeyset }

func TestCursors(t *testing.T) {
	t.Parallel()
	list := someList{Status: []int{1, 2}, Sort: "id"}
	for _, m := range []cloud.Mark{{ID: int64(7)}, {Key: int64(-1) << 62, ID: int64(1) << 62}, {Key: "2026-11-02", ID: int64(3)}, {Key: "", ID: "a b"}} {
		list.Keyset = Keyset{PerPage: new(3), Page: new(1), Cursor: *Keyset{}.Output(list, cloud.Listed{Next: &m}).NextCursor}
		got, err := list.Part(list, "-id")
		require.NoError(t, err)
		require.Equal(t, cloud.Page{Sort: "id", Down: true, Limit: 3, After: &m}, got)
		for _, other := range []any{someList{Status: []int{1}, Sort: "id"}, someList{Status: []int{1, 2}}, otherList(list)} {
			_, err = list.Part(other, "-id")
			require.ErrorIs(t, err, cloud.ErrNoMark, "of another list")
		}
		list.Page = new(2)
		_, err = list.Part(list, "-id")
		require.ErrorContains(t, err, Code)
	}
	require.Equal(t, PageOutput{Total: 3, Page: 1, PerPage: 20, LowerBound: true}, Keyset{}.Output(list, cloud.Listed{Total: 3, AtLeast: true}), "the last page")
}

// A cursor is as long as the longest text that a list is sorted by makes it.
func TestLongestCursor(t *testing.T) {
	t.Parallel()
	in := someList{}
	for _, text := range []string{"<", "\u2028", "🚚", "a"} {
		in.Cursor = *Keyset{}.Output(in, cloud.Listed{Next: &cloud.Mark{Key: strings.Repeat(text, 256), ID: int64(1) << 62}}).NextCursor
		require.NoError(t, Input(&in))
		_, err := in.Part(in, "email")
		require.NoError(t, err)
	}
}

func TestLongPages(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		given      *int
		want, from int
	}{{nil, 50, 100}, {new(7), 7, 14}} {
		in := longList{LongKeyset{PerPage: x.given}}
		in.Page = new(3)
		require.NoError(t, Input(&in))
		p, err := in.Part(in, "-id")
		require.NoError(t, err)
		require.Equal(t, cloud.Page{Sort: "id", Down: true, Limit: x.want, Offset: x.from}, p)
		require.Equal(t, PageOutput{Page: 3, PerPage: x.want}, in.Output(in, cloud.Listed{}))
	}
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
		p, err := k.Part(list, "id")
		if err != nil || p.After == nil {
			require.Nil(t, p.After)
			return
		}
		for _, v := range []any{p.After.Key, p.After.ID} {
			switch v.(type) {
			case nil, int64, string:
			default:
				t.Fatalf("%T", v)
			}
		}
	})
}
