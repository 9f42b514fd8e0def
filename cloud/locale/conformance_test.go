package locale

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/protocol/otep"
)

func TestEveryRuleHasAHint(t *testing.T) {
	t.Parallel()
	blank := regexp.MustCompile(`\{\d\}`)
	for _, rule := range otep.Rules() {
		m, ok := hints[rule.ID]
		require.True(t, ok, rule.ID)
		for i, s := range m {
			require.NotEmpty(t, s, "%s lacks %s", rule.ID, languages[i])
			require.True(t, strings.HasSuffix(s, ".") || strings.HasSuffix(s, "。"), "%s: %s is a sentence", rule.ID, languages[i])
			require.ElementsMatch(t, blank.FindAllString(m[0], -1), blank.FindAllString(s, -1), "%s: values in %s", rule.ID, languages[i])
			for j := range i {
				require.NotEqual(t, m[j], s, "%s is the same in %s and %s", rule.ID, languages[j], languages[i])
			}
			for _, b := range blank.FindAllString(s, -1) {
				require.LessOrEqual(t, int(b[1]-'0'), strings.Count(rule.Message, "%s"), "%s has a value %s", rule.ID, b)
			}
		}
	}
	require.Len(t, hints, len(otep.Rules()), "no hint without a rule")
}

func TestHint(t *testing.T) {
	t.Parallel()
	require.Equal(t, "Bitte stattdessen „cancelled“ schreiben; so wird es gelesen.", Hint(German, "V19", "canceled", "cancelled"))
	require.Equal(t, "Check the time of '{2}', or leave it out: after 'delivered' a timeline has ended.", Hint(English, "V43", "{2}", "delivered"), "values are not read as blanks")
	require.Empty(t, Hint(English, "V99"))
}
