package push

import (
	"context"
	"errors"
	"time"

	"github.com/postern-io/postern/cloud"
)

// ReaderStore is what Desk needs of the database.
type ReaderStore interface {
	Decide(ctx context.Context, d cloud.DeviceID, fn func(cloud.View) (*cloud.Changes, error)) error
	FindPush(ctx context.Context, id string) (cloud.PushRow, error)
	ListPushes(ctx context.Context, b cloud.BusinessID, driver cloud.AccountID, from time.Time, limit int) ([]cloud.PushRow, error)
	ListTestPushes(ctx context.Context, b cloud.BusinessID, from time.Time, limit int) ([]cloud.PushRow, error)
}

// Reader is what people ask about pushes: drivers where they are reached and what
// they missed, staff what a sandbox's drivers would have received.
type Reader struct{ store ReaderStore }

// NewReader builds a desk.
func NewReader(store ReaderStore) *Reader { return &Reader{store} }

// Platforms are those that a device may have.
var Platforms = []string{"fcm", "apns", "web"}

// TokenInput says where the calling app is reached.
type TokenInput struct {
	Token    string `json:"token" required:"true" max:"4096" doc:"Of the platform's push service"`
	Platform string `json:"platform" required:"true" enum:"fcm,apns,web"`
}

// Done is the answer of what has nothing to say.
type Done struct {
	Result bool `json:"result"`
}

// Register keeps where the app of a login is reached, as long as the login is
// good. A device has one driver: the one who came last. Error:
// VALIDATION_FAILED.
func (d *Reader) Register(ctx context.Context, c cloud.Caller, login [32]byte, in TokenInput) (Done, error) {
	err := d.store.Decide(ctx, 0, func(cloud.View) (*cloud.Changes, error) {
		return &cloud.Changes{PushChanges: cloud.PushChanges{PushTokens: []cloud.PushToken{{DriverID: c.Account.ID, Token: in.Token, Platform: in.Platform, Login: login, At: time.Now().UTC()}}}}, nil
	})
	return Done{err == nil}, err
}

// Forget ends what a login registered.
func (d *Reader) Forget(ctx context.Context, login [32]byte) (Done, error) {
	err := d.store.Decide(ctx, 0, func(cloud.View) (*cloud.Changes, error) {
		return &cloud.Changes{PushChanges: cloud.PushChanges{NoPushTokens: [][32]byte{login}}}, nil
	})
	return Done{err == nil}, err
}

// ListInput asks for pushes.
type ListInput struct {
	After string `query:"after" json:"after" max:"64" doc:"The push that was seen last; empty: from the oldest that is kept, seven days. Some that are a little older than it may come again"`
}

// Row is a push with what became of it.
type Row struct {
	cloud.PushBody
	DriverID cloud.AccountID `json:"driver_id"`
	State    cloud.PushState `json:"state"`
}

// ListOutput are pushes, oldest first.
type ListOutput struct {
	Result bool  `json:"result"`
	More   bool  `json:"has_more"` // ask again after the last one
	Pushes []Row `json:"pushes"`
}

const (
	listPage = 200
	overlap  = 15 * time.Second // how much later than its time a push may be committed
)

// List shows what the calling driver was pushed.
func (d *Reader) List(ctx context.Context, c cloud.Caller, in ListInput) (ListOutput, error) {
	return d.list(ctx, in, func(p cloud.PushRow) bool { return p.BusinessID == c.Account.BusinessID && p.DriverID == c.Account.ID },
		func(from time.Time, limit int) ([]cloud.PushRow, error) {
			return d.store.ListPushes(ctx, c.Account.BusinessID, c.Account.ID, from, limit)
		})
}

// ListTests shows what drivers of the caller's sandbox would have been pushed.
func (d *Reader) ListTests(ctx context.Context, c cloud.Caller, in ListInput) (ListOutput, error) {
	return d.list(ctx, in, func(p cloud.PushRow) bool { return p.BusinessID == c.Account.BusinessID && p.Test },
		func(from time.Time, limit int) ([]cloud.PushRow, error) {
			return d.store.ListTestPushes(ctx, c.Account.BusinessID, from, limit)
		})
}

func (d *Reader) list(ctx context.Context, in ListInput, own func(cloud.PushRow) bool, read func(time.Time, int) ([]cloud.PushRow, error)) (ListOutput, error) {
	out := ListOutput{Result: true, Pushes: []Row{}}
	var after time.Time
	from := time.Now().Add(-cloud.PushKept)
	if in.After != "" {
		p, err := d.store.FindPush(ctx, in.After)
		if err != nil && !errors.Is(err, cloud.ErrNotFound) {
			return out, err
		}
		if err == nil && own(p) { // one that is kept no more is before all that is
			after, from = p.At, p.At.Add(-overlap)
		}
	}
	for limit := listPage; ; limit *= 4 {
		found, err := read(from, limit)
		if err != nil {
			return out, err
		}
		out.More = len(found) == limit
		if out.More && !found[len(found)-1].At.After(after) {
			continue // all of it may have been seen
		}
		for _, p := range found {
			if p.ID != in.After {
				out.Pushes = append(out.Pushes, Row{p.PublicBody(), p.DriverID, p.State})
			}
		}
		return out, nil
	}
}
