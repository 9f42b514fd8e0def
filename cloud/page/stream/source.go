package stream

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Times of a source.
const (
	readTime = 10 * time.Second
	retry    = time.Second // after a read that failed
)

// source is what is read for all readers of a topic with the same rights. Hub.mu guards
// it.
type source struct {
	h     *Hub
	key   string
	list  []Want
	look  time.Duration
	pace  time.Duration
	views map[string]*view
	size  int // members

	data    any
	version int64 // of data; 0: nothing was read
	dirty   bool  // data is older than a change
	failed  bool  // the latest read did not work
	busy    bool  // a round runs
	again   bool  // and another is to follow
	last    time.Time
	round   *time.Timer // that is to come; nil: none
	again2  *time.Timer // look without a notice, or the end without readers
}

// view is how a source is shown to some of its readers.
type view struct {
	name     string // topic in events
	render   func(any) ([]Section, error)
	members  map[*member]bool
	version  int64 // of the data that sections show
	sections []kept
}

// kept is a section as it was sent.
type kept struct {
	Section
	hash   [32]byte
	number int64 // of the event that it changed with
}

// member is a reader of a view.
type member struct {
	r      *Reader
	topic  *Topic
	source *source
	view   *view
	since  int64 // what changed after that event is to be sent; -1: everything
	first  bool  // nothing was sent yet
	once   chan<- []kept
}

func (s *source) wants(subject any, kind string) bool {
	for _, w := range s.list {
		if w.Subject == subject && (w.Kinds == nil || always[kind] || slices.Contains(w.Kinds, kind)) {
			return true
		}
	}
	return false
}

// change says that what was read is old.
func (s *source) change() {
	s.dirty = true
	if s.size > 0 {
		s.schedule()
	}
}

// schedule has a round run as soon as the pace allows it.
func (s *source) schedule() {
	if s.busy {
		s.again = true
		return
	}
	if s.round != nil {
		return
	}
	wait := time.Duration(0)
	if s.dirty && s.version > 0 {
		wait = max(0, time.Until(s.last.Add(s.pace)))
	}
	if s.failed {
		wait = max(wait, retry)
	}
	s.round = time.AfterFunc(wait, s.run)
}

// rest sets the time of the next look, or of the end of a source without readers.
func (s *source) rest() {
	if s.again2 != nil {
		s.again2.Stop()
	}
	if s.size == 0 {
		s.again2 = time.AfterFunc(s.h.cfg.Linger, s.end)
		return
	}
	s.again2 = time.AfterFunc(s.look, func() {
		s.h.mu.Lock()
		defer s.h.mu.Unlock()
		s.change()
	})
}

// end forgets a source without readers.
func (s *source) end() {
	s.h.mu.Lock()
	defer s.h.mu.Unlock()
	if s.size > 0 || s.h.sources[s.key] != s {
		return
	}
	delete(s.h.sources, s.key)
	for _, w := range s.list {
		delete(s.h.index[w.Subject], s)
		if len(s.h.index[w.Subject]) == 0 {
			delete(s.h.index, w.Subject)
		}
	}
}

// run is one round: rights are checked, data that is old is read, and each view is
// rendered and handed out.
func (s *source) run() {
	h := s.h
	h.turns <- struct{}{}
	defer func() { <-h.turns }()
	h.mu.Lock()
	s.round = nil
	if s.busy || s.size == 0 {
		h.mu.Unlock()
		return
	}
	s.busy = true
	read := s.dirty || s.version == 0
	if read {
		s.dirty, s.last = false, time.Now()
	}
	data, members := s.data, s.members()
	h.mu.Unlock()

	data, made, err := s.makeSections(data, members, read)
	s.finish(data, made, read, err)
}

// makeSections reads, where that is asked for, and renders. A panic of a page is an error of its
// topic.
func (s *source) makeSections(had any, members []*member, read bool) (data any, made map[*view][]kept, err error) {
	defer func() {
		if e := recover(); e != nil {
			err = fmt.Errorf("panic: %v", e)
		}
	}()
	if data = had; read {
		if data, err = s.read(members); err != nil {
			return nil, nil, err
		}
	}
	made, err = s.render(data, read)
	return data, made, err
}

func (s *source) members() (out []*member) {
	for _, v := range s.views {
		for m := range v.members {
			out = append(out, m)
		}
	}
	return out
}

// read checks the readers' rights and reads with those of one of them.
func (s *source) read(members []*member) (any, error) {
	ctx, cancel := context.WithTimeout(context.Background(), readTime)
	defer cancel()
	checked := map[string]error{} // by session
	var one *member
	for _, m := range members {
		if m.topic.Check == nil {
			one = m
			continue
		}
		err, known := checked[m.r.session]
		if !known || m.r.session == "" {
			err = m.topic.Check(ctx)
			checked[m.r.session] = err
		}
		switch {
		case errors.Is(err, ErrEnded):
			s.h.drop(m.r, &s.h.stats.Ended)
		case err != nil:
			return nil, err
		default:
			one = m
		}
	}
	if one == nil {
		return nil, ErrEnded
	}
	s.h.mu.Lock()
	s.h.stats.Reads++
	s.h.mu.Unlock()
	data, err := one.topic.Read(ctx)
	if errors.Is(err, ErrEnded) { // what was shown is gone
		for _, m := range members {
			s.h.drop(m.r, &s.h.stats.Ended)
		}
		return nil, err
	}
	if err == nil {
		for _, m := range members {
			if m.topic.Sees != nil && !m.topic.Sees(data) {
				s.h.drop(m.r, &s.h.stats.Ended)
			}
		}
	}
	return data, err
}

// render makes the sections of the views that do not show the data yet.
func (s *source) render(data any, fresh bool) (map[*view][]kept, error) {
	s.h.mu.Lock()
	var todo []*view
	for _, v := range s.views {
		if len(v.members) > 0 && (fresh || v.version != s.version) {
			todo = append(todo, v)
		}
	}
	s.h.stats.Renders += len(todo)
	s.h.mu.Unlock()
	made := map[*view][]kept{}
	for _, v := range todo {
		list, err := v.render(data)
		if err != nil {
			return nil, err
		}
		out := make([]kept, len(list))
		for i, x := range list {
			compared := x.HTML
			if x.Shape != "" {
				compared = "shape " + x.Shape
			}
			out[i] = kept{Section: x, hash: sha256.Sum256([]byte(compared))}
		}
		made[v] = out
	}
	return made, nil
}

// finish takes over what a round made and hands it out.
func (s *source) finish(data any, made map[*view][]kept, read bool, err error) {
	h := s.h
	h.mu.Lock()
	defer h.mu.Unlock()
	s.busy = false
	if err != nil {
		s.fail(err)
	} else {
		s.recover()
		if read {
			s.data = data
			s.version++
		}
		s.hand(made)
	}
	if again := s.again || s.dirty || s.waits(made); s.size > 0 && again {
		s.again = false
		s.schedule()
	}
	s.rest()
}

// waits reports whether a reader that came during the round got nothing.
func (s *source) waits(made map[*view][]kept) bool {
	for _, v := range s.views {
		if len(v.members) > 0 && v.version != s.version {
			return true
		}
	}
	return false
}

func (s *source) fail(err error) {
	s.dirty = true
	if !errors.Is(err, ErrEnded) {
		s.h.cfg.Log.Error("read for live pages", "topic", s.key, "err", err)
	}
	if s.failed {
		return
	}
	s.failed = true
	for _, v := range s.views {
		for m := range v.members {
			m.r.failing.Add(1)
		}
	}
}

func (s *source) recover() {
	if !s.failed {
		return
	}
	s.failed = false
	for _, v := range s.views {
		for m := range v.members {
			m.r.failing.Add(-1)
		}
	}
}

// hand gives readers what changed for them. One slice of bytes goes to all who are at
// the same point.
func (s *source) hand(made map[*view][]kept) {
	h := s.h
	now := time.Now()
	for _, v := range s.views {
		if list, ok := made[v]; ok {
			v.version = s.version
			v.takeSections(list, h)
		}
		if v.version != s.version {
			continue // it came during the round
		}
		texts := map[int64][]byte{}
		for m := range v.members {
			since := m.since
			if m.first && m.topic.Sees != nil && !m.topic.Sees(s.data) { // it came after the read
				h.dropLocked(m.r, &h.stats.Ended)
				continue
			}
			if m.once != nil {
				m.once <- v.sections
				m.once = nil
				continue
			}
			text, ok := texts[since]
			if !ok {
				text = v.event(h, since, m.topic.Name, now)
				texts[since] = text
			}
			m.since, m.first = h.number, false
			if text != nil {
				h.stats.Events++
				if !m.r.push(text, h.cfg.Behind) {
					h.dropLocked(m.r, &h.stats.Dropped)
				}
			}
		}
	}
}

// takeSections compares new sections with those before and numbers what changed.
func (v *view) takeSections(list []kept, h *Hub) {
	changed := false
	for i := range list {
		k := slices.IndexFunc(v.sections, func(x kept) bool { return x.Name == list[i].Name })
		if k >= 0 && v.sections[k].hash == list[i].hash {
			list[i].number = v.sections[k].number
			continue
		}
		if !changed {
			changed = true
			h.number++
		}
		list[i].number = h.number
	}
	v.sections = list
}

// event is what a reader gets who knows all up to a number; nil: nothing.
func (v *view) event(h *Hub, since int64, topic string, now time.Time) []byte {
	var b bytes.Buffer
	b.WriteString("id: " + h.id(h.number) + "\nevent: live\ndata: ")
	if !writeEvent(&b, topic, now, v.sections, since) {
		return nil
	}
	b.WriteByte('\n')
	return b.Bytes()
}

// writeEvent writes the event of a topic as one line of JSON. It reports false when
// there is nothing to say.
func writeEvent(b *bytes.Buffer, topic string, now time.Time, list []kept, since int64) bool {
	sections, any := orderedSections{}, false
	for _, x := range list {
		if x.number > since && !slices.ContainsFunc(list, func(o kept) bool { return x.Of != "" && o.Name == x.Of && o.number > since }) {
			sections, any = append(sections, x.Section), true
		}
	}
	if !any {
		return false
	}
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	return e.Encode(struct { // ends the line
		Topic    string          `json:"topic"`
		At       string          `json:"at"`
		Sections orderedSections `json:"sections"`
	}{topic, now.UTC().Format(time.RFC3339), sections}) == nil
}

// orderedSections are an object of JSON in their order, which a page takes them in.
type orderedSections []Section

// MarshalJSON writes {name: html}.
func (o orderedSections) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	b.WriteByte('{')
	for i, x := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		for k, text := range []string{x.Name, x.HTML} {
			if k > 0 {
				b.WriteByte(':')
			}
			if err := e.Encode(text); err != nil {
				return nil, err
			}
			b.Truncate(b.Len() - 1) // the end of the line
		}
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}
