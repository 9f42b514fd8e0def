package tracking

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
	"strings"
	"time"

	"github.com/postern-io/postern/cloud"
)

// FeedStore is what the feed of changes needs of the database.
type FeedStore interface {
	FeedPage(ctx context.Context, b cloud.BusinessID, after cloud.FeedPosition, limit int) (cloud.FeedPage, error)
	FeedEnd(ctx context.Context, b cloud.BusinessID) (cloud.FeedPosition, error)
	PruneFeed(ctx context.Context, after int64, before time.Time, step int) (last int64, more bool, err error)
}

// ChangesInput asks for changes of timelines behind a cursor. With the media type of event
// streams in Accept they come as they are recorded, until the caller leaves.
type ChangesInput struct {
	After       string `query:"after" doc:"Cursor of the last change that was read, or next of the last answer; without it the oldest change that is kept is the first"`
	Limit       *int   `query:"limit" min:"1" max:"1000" doc:"Most changes of an answer; 100 when absent"`
	Wait        *int   `query:"wait" min:"0" max:"30" doc:"Seconds to wait for a change where there is none; 0 when absent"`
	LastEventID string `header:"Last-Event-ID" doc:"Of event streams: in place of after, as browsers send it when they connect again"`
	Accept      string `header:"Accept"`
}

// ChangesOutput is a page of changes, oldest first. Next goes on behind them, also where
// there were none.
type ChangesOutput struct {
	Result  bool     `json:"result"`
	Changes []Change `json:"changes"`
	Next    string   `json:"next" doc:"For after of the next call"`
	More    bool     `json:"more" doc:"Whether there are more changes at once"`

	Live *Following `json:"-"` // in place of a page
}

// Change is one change of a timeline, as its owners see it.
type Change struct {
	Cursor        string            `json:"cursor" doc:"For after of a call that goes on behind this change"`
	Kind          cloud.FeedKind    `json:"kind" enum:"event.recorded,event.reported,event.withdrawn,event.corrected,estimate.changed,container.bound,container.unbound,alias.added"`
	RecordedAt    string            `json:"recorded_at" format:"date-time"`
	Number        string            `json:"tracking_number"`
	PackageNumber *string           `json:"package_tracking_number" doc:"Of the package that the event is about; null where it is about all of the order"`
	Event         *ShownEvent       `json:"event" doc:"As in a timeline; withdrawn says how it was taken back; null where the kind is about no event"`
	Estimate      string            `json:"estimated_delivery_at,omitempty" doc:"New estimate of estimate.changed"`
	Container     cloud.ContainerID `json:"container_id,omitempty" doc:"Of container.bound and container.unbound"`
	Alias         *cloud.FeedAlias  `json:"alias,omitempty" doc:"Of alias.added: the number by which others know the parcel"`

	text []byte // JSON of the change, when it is made already
}

// AppendJSON appends the answer as encoding/json writes it, with nothing escaped for HTML.
func (o ChangesOutput) AppendJSON(b []byte) ([]byte, error) {
	b = append(b, `{"result":true,"changes":[`...)
	for i := range o.Changes {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, o.Changes[i].text...)
	}
	b = append(b, `],"next":"`+o.Next+`","more":`...) // cursors need no escapes
	if o.More {
		return append(b, "true}"...), nil
	}
	return append(b, "false}"...), nil
}

// EventStream is the media type of changes that come as they are recorded.
const EventStream = "text/event-stream"

// MaxWait is how long a call may wait for a change.
const MaxWait = 30 * time.Second

const (
	codeExpired  = "CURSOR_EXPIRED"
	defaultLimit = 100
)

// Changes gives changes of the parcels that the caller owns. It may give fewer than there are,
// and still have more behind them. Errors: OTEP_CREDENTIALS_REQUIRED, OTEP_PROVIDER_FORBIDDEN,
// OTEP_INVALID_REQUEST, CURSOR_EXPIRED, RATE_LIMITED.
func (s *Service) Changes(ctx context.Context, c cloud.Caller, in ChangesInput) (ChangesOutput, error) {
	b, err := feedOf(c)
	if err != nil {
		return ChangesOutput{}, err
	}
	live, field, cursor := strings.Contains(strings.ToLower(in.Accept), EventStream), "after", in.After
	if live && in.LastEventID != "" {
		field, cursor = "Last-Event-ID", in.LastEventID
	}
	r := feedReader{s: s, c: c, business: b}
	if cursor != "" {
		if r.at, err = parseCursor(b, field, cursor, time.Now()); err != nil {
			return ChangesOutput{}, err
		}
	}
	if live {
		leave, err := s.feed.enter(c.Account.ID)
		if err != nil {
			return ChangesOutput{}, err
		}
		return ChangesOutput{Live: newFollowing(r, leave)}, nil
	}
	limit, wait := defaultLimit, time.Duration(0)
	if in.Limit != nil {
		limit = *in.Limit
	}
	if in.Wait != nil {
		wait = time.Duration(*in.Wait) * time.Second
	}
	return r.page(ctx, limit, wait)
}

// feedOf is the business whose changes a caller may read, as far as it owns their parcels.
func feedOf(c cloud.Caller) (b cloud.BusinessID, err error) {
	switch {
	case c.Anonymous():
		return 0, cloud.E(cloud.Unauthenticated, codeCredentials)
	case c.Account.Type == cloud.ProviderType && c.Provider.ID != 0:
		b = c.Provider.BusinessID
	case c.Account.Type.IsStaff(), c.Account.Type == cloud.Customer:
		b = c.Account.BusinessID
	}
	if b == 0 {
		err = cloud.E(cloud.Forbidden, codeForbidden)
	}
	return b, err
}

// feedReader reads the changes of a caller's parcels one behind the other. One goroutine uses it.
type feedReader struct {
	s        *Service
	c        cloud.Caller
	business cloud.BusinessID
	at       cloud.FeedPosition
	seen     time.Time // all that was recorded before is at or before the position
	waits    bool      // for changes that come: those in memory are enough
}

func (r *feedReader) cursor() string { return cursorText(r.business, r.at, r.seen) }

// page reads a page. Where there is nothing it waits for a change.
func (r *feedReader) page(ctx context.Context, limit int, wait time.Duration) (ChangesOutput, error) {
	r.waits = wait > 0
	found, end, err := r.next(ctx, limit)
	if err == nil && len(found) == 0 && end && wait > 0 {
		found, end, err = r.wait(ctx, limit, wait)
	}
	if err != nil {
		return ChangesOutput{}, err
	}
	out := ChangesOutput{Result: true, Changes: make([]Change, 0, len(found)), Next: r.cursor(), More: !end}
	for _, x := range found {
		out.Changes = append(out.Changes, x.inLanguage(r.c.Language))
	}
	return out, nil
}

// wait is next once there is something, or after some time.
func (r *feedReader) wait(ctx context.Context, limit int, patience time.Duration) (found []*feedEntry, end bool, err error) {
	leave, err := r.s.feed.enter(r.c.Account.ID)
	if err != nil {
		return nil, false, err
	}
	defer leave()
	late := time.NewTimer(patience)
	defer late.Stop()
	for {
		moved, release, err := r.s.feed.follow(ctx, r.business, r.at)
		if err != nil {
			return nil, false, err
		}
		select {
		case <-moved:
		case <-late.C:
			release()
			return nil, true, nil
		case <-r.s.feed.ended:
			release()
			return nil, true, nil
		case <-ctx.Done():
			release()
			return nil, false, context.Cause(ctx)
		}
		found, end, err = r.next(ctx, limit)
		release()
		if err != nil || len(found) > 0 || !end {
			return found, end, err
		}
		select { // of others; there are more of them soon
		case <-time.After(feedPace):
		case <-ctx.Done():
		}
	}
}

const (
	feedScan   = 500 // changes at once, of which the caller may own few
	feedRounds = 20  // reads, then a page ends early
)

// next reads at most limit changes behind the position and moves that. end reports that there
// was none behind them.
func (r *feedReader) next(ctx context.Context, limit int) (out []*feedEntry, end bool, err error) {
	size := limit + 1
	for range feedRounds {
		asked := time.Now()
		list, end, err := r.read(ctx, size)
		if err != nil {
			return nil, false, err
		}
		for i, x := range list {
			r.at, r.seen = x.Position, x.RecordedAt
			if !x.isWhole() || asked.Sub(x.RecordedAt) > cloud.FeedLife || !r.c.Owns(x.Shipment) {
				continue
			}
			if out = append(out, x); len(out) == limit {
				return out, end && i+1 == len(list), nil
			}
		}
		if end {
			r.seen = asked
			return out, true, nil
		}
		size = feedScan
	}
	return out, false, nil
}

// read reads changes of all parcels of the business.
func (r *feedReader) read(ctx context.Context, size int) (list []*feedEntry, end bool, err error) {
	list, end, known := r.s.feed.recent(r.business, r.at, size)
	if known && (len(list) > 0 || r.waits) {
		return list, end, nil
	}
	p, err := r.s.store.FeedPage(ctx, r.business, r.at, size)
	return entriesOf(r.business, p.Changes), p.End, err
}

// A cursor is a position with the business whose it is and the time up to which all is before
// it, in variable-length integers behind the version of the form, and a check sum.
const cursorForm = 1

func cursorText(b cloud.BusinessID, p cloud.FeedPosition, seen time.Time) string {
	raw := make([]byte, 0, 40)
	for _, n := range []int64{cursorForm, int64(b), p.Epoch, p.Transaction, p.N, seen.UnixMilli()} {
		raw = binary.AppendVarint(raw, n)
	}
	return base64.RawURLEncoding.EncodeToString(binary.BigEndian.AppendUint32(raw, crc32.ChecksumIEEE(raw)))
}

// parseCursor is the position of a cursor that was given as a member of the input. Errors:
// OTEP_INVALID_REQUEST for one that is none, or of another business; CURSOR_EXPIRED.
func parseCursor(b cloud.BusinessID, field, text string, now time.Time) (p cloud.FeedPosition, err error) {
	raw, err := base64.RawURLEncoding.DecodeString(text)
	n := len(raw) - crc32.Size
	if err != nil || n < 0 || binary.BigEndian.Uint32(raw[n:]) != crc32.ChecksumIEEE(raw[:n]) {
		return p, invalid(field, wrongCursor)
	}
	var v [6]int64
	rest := raw[:n]
	for i := range v {
		var used int
		if v[i], used = binary.Varint(rest); used <= 0 {
			return p, invalid(field, wrongCursor)
		}
		rest = rest[used:]
	}
	if len(rest) > 0 || v[0] != cursorForm || v[1] != int64(b) {
		return p, invalid(field, wrongCursor)
	}
	if now.Sub(time.UnixMilli(v[5])) > cloud.FeedLife {
		return p, cloud.E(cloud.NotFound, codeExpired)
	}
	return cloud.FeedPosition{Epoch: v[2], Transaction: v[3], N: v[4]}, nil
}

const wrongCursor = "Use the cursor of a change, or next of an answer, or leave it out to begin with the oldest change that is kept."
