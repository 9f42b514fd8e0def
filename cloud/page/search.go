package page

import (
	"context"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/search"
)

const (
	findPath    = ConsolePath + "/search"
	maxFind     = 120 // characters that are searched for
	maxFindLong = "20"
)

// findPage is what a search found.
type findPage struct {
	workFrame
	Text   string
	Asked  bool // there is something to search for
	Groups []findGroup
}

// findGroup is what a search found of one noun.
type findGroup struct {
	Noun *catalog.Noun
	Name string // of the noun, in words
	Hits []findHit
	More string // address that shows more of it; "" for none
}

type findHit struct {
	To, Title, Detail string
	State             shown
	Exact             bool
}

// findRecords searches all records. An exact hit that is the only one leads to its page.
func (p drawnPages) findRecords(ctx *fasthttp.RequestCtx) {
	c, cancel := context.WithTimeout(context.Background(), readTime)
	defer cancel()
	v, ok := p.worker(c, ctx)
	if !ok {
		return
	}
	if err := p.cfg.Pipeline.May(c, p.cfg.Catalog.Find("search.find"), v.c); err != nil {
		p.refused(ctx, v, err)
		return
	}
	args := ctx.QueryArgs()
	page := findPage{workFrame: p.work(ctx, v, v.T("search.title")), Text: strings.Join(strings.Fields(strings.ToValidUTF8(string(args.Peek("q")), "")), " ")}
	page.Desk.Find, page.Query = page.Text, "q="+url.QueryEscape(page.Text)
	if n := utf8.RuneCountInString(page.Text); n < 2 || n > maxFind {
		p.show(ctx, fasthttp.StatusOK, "search.html", page)
		return
	}
	page.Asked = true
	in := map[string]any{"query": page.Text}
	long := args.Has("all")
	if long {
		in["limit"] = maxFindLong
	}
	out, err := run[search.Output](c, ctx, p.kit, v, "search.find", in)
	if err != nil {
		problem, _, ok := p.explain(v.Lang, err)
		if !ok {
			p.trouble(ctx, err)
			return
		}
		page.Problem = problem
		p.show(ctx, fasthttp.StatusOK, "search.html", page)
		return
	}
	exact := 0
	to := ""
	for _, g := range out.Groups {
		n := p.cfg.Catalog.Noun(g.Noun)
		if n == nil {
			continue
		}
		group := findGroup{Noun: n, Name: v.T("noun." + n.Name)}
		for _, h := range g.Hits {
			hit := findHit{To: recordAddress(n, map[string]any{n.ID: h.ID}), Title: outside(h.Title, maxValue), Detail: outside(h.Detail, maxValue), Exact: h.Exact}
			if h.Door != "" {
				hit.To, hit.Title = hit.To+"#door-"+url.PathEscape(h.Door), hit.Title+" · "+v.T("cab.door", outside(h.DoorName, maxValue))
			}
			if h.State != "" {
				hit.State = stateShown(v.frame, n.States, h.State)
			}
			if h.Exact {
				exact, to = exact+1, hit.To
			}
			group.Hits = append(group.Hits, hit)
		}
		if g.More && !long {
			group.More = findPath + "?all=1&q=" + url.QueryEscape(page.Text)
		}
		page.Groups = append(page.Groups, group)
	}
	if exact == 1 && !long {
		seeOther(ctx, to)
		return
	}
	p.show(ctx, fasthttp.StatusOK, "search.html", page)
}
