package api_test

import (
	"html"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/internal/ring"
)

var (
	// unspoken is what pages show as it is: code, what a person wrote, and markup.
	unspoken = regexp.MustCompile(`(?s)<(script|style|pre|code|textarea)[^>]*>.*?</(script|style|pre|code|textarea)>|<bdi[^>]*>[^<]*</bdi>|<[^>]*>`)
	// rawName is a name of the interface or a key of words, and not a word of the language.
	rawName = regexp.MustCompile(`^(noun|verb|member|work|value|state|item|next|thing)\.[a-z_.]+$|^[a-z]{3,}([ _][a-z]+)*$`)
	// spoken are texts of the test's world that look like one.
	spoken = []string{"client_admin", "client_employee", "broker", "driver", "customer", "platform_admin"}
)

// Pages in another language hold no key of words, no name of a member or of a value.
func TestPagesHoldNoRawNames(t *testing.T) {
	ring.SkipUnlessCheck(t, "TestNounsHaveWords, of the catalogue")
	t.Parallel()
	x := newWorld(t)
	x.furnish()
	x.approval()
	x.exception()
	for _, n := range x.table.Nouns() {
		if n.Find != "" && n.List != "" {
			x.row(n.Find)
		}
	}
	d := newDesk(t, x)
	who, platform := x.signIn("admin", x.token(admin)), x.signIn("platform", x.token(cloud.PlatformAdmin))
	pages := map[string]person{"/console": who, "/mcp-approvals": who, "/console/reports": who}
	for _, n := range x.table.Nouns() {
		pages["/console/"+n.Path] = who
		if o := x.table.Find(n.List); o != nil && slices.Contains(o.Types, cloud.PlatformAdmin) {
			pages["/console/"+n.Path] = platform
		}
	}
	seen := map[string]bool{}
	for range 3 { // lists, records, their forms
		next := map[string]person{}
		for path, p := range pages {
			if seen[path] {
				continue
			}
			seen[path] = true
			query := "?lang=zh-Hant"
			if strings.Contains(path, "?") {
				query = "&lang=zh-Hant"
			}
			s := d.ask(p.session, path+query, nil)
			if s.status != 200 {
				continue
			}
			main := mainPart.FindString(s.body)
			for _, text := range strings.Split(unspoken.ReplaceAllString(main, "\n"), "\n") {
				if text = strings.TrimSpace(html.UnescapeString(text)); rawName.MatchString(text) && !slices.Contains(spoken, text) {
					assert.Fail(t, "a raw name", "%q at %s", text, path)
				}
			}
			for _, l := range links(main) {
				if l, _, _ = strings.Cut(l, "#"); strings.HasPrefix(l, "/console/") && !strings.Contains(l, ".csv") {
					next[l] = p
				}
			}
		}
		pages = next
	}
	require.Greater(t, len(seen), 200)
}
