package page

import (
	"context"
	"fmt"
	"html/template"

	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud/page/stream"
)

// navCount is what waits behind an entry of the navigation.
type navCount struct {
	Section string // of live pages
	Text    string // "" for nothing
}

// countWaiting counts what waits behind the entries of the navigation that a visitor has, by
// their addresses.
func countWaiting(c context.Context, p *kit, ctx *fasthttp.RequestCtx, v visitor) (map[string]navCount, error) {
	out := map[string]navCount{}
	for _, x := range []struct {
		path, section, operation, member, more string
		in                                     map[string]any
		shown                                  bool
	}{
		{workPath, "n-work", "work_items.list", "count", "more", map[string]any{"limit": 1}, true},
		{approvalsPath, "n-approvals", "approvals.list", "total", "total_is_lower_bound", map[string]any{"per_page": 1}, p.cfg.Approvals != nil},
		{chatsPath, "n-messages", "order_chat.unread_count", "total", "", nil, p.cfg.Chats},
	} {
		if !x.shown || !p.mayAny(c, v, x.operation) {
			continue
		}
		answer, err := p.read(c, ctx, v, x.operation, x.in)
		if err != nil {
			if _, _, known := (nounPages{p}).explain(v.Lang, err); known {
				continue
			}
			return nil, fmt.Errorf("count for the navigation: %w", err)
		}
		text := plainText(answer[x.member])
		if text == "0" {
			text = ""
		} else if answer[x.more] == true {
			text += "+"
		}
		out[x.path] = navCount{x.section, text}
	}
	return out, nil
}

// counted adds what waits to the navigation. Without it the navigation is as it is.
func countAreas(c context.Context, p *kit, ctx *fasthttp.RequestCtx, v visitor) []navArea {
	areas := p.navigation(c, v)
	counts, err := countWaiting(c, p, ctx, v)
	if err != nil {
		p.log.Error("count what waits", "err", err)
		return areas
	}
	for i := range areas {
		for k := range areas[i].Links {
			l := &areas[i].Links[k]
			l.Count, l.Counts = counts[l.Path], counts[l.Path].Section != ""
		}
	}
	return areas
}

// countSections are the counts as sections.
func countSections(data any) (out []stream.Section, err error) {
	counts, _ := data.(map[string]navCount)
	for _, path := range []string{workPath, approvalsPath, chatsPath} {
		if x, ok := counts[path]; ok {
			out = append(out, stream.Section{Name: x.Section, HTML: template.HTMLEscapeString(x.Text)})
		}
	}
	return out, nil
}
