package projection

import (
	"maps"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// The terms that documents use are those that are told, format by format.
func TestTermsAreThoseOfTheDocuments(t *testing.T) {
	t.Parallel()
	member := regexp.MustCompile(`"otep:(\w+)":`)
	value := regexp.MustCompile(`"otep:(disp:\w+)"`)
	address := regexp.MustCompile(`/api/otep-guide/vocab#([\w:]+)"`)
	used := map[string]map[string]bool{}
	p := projector()
	lists := map[string]bool{}
	for _, tl := range append(journeys(), everything()) {
		for _, f := range Formats() {
			raw := string(encode(t, p.Document(f, tl, answered)))
			for _, re := range []*regexp.Regexp{member, value, address} {
				for _, m := range re.FindAllStringSubmatch(raw, -1) {
					if used[m[1]] == nil {
						used[m[1]] = map[string]bool{}
					}
					used[m[1]][f.Name] = true
				}
			}
			for _, m := range regexp.MustCompile(`/api/otep-guide/code-lists/OtepEventCode#(\w+)"`).FindAllStringSubmatch(raw, -1) {
				lists[m[1]] = true
			}
		}
	}
	told := map[string]map[string]bool{}
	for _, term := range Terms() {
		told[term.Name] = map[string]bool{}
		for _, f := range term.Formats {
			told[term.Name][f] = true
		}
	}
	require.Equal(t, used, told)
	require.Equal(t, slices.Sorted(maps.Keys(lists)), OwnEventCodes())
}
