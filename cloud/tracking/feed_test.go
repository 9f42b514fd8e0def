package tracking

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/protocol/otep"
)

// feedRows are changes in memory, with a count of the reads.
type feedRows struct {
	Store
	mu     sync.Mutex
	rows   []cloud.FeedChange
	hidden int // of the newest that are not readable yet
	reads  int
}

func (s *feedRows) FeedPage(_ context.Context, b cloud.BusinessID, after cloud.FeedPosition, limit int) (p cloud.FeedPage, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads++
	p.End = true
	for i, x := range s.rows {
		if x.Position.Compare(after) <= 0 || x.Shipment.BusinessID != b {
			continue
		}
		if i >= len(s.rows)-s.hidden {
			p.Pending = true
			break
		}
		if len(p.Changes) == limit {
			p.End = false
			break
		}
		p.Changes = append(p.Changes, x)
	}
	return p, nil
}

func (s *feedRows) FeedEnd(_ context.Context, b cloud.BusinessID) (p cloud.FeedPosition, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.rows[:max(0, len(s.rows)-s.hidden)] {
		if x.Shipment.BusinessID == b {
			p = x.Position
		}
	}
	return p, nil
}

// add commits changes of business 1, of the provider 17 where n is even.
func (s *feedRows) add(from, to int) *cloud.Changes {
	s.mu.Lock()
	defer s.mu.Unlock()
	for n := from; n < to; n++ {
		sh := cloud.Shipment{ID: cloud.ShipmentID(n + 1), BusinessID: 1, Number: fmt.Sprint("N", n), ProviderID: cloud.ProviderID(17 + n%2)}
		e := otep.Event{EventID: fmt.Sprint("e", n), StatusCode: "in_transit", OccurredAt: otep.Time{Time: time.Now()}, RecordedAt: otep.Time{Time: time.Now()}}
		s.rows = append(s.rows, cloud.FeedChange{Position: cloud.FeedPosition{Transaction: int64(n/3 + 1), N: int64(n + 1)}, Kind: cloud.EventRecorded, RecordedAt: time.Now(), Shipment: sh, Event: &e, Size: 200})
	}
	return &cloud.Changes{TrackingChanges: cloud.TrackingChanges{Events: []cloud.TimelineEvent{{BusinessID: 1}}}}
}

func (s *feedRows) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reads
}

var feedStaff = cloud.Caller{Account: cloud.Account{ID: 5, BusinessID: 1, Type: cloud.ClientAdmin}, Language: "en"}

// feedSink takes what a stream writes.
type feedSink struct {
	mu   sync.Mutex
	text bytes.Buffer
	slow time.Duration
}

func (w *feedSink) Write(b []byte) (int, error) {
	time.Sleep(w.slow)
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.Write(b)
}

// events are the ids of the events that came.
func (w *feedSink) events() (ids []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for line := range strings.SplitSeq(w.text.String(), "\n") {
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			var c Change
			if json.Unmarshal([]byte(data), &c) == nil {
				ids = append(ids, c.Event.EventID)
			}
		}
	}
	return ids
}

func feedIDs(from, to, step int) (ids []string) {
	for n := from; n < to; n += step {
		ids = append(ids, fmt.Sprint("e", n))
	}
	return ids
}

func followFeed(t *testing.T, s *Service, c cloud.Caller, w *feedSink, again func(context.Context) (cloud.Caller, error)) <-chan error {
	t.Helper()
	out, err := s.Changes(t.Context(), c, ChangesInput{Accept: EventStream})
	require.NoError(t, err)
	done := make(chan error, 1)
	if again == nil {
		again = func(context.Context) (cloud.Caller, error) { return c, nil }
	}
	go func() { done <- out.Live.Serve(t.Context(), w, again) }()
	return done
}

// However many follow a business, its changes are read for one of them. Each gets all, in
// order, soon.
func TestReadersShareReads(t *testing.T) {
	t.Parallel()
	reads := map[int]int{}
	for _, followers := range []int{1, 100} {
		synctest.Test(t, func(t *testing.T) {
			db := &feedRows{}
			s := New(db)
			defer s.EndFeed()
			var all []*feedSink
			var ended []<-chan error
			for i := range followers {
				c := feedStaff
				c.Account.ID += cloud.AccountID(i)
				w := &feedSink{}
				all, ended = append(all, w), append(ended, followFeed(t, s, c, w, nil))
			}
			synctest.Wait()
			before := db.count()
			for n := range 200 {
				s.Committed(db.add(5*n, 5*n+5))
				time.Sleep(5 * time.Millisecond)
			}
			time.Sleep(2 * feedPace)
			synctest.Wait()
			reads[followers] = db.count() - before
			for _, w := range all {
				require.Equal(t, feedIDs(0, 1000, 1), w.events())
			}
			s.EndFeed()
			for _, x := range ended {
				<-x
			}
		})
	}
	t.Log(reads)
	require.LessOrEqual(t, reads[100], reads[1]+5)
	require.LessOrEqual(t, reads[1], 80, "a read takes all that was committed meanwhile")
}

// A stream ends when its reader's rights end, at the next comment, and shows less when they
// become less. The comment has the cursor behind all that was looked at.
func TestAStreamHasTheRightsOfItsReader(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := &feedRows{}
		s := New(db)
		defer s.EndFeed()
		w, asked, refused := &feedSink{}, 0, errors.New("the token is no longer good")
		began := time.Now()
		ended := followFeed(t, s, feedStaff, w, func(context.Context) (cloud.Caller, error) {
			switch asked++; asked {
			case 1:
				return feedStaff, nil
			case 2:
				return cloud.Caller{Account: cloud.Account{ID: 6, BusinessID: 1, Type: cloud.ProviderType}, Provider: cloud.Provider{ID: 17, BusinessID: 1}}, nil
			}
			return cloud.Caller{}, refused
		})
		time.Sleep(20 * time.Second)
		s.Committed(db.add(0, 4))
		time.Sleep(15 * time.Second)
		s.Committed(db.add(4, 8))
		require.ErrorIs(t, <-ended, refused)
		require.Equal(t, 3*feedBeat, time.Since(began))
		require.Equal(t, []string{"e0", "e1", "e2", "e3", "e4", "e6"}, w.events())
		text := w.text.String()
		require.Equal(t, 2, strings.Count(text, "\n: "), "a comment every 15 s: %s", text)
		last := text[strings.LastIndex(text, "\n: "):]
		_, id, _ := strings.Cut(last, "\nid: ")
		id, _, _ = strings.Cut(id, "\n")
		at, err := parseCursor(1, "after", id, time.Now())
		require.NoError(t, err)
		require.Equal(t, cloud.FeedPosition{Transaction: 2, N: 4}, at)
	})
}

// A reader that is slower than what is kept in memory gets everything once, in order.
func TestAReaderMayFallBehind(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := &feedRows{}
		s := New(db)
		w, quick := &feedSink{slow: time.Second}, &feedSink{}
		a, b := followFeed(t, s, feedStaff, w, nil), followFeed(t, s, feedStaff, quick, nil)
		synctest.Wait()
		for n := range 60 {
			s.Committed(db.add(100*n, 100*n+100))
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(time.Minute)
		require.Equal(t, feedIDs(0, 6000, 1), w.events())
		require.Equal(t, feedIDs(0, 6000, 1), quick.events())
		s.feed.mu.Lock()
		require.LessOrEqual(t, len(s.feed.tails[1].kept), feedRecent)
		s.feed.mu.Unlock()
		s.EndFeed()
		<-a
		<-b
	})
}

// What an older transaction holds back comes soon after that ended, without a notice; and what
// was committed without a notice, as by another node, within a second.
func TestChangesComeWithoutANotice(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := &feedRows{}
		s := New(db)
		defer s.EndFeed()
		after := ""
		wait := func() time.Duration {
			began, limit := time.Now(), 20
			for {
				out, err := s.Changes(t.Context(), feedStaff, ChangesInput{After: after, Wait: &limit})
				require.NoError(t, err)
				after = out.Next
				if len(out.Changes) > 0 {
					return time.Since(began)
				}
			}
		}
		db.hidden = 1
		go func() {
			time.Sleep(time.Second)
			s.Committed(db.add(0, 1))
			time.Sleep(time.Second)
			db.mu.Lock()
			db.hidden = 0
			db.mu.Unlock()
		}()
		took := wait()
		require.GreaterOrEqual(t, took, 2*time.Second)
		require.Less(t, took, 2*time.Second+feedLook+feedPace)
		go func() {
			time.Sleep(3 * time.Second)
			db.add(1, 2)
		}()
		took = wait()
		require.GreaterOrEqual(t, took, 3*time.Second)
		require.Less(t, took, 4*time.Second)
		time.Sleep(2 * feedLinger)
		before := db.count()
		time.Sleep(time.Hour)
		require.Equal(t, before, db.count(), "without readers nothing is read")
	})
}

// A stream that is never served counts no more after a while: its connection was lost before.
func TestAStreamThatIsNotServedLapses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := New(&feedRows{})
		defer s.EndFeed()
		var last ChangesOutput
		for range feedFollowers {
			var err error
			last, err = s.Changes(t.Context(), feedStaff, ChangesInput{Accept: EventStream})
			require.NoError(t, err)
		}
		_, err := s.Changes(t.Context(), feedStaff, ChangesInput{Accept: EventStream})
		require.Equal(t, "RATE_LIMITED", cloud.Shown(err).Code)
		time.Sleep(feedBeat)
		synctest.Wait()
		require.Empty(t, s.feed.waiting)
		require.ErrorIs(t, last.Live.Serve(t.Context(), &feedSink{}, nil), io.EOF)
		require.Zero(t, s.feed.all)
	})
}

// Readers that wait are answered at once when the server stops, and those that come then.
func TestReadersGoWhenTheServerStops(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := New(&feedRows{})
		began, limit, got := time.Now(), 30, make(chan error, 1)
		wait := func() {
			out, err := s.Changes(t.Context(), feedStaff, ChangesInput{Wait: &limit})
			require.NotEmpty(t, out.Next)
			got <- err
		}
		go wait()
		time.Sleep(time.Second)
		s.EndFeed()
		require.NoError(t, <-got)
		wait()
		require.NoError(t, <-got)
		require.Equal(t, time.Second, time.Since(began))
	})
}

// A reader that owns few of many changes gets a page that ends early, and goes on.
func TestAPageLooksAtABoundedNumberOfChanges(t *testing.T) {
	t.Parallel()
	db := &feedRows{}
	db.add(0, 30_001)
	db.rows[30_000].Shipment.ProviderID = 99
	c := cloud.Caller{Account: cloud.Account{ID: 6, BusinessID: 1, Type: cloud.ProviderType}, Provider: cloud.Provider{ID: 99, BusinessID: 1}}
	var ids []string
	pages := 0
	for after, more := "", true; more; pages++ {
		db.reads = 0
		out, err := New(db).Changes(t.Context(), c, ChangesInput{After: after})
		require.NoError(t, err)
		require.LessOrEqual(t, db.reads, feedRounds)
		for _, x := range out.Changes {
			ids = append(ids, x.Event.EventID)
		}
		after, more = out.Next, out.More
	}
	require.Equal(t, []string{"e30000"}, ids)
	require.Equal(t, 4, pages)
}

func FuzzCursor(f *testing.F) {
	now := time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)
	f.Add(cursorText(42, cloud.FeedPosition{Epoch: 3, Transaction: 1 << 60, N: 9}, now))
	f.Add("")
	f.Add("AAAA")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := parseCursor(42, "after", text, now)
		if err != nil {
			require.Zero(t, p)
			return
		}
		again, err := parseCursor(42, "after", cursorText(42, p, now), now)
		require.NoError(t, err)
		require.Equal(t, p, again)
		_, err = parseCursor(43, "after", text, now)
		require.Error(t, err)
	})
}
