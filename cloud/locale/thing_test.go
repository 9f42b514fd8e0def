package locale

import (
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
)

// Every kind that an effect can name has a word.
func TestEveryKindOfEffectHasAWord(t *testing.T) {
	t.Parallel()
	n := 0
	var walk func(x reflect.Type)
	walk = func(x reflect.Type) {
		for i := range x.NumField() {
			f := x.Field(i)
			if f.Anonymous {
				walk(f.Type)
				continue
			}
			if f.Tag.Get("change") == "condition" {
				continue
			}
			n++
			kind := cloud.KindOf(f.Name)
			require.NotEqual(t, strings.ToLower(Thing(English, kind)[:1]), Thing(English, kind)[:1], "%s has no word", kind)
		}
	}
	walk(reflect.TypeFor[cloud.Changes]())
	require.Greater(t, n, 80)
	for _, kind := range []string{"order_batch", "chat_message", "webhook_settings"} {
		require.NotEqual(t, Thing(English, kind), Thing(German, kind), kind)
	}
}
