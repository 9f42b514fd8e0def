package page_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud/page"
)

// settled are lists that no form begins: they say what happened, or what others
// set up.
var settled = strings.Fields("work audit exceptions operator-passes features apps programs platform-audit health invitations passes")

// unserved are nouns of services that the pages of these tests are made without.
var unserved = strings.Fields("apps chat-settings")

var onward = regexp.MustCompile(`(?s)<div class="blank">.*?</div>`)

// Every empty list of a business that has just begun says what will stand there and leads
// to where it begins; the page that it leads to is there.
func TestEmptyListsLeadOn(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.cookies = map[string]string{"postern_session": r.w.OtherAdmin}
	home := r.do("GET", "/console", nil)
	require.Equal(t, 200, home.status)
	empty := 0
	seen := map[string]bool{}
	for _, m := range regexp.MustCompile(`href="(/console/[a-z-]+)"`).FindAllStringSubmatch(home.body, -1) {
		path := strings.TrimPrefix(m[1], page.ConsolePath+"/")
		if seen[path] || slices.Contains(unserved, path) {
			continue
		}
		seen[path] = true
		g := r.do("GET", m[1], nil)
		if assert.Equal(t, 200, g.status, m[1]); g.status != 200 {
			continue
		}
		blank := onward.FindString(g.body)
		if blank == "" {
			continue
		}
		empty++
		require.Contains(t, blank, "<p>", "%s says nothing", path)
		links := regexp.MustCompile(`href="([^"]+)"`).FindAllStringSubmatch(blank, -1)
		if len(links) == 0 {
			assert.True(t, slices.Contains(settled, path), "the empty list %s leads nowhere: %s", path, blank)
		}
		for _, l := range links {
			require.Equal(t, 200, r.do("GET", l[1], nil).status, "%s leads to %s", path, l[1])
		}
	}
	require.Greater(t, empty, 8, "empty lists of %v", seen)
}
