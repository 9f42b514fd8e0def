package api_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/catalog"
)

// No operation says that a number which was given as 0 is missing.
func TestNoOperationMissesAGivenZero(t *testing.T) {
	t.Parallel()
	tried := 0
	for _, o := range table().Operations() {
		if !o.HasBody() {
			continue
		}
		for _, m := range o.Members() {
			if m.Place != "" || !m.Required || !strings.Contains("int int64 uint uint64 float64 ", m.Type.Kind().String()+" ") {
				continue
			}
			tried++
			raw, err := json.Marshal(map[string]any{m.Name: 0})
			require.NoError(t, err)
			var e *cloud.Error
			require.True(t, errors.As(catalog.Decode(raw, reflect.New(o.In()).Interface()), &e), "%s takes %s", o.Name, raw)
			require.Len(t, e.Fields[m.Name], 1, o.Name)
			require.Contains(t, e.Fields[m.Name][0], " must be ", o.Name)
		}
	}
	require.Greater(t, tried, 3)
}

// What was given is not said to be missing, in any face and language.
func TestGivenMembersAreNotMissing(t *testing.T) {
	t.Parallel()
	x := newWorld(t)
	const extend, open, test = partner + "/deliveries/1/extend", "/api/v1/smart-lockers/devices/88/open", "/api/v1/smart-lockers/devices/88/channel-tests"
	me := x.login(x.token(admin))
	for _, c := range []struct{ path, token, body, language, member, want string }{
		{extend, x.token(provider), `{"hours":0}`, "en", "hours", "hours must be from 1 to 168."},
		{extend, x.token(provider), `{"hours":0}`, "de", "hours", "hours muss von 1 bis 168 reichen."},
		{extend, x.token(provider), `{}`, "en", "hours", "hours is required."},
		{open, me, `{"grid_ids":[8801],"reason":"x","attended":false}`, "en", "attended", "attended must be true: nothing is done without it."},
		{open, me, `{"grid_ids":[8801],"reason":"x","attended":false}`, "fr", "attended", "attended doit être true : rien n’est fait sans cela."},
		{open, me, `{"grid_ids":[8801],"reason":"x"}`, "en", "attended", "attended is required."},
		{test, me, `{"grid_id":8801,"reason":"x","attended":false}`, "en", "attended", "attended must be true: nothing is done without it."},
	} {
		a := x.do("POST", c.path, c.token, c.body, "Accept-Language", c.language)
		require.Equal(t, 422, a.status, "%s %s: %s", c.path, c.body, a.body)
		require.Equal(t, []any{c.want}, at(a.json, "errors", c.member), "%s %s: %s", c.path, c.body, a.body)
	}
}
