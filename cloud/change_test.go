package cloud_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
)

// members walks the members of all sections of changes.
func members(t *testing.T, c *cloud.Changes, visit func(name string, f reflect.StructField, v reflect.Value)) {
	t.Helper()
	v, sections := reflect.ValueOf(c).Elem(), 0
	for i := range v.NumField() {
		if section := v.Type().Field(i); section.Anonymous {
			require.True(t, strings.HasSuffix(section.Name, "Changes"), section.Name)
			sections++
			for k := range v.Field(i).NumField() {
				visit(section.Name+"."+section.Type.Field(k).Name, section.Type.Field(k), v.Field(i).Field(k))
			}
		}
	}
	require.Greater(t, sections, 20)
}

// put puts two elements into a list, one into a map, and something into the rest.
func put(t *testing.T, name string, v reflect.Value) {
	t.Helper()
	switch v.Kind() {
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem())
	case reflect.Int64:
		v.SetInt(7)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[cloud.OAuthDrop]() {
			put(t, name, v.Field(0))
			return
		}
		require.True(t, v.Type().String() == "time.Time", name)
		v.Set(reflect.ValueOf(time.Unix(1, 0)))
	default:
		require.Fail(t, "a member of a kind that no rule joins", name)
	}
}

// Every member by itself: with it changes are not empty, unless it says when they
// may be written, and it is there after a join.
func TestEveryMemberOfChangesCounts(t *testing.T) {
	t.Parallel()
	members(t, &cloud.Changes{}, func(name string, f reflect.StructField, _ reflect.Value) {
		var c, sum cloud.Changes
		require.True(t, c.Empty())
		members(t, &c, func(other string, _ reflect.StructField, v reflect.Value) {
			if other == name {
				put(t, name, v)
			}
		})
		require.Equal(t, f.Name == "Generation", c.Empty(), name)
		sum.Join(&c)
		require.Equal(t, c, sum, "%s: nothing and something is that", name)
		sum.Join(&cloud.Changes{})
		require.Equal(t, c, sum, "%s: something and nothing is that", name)
		sum.Join(&c)
		members(t, &sum, func(other string, _ reflect.StructField, v reflect.Value) {
			if other == name && v.Kind() == reflect.Slice {
				require.Equal(t, 4, v.Len(), name)
			}
		})
	})
}

func TestMarksOfChangesAreJoined(t *testing.T) {
	t.Parallel()
	var c cloud.Changes
	c.Join(&cloud.Changes{Answer: "done", Refused: true})
	c.Join(&cloud.Changes{Unfinished: true, Unaudited: true})
	require.Equal(t, cloud.Changes{Answer: "done", Refused: true, Unfinished: true, Unaudited: true}, c)
	require.True(t, c.Empty(), "an answer is no change by itself")
}
