package mock

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// formDigest is of the names and types of all that is kept of a cabinet in the present
// form.
const formDigest = "1 7ad159490476c327"

// A cabinet that was kept with other members would be read with zeros in their place: when
// they change, so does the number of the form, and kept cabinets begin anew.
func TestTheKeptFormHasItsNumber(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	seen := map[reflect.Type]bool{}
	var walk func(x reflect.Type)
	walk = func(x reflect.Type) {
		switch x.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Array:
			walk(x.Elem())
		case reflect.Map:
			walk(x.Key())
			walk(x.Elem())
		case reflect.Struct:
			if seen[x] {
				return
			}
			seen[x] = true
			for f := range x.Fields() {
				if f.IsExported() {
					fmt.Fprintln(&b, x, f.Name, f.Type, f.Tag.Get("cbor"))
					walk(f.Type)
				}
			}
		}
	}
	walk(reflect.TypeFor[cabinet]())
	sum := sha256.Sum256([]byte(b.String()))
	require.Equal(t, formDigest, fmt.Sprint(form, " ", hex.EncodeToString(sum[:8])), "count form up when names or types have changed, then write the digest here:\n%s", b.String())
}
