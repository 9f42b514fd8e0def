package store

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
)

// Members of each noun are columns of its table, and what a column has as JSON names
// its members by tags: no rename of a field changes what older rows mean.
func TestRowsHaveTheirColumns(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(testing.TB) *DB{"SQLite": func(t testing.TB) *DB { return openTest(t, Config{Dir: t.TempDir()}) }, "PostgreSQL": openSchema} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := open(t)
			for _, x := range rowTables {
				r := reflect.New(x.row).Elem()
				r.FieldByName("ID").SetInt(1)
				r.FieldByIndex(x.owner.Index).SetInt(1)
				for _, c := range x.columns { // those that are never null
					if f := r.FieldByIndex(c.Index); f.Type() == reflect.TypeFor[time.Time]() {
						f.Set(reflect.ValueOf(time.UnixMilli(1).UTC()))
					} else if f.Type() == reflect.TypeFor[[]byte]() {
						f.SetBytes([]byte("{}"))
					}
				}
				row := r.Interface().(cloud.Row)
				require.NoError(t, db.Decide(t.Context(), 0, func(cloud.View) (*cloud.Changes, error) {
					return &cloud.Changes{RowChanges: cloud.RowChanges{Rows: []cloud.Row{row}}}, nil
				}), x.name)
				require.NoError(t, db.Look(t.Context(), func(v cloud.View) error {
					got, err := v.FindRow(row)
					require.Equal(t, row, got)
					for sort := range x.sorts {
						list, _, err := v.ListRows(row, cloud.Page{Sort: sort, Limit: 2})
						require.NoError(t, err, "%s by %s", x.name, sort)
						require.Equal(t, []cloud.Row{row}, list)
					}
					return err
				}), x.name)
			}
		})
	}
	for _, x := range rowTables {
		for _, c := range x.columns {
			for _, member := range untagged(x.row.FieldByIndex(c.Index).Type) {
				require.Empty(t, member, "%s.%s has no json tag", x.name, member)
			}
		}
	}
}

// untagged are the members of a type whose names in JSON would be their own.
func untagged(t reflect.Type) (out []string) {
	if slices.Contains([]reflect.Kind{reflect.Slice, reflect.Map, reflect.Pointer}, t.Kind()) {
		return untagged(t.Elem())
	}
	if t.Kind() != reflect.Struct || t == reflect.TypeFor[time.Time]() {
		return nil
	}
	for _, f := range reflect.VisibleFields(t) {
		if !f.Anonymous && f.Tag.Get("json") == "" {
			out = append(out, f.Name)
		}
		out = append(out, untagged(f.Type)...)
	}
	return out
}
