package cloud_test

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
)

// fill puts two elements into every list and map and something into the rest.
func fill(t *testing.T, c *cloud.Changes) {
	t.Helper()
	v := reflect.ValueOf(c).Elem()
	for i := range v.NumField() {
		switch f := v.Field(i); f.Kind() {
		case reflect.Slice:
			f.Set(reflect.MakeSlice(f.Type(), 2, 2))
		case reflect.Map:
			f.Set(reflect.MakeMap(f.Type()))
			f.SetMapIndex(reflect.New(f.Type().Key()).Elem(), reflect.New(f.Type().Elem()).Elem())
		case reflect.Int64:
			f.SetInt(7)
		}
	}
}

func TestJoinedChangesAreBothOfThem(t *testing.T) {
	var a, b cloud.Changes
	require.True(t, a.Empty())
	fill(t, &b)
	a.Join(&b)
	require.Equal(t, b, a, "nothing and something is that")
	a.Join(&b)
	v := reflect.ValueOf(a)
	for i := range v.NumField() {
		if f := v.Field(i); f.Kind() == reflect.Slice {
			require.Equal(t, 4, f.Len(), v.Type().Field(i).Name)
		}
	}
	require.False(t, a.Empty())
}
