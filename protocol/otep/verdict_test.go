package otep

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/internal/ring"
	"github.com/postern-io/postern/protocol/otep/oteptest"
)

// beyondTheSchema are the rules that look at two places at once, or count what JSON Schema
// cannot count: check digits, the bytes of an extension, repeats, the order of events.
var beyondTheSchema = []string{"V16", "V34", "V42", "V43", "V44", "V45"}

// Whatever a document has wrong, the schema and the rules agree whether anything is wrong.
func TestSchemaAndRulesGiveOneVerdict(t *testing.T) {
	t.Parallel()
	valid := compiled(t)
	require.NoError(t, valid([]byte(oteptest.Full)))
	report, err := Validate([]byte(oteptest.Full), noon)
	require.NoError(t, err)
	require.Empty(t, lines(report.Errors))
	require.Empty(t, lines(report.Warnings))
	refused, seen := 0, map[string]bool{}
	for seed := range uint64(ring.Among(1000, 10000, 200000)) {
		r := rand.New(rand.NewPCG(seed, 36))
		doc := oteptest.Mutate(r, []byte(oteptest.Full))
		report, err := Validate(doc, noon)
		require.NoError(t, err, "%s", doc)
		for _, e := range slices.Concat(report.Errors, report.Warnings) {
			seen[e.Rule] = true
		}
		errs := slices.DeleteFunc(slices.Clone(report.Errors), func(e Entry) bool {
			return slices.Contains(beyondTheSchema, e.Rule) || e.Rule == "V09" && e.Path == "subject.gs1_sscc" || e.Rule == "V37" && e.Args[0] == "extensions"
		})
		switch bad := valid(doc); {
		case bad == nil:
			require.Empty(t, lines(errs), "seed %d: the schema takes %s", seed, doc)
		default:
			require.NotEmpty(t, lines(report.Errors), "seed %d: the rules take %s: %v", seed, doc, bad)
			refused++
		}
	}
	require.NotZero(t, refused)
	if ring.Check() { // the mutants break every rule about a member
		for _, rule := range rules {
			require.True(t, seen[rule.ID] || rule.Whole(), rule.ID)
		}
	}
}
