package stream_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/page/stream"
)

// shelf is what topics of these tests read: a text for each business.
type shelf struct {
	mu    sync.Mutex
	texts map[cloud.BusinessID]string
	ended map[string]bool // sessions
	down  error
}

func newShelf() *shelf { return &shelf{texts: map[cloud.BusinessID]string{}, ended: map[string]bool{}} }

func (s *shelf) set(b cloud.BusinessID, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.texts[b] = text
}

// end ends the rights of a session.
func (s *shelf) end(session string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended[session] = true
}

// board is the topic of a business for a session, in a language.
func (s *shelf) board(b cloud.BusinessID, session, lang string) stream.Topic {
	name := fmt.Sprintf("board:%d", b)
	return stream.Topic{Name: name, Key: name, View: lang, Wants: []stream.Want{{Subject: cloud.Touch{Business: b}, Kinds: []string{"Orders", "Doors"}}, {Subject: cloud.Touch{Device: 88}}},
		Read: func(context.Context) (any, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.texts[b], s.down
		},
		Render: func(data any) ([]stream.Section, error) {
			return []stream.Section{{Name: "head", HTML: "<h1>" + lang + "</h1>"}, {Name: "body", HTML: data.(string)}}, nil
		},
		Check: func(context.Context) error {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.ended[session] {
				return stream.ErrEnded
			}
			return nil
		}}
}

// browser is a reader with what it got.
type browser struct {
	r   *stream.Reader
	mu  sync.Mutex
	got bytes.Buffer
	err chan error
}

func (b *browser) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.got.Write(p)
}

// text is what came since it was last asked.
func (b *browser) text() string {
	synctest.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	out := b.got.String()
	b.got.Reset()
	return out
}

func follow(t *testing.T, h *stream.Hub, session, since string, topics ...stream.Topic) *browser {
	t.Helper()
	r, err := h.Enter(session, 0, since, topics)
	require.NoError(t, err)
	b := &browser{r: r, err: make(chan error, 1)}
	go func() { b.err <- r.Run(b, nil, nil) }()
	t.Cleanup(r.Leave)
	return b
}

func changed(h *stream.Hub, t cloud.Touch) {
	h.Committed([]cloud.Touch{t})
	synctest.Wait()
}

var orders = cloud.Touch{Kind: "Orders", Business: 42}

// However many look at a topic, a change is read once and rendered once for each
// language, and a change of another business or of another kind not at all.
func TestOneReadForAllReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, s := stream.New(stream.Config{Each: 1000}), newShelf()
		s.set(42, "old")
		var all []*browser
		for i := range 60 {
			all = append(all, follow(t, h, fmt.Sprint("s", i), "", s.board(42, fmt.Sprint("s", i), []string{"en", "de", "fr"}[i%3])))
		}
		other := follow(t, h, "other", "", s.board(43, "other", "en"))
		for _, b := range append(all, other) {
			require.Contains(t, b.text(), `"head":"<h1>`)
		}
		before := h.Stats()
		require.Equal(t, 2, before.Sources)
		require.Equal(t, 61, before.Readers)
		time.Sleep(time.Second)
		s.set(42, "new")
		changed(h, orders)
		for _, b := range all {
			text := b.text()
			require.Contains(t, text, `"sections":{"body":"new"}`, "what stayed as it was is not sent")
			require.Contains(t, text, "id: "+strings.Split(h.ID(), "-")[0]+"-")
		}
		require.Empty(t, other.text())
		after := h.Stats()
		require.Equal(t, 1, after.Reads-before.Reads)
		require.Equal(t, 3, after.Renders-before.Renders)
		changed(h, cloud.Touch{Kind: "Orders", Business: 44})
		changed(h, cloud.Touch{Kind: "Routes", Business: 42})
		time.Sleep(time.Second)
		require.Equal(t, after, h.Stats(), "nobody shows that")
	})
}

// Many changes at once are read at most five times a second, and the last is not lost.
func TestReadsKeepTheirPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, s := stream.New(stream.Config{}), newShelf()
		b := follow(t, h, "s", "", s.board(42, "s", "en"))
		b.text()
		time.Sleep(time.Second)
		before := h.Stats().Reads
		for i := range 100 {
			s.set(42, fmt.Sprint("n", i))
			changed(h, orders)
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(200 * time.Millisecond)
		require.InDelta(t, 6, h.Stats().Reads-before, 1)
		require.Contains(t, b.text(), `"n99"`)
	})
}

// A change that names a cabinet alone reaches the business whose cabinet it is.
func TestACabinetBelongsToItsBusiness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		h := stream.New(stream.Config{Owner: func(_ context.Context, d cloud.DeviceID) (cloud.BusinessID, error) {
			asked++
			return map[cloud.DeviceID]cloud.BusinessID{90: 42, 91: 43}[d], nil
		}})
		s := newShelf()
		changed(h, cloud.Touch{Kind: "Doors", Device: 90})
		require.Zero(t, asked, "nobody looks")
		b := follow(t, h, "s", "", s.board(42, "s", "en"))
		b.text()
		for _, d := range []cloud.DeviceID{90, 91, 91, 90} {
			time.Sleep(time.Second)
			s.set(42, fmt.Sprint("after ", d, time.Now()))
			changed(h, cloud.Touch{Kind: "Doors", Device: d})
			require.Equal(t, d == 90, strings.Contains(b.text(), "after"), d)
		}
		require.Equal(t, 2, asked)
	})
}

func TestAReaderThatIsBehindIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, s := stream.New(stream.Config{}), newShelf()
		slow, err := h.Enter("slow", 0, "", []stream.Topic{s.board(42, "slow", "en")})
		require.NoError(t, err)
		wall := make(chan struct{})
		ended := make(chan error, 1)
		go func() {
			ended <- slow.Run(writer(func(p []byte) (int, error) { <-wall; return len(p), nil }), nil, nil)
		}()
		quick := follow(t, h, "quick", "", s.board(42, "quick", "en"))
		for i := range 8 {
			time.Sleep(time.Second)
			s.set(42, strings.Repeat(fmt.Sprint(i), 10<<10))
			changed(h, orders)
			require.Equal(t, map[bool]int{true: 1, false: 0}[i >= 7], h.Stats().Dropped, "%d KB are waiting", 10*i)
			require.Contains(t, quick.text(), "live")
		}
		require.Equal(t, 1, h.Stats().Readers)
		close(wall)
		require.NoError(t, <-ended)
	})
}

type writer func([]byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }

// A right that ends takes the reader out before anything more is read for it, and the
// others go on.
func TestARightThatEndsEndsTheReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, s := stream.New(stream.Config{}), newShelf()
		out, in := follow(t, h, "out", "", s.board(42, "out", "en")), follow(t, h, "in", "", s.board(42, "in", "en"))
		out.text()
		in.text()
		s.end("out")
		s.set(42, "secret")
		time.Sleep(time.Second)
		changed(h, orders)
		require.NotContains(t, out.text(), "secret")
		require.NoError(t, <-out.err)
		require.Contains(t, in.text(), "secret")
		require.Equal(t, 1, h.Stats().Ended)
		// With nothing that changes, the next look ends it.
		s.end("in")
		time.Sleep(16 * time.Second)
		require.NotContains(t, in.text(), "data: {")
		require.NoError(t, <-in.err)
		before := h.Stats().Reads
		changed(h, orders)
		require.Equal(t, before, h.Stats().Reads, "nobody looks")
	})
}

// The rights of an account are checked as soon as they change.
func TestAChangedAccountIsCheckedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, s := stream.New(stream.Config{}), newShelf()
		r, err := h.Enter("s", 7, "", []stream.Topic{s.board(42, "s", "en")})
		require.NoError(t, err)
		b := &browser{r: r, err: make(chan error, 1)}
		go func() { b.err <- r.Run(b, nil, nil) }()
		b.text()
		time.Sleep(time.Second)
		s.end("s")
		changed(h, cloud.Touch{Kind: "Tokens", Account: 8})
		require.Equal(t, 1, h.Stats().Readers)
		changed(h, cloud.Touch{Kind: "Tokens", Account: 7})
		require.Zero(t, h.Stats().Readers)
		require.NoError(t, <-b.err)
	})
}

// Who comes back gets what changed meanwhile; an unknown number gets all.
func TestNumbers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, s := stream.New(stream.Config{}), newShelf()
		s.set(42, "one")
		b := follow(t, h, "s", "", s.board(42, "s", "en"))
		require.Contains(t, b.text(), `{"head":"<h1>en</h1>","body":"one"}`)
		known := h.ID()
		b.r.Leave()
		again := follow(t, h, "s", known, s.board(42, "s", "en"))
		require.Empty(t, again.text(), "there is nothing new")
		again.r.Leave()
		time.Sleep(time.Second)
		s.set(42, "two")
		changed(h, orders)
		require.Contains(t, follow(t, h, "s", known, s.board(42, "s", "en")).text(), `"sections":{"body":"two"}`)
		for _, unknown := range []string{"", "x", "0000-1", known + "x", strings.Split(known, "-")[0] + "--5"} {
			require.Contains(t, follow(t, h, "", unknown, s.board(42, "s", "en")).text(), `{"head":"<h1>en</h1>","body":"two"}`)
		}
		fresh := stream.New(stream.Config{})
		require.Contains(t, follow(t, fresh, "", known, s.board(42, "s", "en")).text(), `"head"`, "the number of another hub")
	})
}

func TestThereAreSoManyReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, s := stream.New(stream.Config{Most: 8}), newShelf()
		for range 5 {
			follow(t, h, "s", "", s.board(42, "s", "en"))
		}
		_, err := h.Enter("s", 0, "", nil)
		require.ErrorIs(t, err, stream.ErrFull, "of one session")
		for range 3 {
			follow(t, h, "", "", s.board(42, "s", "en"))
		}
		_, err = h.Enter("t", 0, "", nil)
		require.ErrorIs(t, err, stream.ErrFull, "of the node")
		got, err := h.Poll(t.Context(), []stream.Topic{s.board(42, "s", "en")})
		require.NoError(t, err)
		require.Equal(t, "head", got[0].Sections[0].Name, "who polls is answered")
		s.end("s")
		time.Sleep(20 * time.Second)
		_, err = h.Poll(t.Context(), []stream.Topic{s.board(42, "s", "en")})
		require.ErrorIs(t, err, stream.ErrEnded)
	})
}

// A poll of a source that nothing has changed reads nothing.
func TestPollsShareWhatWasRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, s := stream.New(stream.Config{}), newShelf()
		for range 20 {
			_, err := h.Poll(t.Context(), []stream.Topic{s.board(42, "s", "en")})
			require.NoError(t, err)
		}
		require.Equal(t, 1, h.Stats().Reads)
		changed(h, orders)
		_, err := h.Poll(t.Context(), []stream.Topic{s.board(42, "s", "en")})
		require.NoError(t, err)
		require.Equal(t, 2, h.Stats().Reads)
		time.Sleep(2 * time.Minute)
		require.Zero(t, h.Stats().Sources, "what no page shows is forgotten")
	})
}

// Silence is a heartbeat, and there is none while what is shown cannot be read.
func TestHeartbeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, s := stream.New(stream.Config{}), newShelf()
		b := follow(t, h, "s", "", s.board(42, "s", "en"))
		b.text()
		time.Sleep(9500 * time.Millisecond)
		require.Equal(t, 3, strings.Count(b.text(), "event: beat\ndata: "))
		s.mu.Lock()
		s.down = errors.New("the database is away")
		s.mu.Unlock()
		changed(h, orders)
		time.Sleep(10 * time.Second)
		require.Empty(t, b.text())
		s.mu.Lock()
		s.down = nil
		s.texts[42] = "back"
		s.mu.Unlock()
		time.Sleep(5 * time.Second)
		text := b.text()
		require.Contains(t, text, "back")
		require.Contains(t, text, "event: beat")
	})
}

// A page that panics when it is read is a topic that cannot be read, and nothing else.
func TestAPanicIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, s := stream.New(stream.Config{}), newShelf()
		bad := s.board(43, "s", "en")
		bad.Read = func(context.Context) (any, error) { panic("no such record") }
		b, good := follow(t, h, "s", "", bad), follow(t, h, "t", "", s.board(42, "t", "en"))
		require.Contains(t, good.text(), "head")
		time.Sleep(4 * time.Second)
		require.Empty(t, b.text())
		require.Contains(t, good.text(), "event: beat")
	})
}

// A section whose parts are sections changes when they are others, and is not sent
// together with them.
func TestPartsOfSections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := stream.New(stream.Config{})
		cabinets := []string{"a", "b"}
		topic := stream.Topic{Name: "n", Key: "k", Wants: []stream.Want{{Subject: cloud.Touch{Business: 42}}}, Read: func(context.Context) (any, error) { return append([]string(nil), cabinets...), nil },
			Render: func(data any) (out []stream.Section, err error) {
				all := data.([]string)
				shape := ""
				for _, x := range all {
					shape += x[:1]
				}
				out = append(out, stream.Section{Name: "all", HTML: strings.Join(all, " "), Shape: shape})
				for _, x := range all {
					out = append(out, stream.Section{Name: "part-" + x[:1], HTML: x, Of: "all"})
				}
				return out, nil
			}}
		b := follow(t, h, "", "", topic)
		require.Contains(t, b.text(), `"sections":{"all":"a b"}`)
		cabinets[1] = "b opened"
		time.Sleep(time.Second)
		changed(h, orders)
		require.Contains(t, b.text(), `"sections":{"part-b":"b opened"}`)
		cabinets = append(cabinets, "c")
		time.Sleep(time.Second)
		changed(h, orders)
		require.Contains(t, b.text(), `"sections":{"all":"a b opened c"}`)
		require.Contains(t, follow(t, h, "", "", topic).text(), `"sections":{"all":"a b opened c"}`)
	})
}

// A source whose last reader left is forgotten after a while, but not when another one came
// meanwhile and what is read for it takes longer than that.
func TestASourceStaysForAReaderThatComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, s := stream.New(stream.Config{}), newShelf()
		slow := s.board(42, "s", "en")
		read := slow.Read
		slow.Read = func(ctx context.Context) (any, error) {
			time.Sleep(5 * time.Second)
			return read(ctx)
		}
		s.set(42, "old")
		first := follow(t, h, "s", "", slow)
		time.Sleep(6 * time.Second)
		require.Contains(t, first.text(), `"body":"old"`)
		first.r.Leave()
		time.Sleep(59 * time.Second)
		changed(h, orders)
		second := follow(t, h, "s", "", slow)
		time.Sleep(6 * time.Second)
		require.Contains(t, second.text(), `"body":"old"`)
		require.Equal(t, 1, h.Stats().Sources)
		s.set(42, "new")
		changed(h, orders)
		time.Sleep(6 * time.Second)
		require.Contains(t, second.text(), `"body":"new"`)
		second.r.Leave()
		time.Sleep(2 * time.Minute)
		require.Zero(t, h.Stats().Sources)
	})
}
