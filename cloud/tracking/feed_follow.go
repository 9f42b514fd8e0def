package tracking

import (
	"context"
	"io"
	"time"

	"github.com/postern-io/postern/cloud"
)

const (
	feedBeat  = 15 * time.Second // between two comments, at which the reader's rights are looked at
	feedBatch = 200              // changes in one write
)

// Following is a caller that gets changes as they are recorded. It counts as one that waits
// until Serve returns or Close is called.
type Following struct {
	r     feedReader
	leave func()
	lapse *time.Timer // leaves where the connection was lost before Serve could be called
}

func newFollowing(r feedReader, leave func()) *Following {
	return &Following{r, leave, time.AfterFunc(feedBeat, leave)}
}

// Close ends what is not served.
func (f *Following) Close() {
	f.lapse.Stop()
	f.leave()
}

// Serve writes changes as server-sent events until ctx ends, a write fails, the server stops
// or the caller's rights end, which again looks at:
//
//	id: cursor
//	event: kind
//	data: change
//
// Nothing is kept for a caller that is slow: what it has not taken is read again. Every 15 s
// there is a comment, with the cursor up to which all is sent.
func (f *Following) Serve(ctx context.Context, w io.Writer, again func(context.Context) (cloud.Caller, error)) error {
	defer f.leave()
	if !f.lapse.Stop() {
		return io.EOF
	}
	f.r.waits = true
	if _, err := io.WriteString(w, "retry: 2000\n\n"); err != nil {
		return err
	}
	beat := time.NewTicker(feedBeat)
	defer beat.Stop()
	var b []byte
	for {
		found, end, err := f.r.next(ctx, feedBatch)
		if err != nil {
			return err
		}
		b = b[:0]
		for _, x := range found {
			c := x.inLanguage(f.r.c.Language)
			b = append(append(append(b, "id: "...), c.Cursor...), "\nevent: "...)
			b = append(append(append(append(b, c.Kind...), "\ndata: "...), c.text...), "\n\n"...)
		}
		if len(b) > 0 {
			if _, err := w.Write(b); err != nil {
				return err
			}
		}
		due, err := f.pause(ctx, beat.C, end, len(found) == 0)
		if err != nil {
			return err
		}
		if !due {
			continue
		}
		if f.r.c, err = again(ctx); err != nil {
			return err
		}
		if business, err := feedOf(f.r.c); err != nil || business != f.r.business {
			return err
		}
		if _, err := io.WriteString(w, ": "+time.Now().UTC().Format(time.RFC3339)+"\nid: "+f.r.cursor()+"\n\n"); err != nil {
			return err
		}
	}
}

// pause waits for changes behind the last one, for none where more are there, and reports
// whether a comment is due. none says that the last read gave nothing. Error: io.EOF when the
// server stops.
func (f *Following) pause(ctx context.Context, beat <-chan time.Time, end, none bool) (due bool, err error) {
	var moved <-chan struct{}
	if end {
		var release func()
		if moved, release, err = f.r.s.feed.follow(ctx, f.r.business, f.r.at); err != nil {
			return false, err
		}
		defer release()
	} else {
		now := make(chan struct{})
		close(now)
		moved = now
	}
	select {
	case <-beat:
		return true, nil
	case <-f.r.s.feed.ended:
		return false, io.EOF
	case <-ctx.Done():
		return false, context.Cause(ctx)
	case <-moved:
	}
	if none { // of others; there are more of them soon
		select {
		case <-time.After(feedPace):
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
	}
	return false, nil
}
