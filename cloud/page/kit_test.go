package page_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/locale"
)

// The kit shows every part in its states, to staff alone, in every language, and is made
// by the templates of the pages.
func TestKit(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	require.Equal(t, 303, r.do("GET", "/console/kit", nil).status)
	r.signedIn()
	for _, l := range locale.All() {
		g := r.do("GET", "/console/kit?lang="+l.Code, nil)
		require.Equal(t, 200, g.status)
		isPlain(t, strings.ReplaceAll(g.body, "%s %s", ""))
		ids(t, g.body)
		require.NotRegexp(t, `>(kit|report|work|todo|home|member)\.[a-z]`, g.body)
		for _, part := range []string{"buttons", "chips", "pills", "values", "notices", "figures", "tables", "filters", "fields", "todo", "story", "charts", "cabinets", "messages", "empty"} {
			require.Contains(t, g.body, `id="`+part+`"`)
		}
		for _, state := range []string{"tone-good", "tone-warn", "tone-bad", "tone-calm", "tone-off", `aria-invalid="true"`, "<progress", `role="alert"`, `class="notice done"`, "s-open", "s-jammed", "s-never", "s-blocked", "s-occupied", `class="ch-bar`, `class="ch-line`, `class="blank"`, `aria-sort="ascending"`, "own private", "kit-todo-2"} {
			require.Contains(t, g.body, state)
		}
	}
	for _, typ := range []cloud.AccountType{cloud.Customer, cloud.Broker} {
		r.cookies["postern_session"] = r.w.Tokens[typ]
		require.Equal(t, 403, r.do("GET", "/console/kit", nil).status, typ)
		require.Equal(t, 403, r.do("GET", "/console/reports", nil).status, typ)
		require.Equal(t, 403, r.do("GET", "/console/reports/orders.csv", nil).status, typ)
	}
}
