package mcp

import (
	"bytes"
	"context"
	"encoding/base64"
	"slices"
	"sync"
)

// view is what callers with one Set see.
type view struct {
	visible []int  // of Server.tools
	hash    []byte // of all definitions, for cursors
	first   []byte // members of the first page
}

// views keeps what was prepared. When it is full it begins anew, since anybody
// may choose scopes in a header.
type views struct {
	mu   sync.Mutex
	list map[viewKey]*view
}

type viewKey struct {
	all bool
	set string
}

const maxViews = 64

func newViews() *views { return &views{list: map[viewKey]*view{}} }

// view prepares what a caller sees, once per Set.
func (s *Server) view(c *Caller) *view {
	key := viewKey{all: c.Sees == nil}
	if !key.all {
		key.set = c.Set
	}
	s.views.mu.Lock()
	v := s.views.list[key]
	s.views.mu.Unlock()
	if v != nil {
		return v
	}
	v = &view{}
	var all []byte
	for i := range s.tools {
		if c.Sees == nil || c.Sees(s.tools[i].Name) {
			v.visible = append(v.visible, i)
			all = append(all, s.tools[i].definition...)
		}
	}
	v.hash = digest(all)
	v.first = s.page(v, 0)
	s.views.mu.Lock()
	defer s.views.mu.Unlock()
	if len(s.views.list) >= maxViews {
		clear(s.views.list)
	}
	s.views.list[key] = v
	return v
}

// page writes the tools from a place on, and where to go on.
func (s *Server) page(v *view, from int) []byte {
	to := min(len(v.visible), from+s.cfg.PageSize)
	b := []byte(`"tools":[`)
	for i, t := range v.visible[from:to] {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, s.tools[t].definition...)
	}
	b = append(b, ']')
	if to == len(v.visible) {
		return b
	}
	b = append(b, `,"nextCursor":`...)
	return quote(b, v.cursor(s.tools[v.visible[to-1]].Name))
}

// cursor names the last tool that was listed. It holds for one set of
// definitions on every node that has them.
func (v *view) cursor(last string) string {
	return base64.RawURLEncoding.EncodeToString(append(slices.Clip(v.hash), last...))
}

// list is tools/list.
func (s *Server) list(_ context.Context, j *job) answer {
	v := s.view(&j.caller)
	members, ok := v.first, true
	if raw := j.params.get("cursor"); raw != nil {
		members, ok = s.after(v, raw)
	}
	if !ok {
		return refused(j.id, language(j.request.Language).refusal(0, CodeInvalidParams, codeCursor))
	}
	return s.done(j, members, hold{300_000, "private"})
}

// after is the page behind a cursor.
func (s *Server) after(v *view, raw []byte) (members []byte, ok bool) {
	if !isText(raw) {
		return nil, false
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(string(unquote(raw)))
	if err != nil || !bytes.HasPrefix(b, v.hash) {
		return nil, false
	}
	last := string(b[len(v.hash):])
	i := slices.IndexFunc(v.visible, func(t int) bool { return s.tools[t].Name == last })
	if i < 0 || i == len(v.visible)-1 {
		return nil, false
	}
	return s.page(v, i+1), true
}
