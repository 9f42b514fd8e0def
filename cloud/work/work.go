// Package work has the rules of the work list: what waits for people of a business, in
// the order in which it should be seen to, and what they say about it.
//
// An item is read from the rows that it is about and ends with its cause; only what
// people say about it is stored: who sees to it, a note, and until when it is put off.
// Which kinds a caller sees, and may say something about, is the caller's rights on the
// operations behind them (Rights). Safe for concurrent use.
package work

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
	"github.com/postern-io/postern/cloud/collection"
)

// Rights says whether a caller may see items of a kind, or with write say something about
// them. The error names what is missing.
type Rights func(ctx context.Context, c cloud.Caller, kind string, write bool) error

// Dismiss closes an exception at a compartment that needs nothing. Errors: EXCEPTION_NOT_FOUND,
// EXCEPTION_CLOSED, RESOLUTION_NOT_POSSIBLE.
type Dismiss func(ctx context.Context, c cloud.Caller, id cloud.ExceptionID, note string) error

// Service has the operations of the work list.
type Service struct {
	Store   collection.Store
	Rights  Rights
	Dismiss Dismiss
}

const (
	usualItems = 50
	maxSnooze  = 30 * 24 * time.Hour
)

// Item is something that waits for a person.
type Item struct {
	ItemID         string               `json:"item_id" doc:"Kind, hyphen and the id of what it is about"`
	Kind           string               `json:"kind" doc:"exception, overdue, fault, silent, endpoint or approval"`
	Type           string               `json:"type" doc:"Of an exception or fault its type, of an endpoint its status, of an approval its tool"`
	Severity       string               `json:"severity" doc:"high, medium or low"`
	Since          *string              `json:"since"`
	Title          string               `json:"title" doc:"Number of the parcel, address of the endpoint, or what an agent asks for"`
	Subject        string               `json:"subject" doc:"Id of what it is about"`
	DeviceID       *cloud.DeviceID      `json:"device_id"`
	DeviceName     string               `json:"device_name"`
	GridID         *cloud.GridID        `json:"grid_id"`
	GridCode       string               `json:"grid_code"`
	DoorName       string               `json:"door_name" doc:"As on the door: pickup_locker_code, or grid_code where there is none; of a fault the names of all its doors, with commas between them"`
	OpenDoor       *string              `json:"open_door" doc:"Name of the door that the cabinet reports as open: the item is not closed before it is shut; null otherwise"`
	DeliveryID     *cloud.DeliveryID    `json:"delivery_id"`
	DeliveryStatus cloud.DeliveryStatus `json:"delivery_status" doc:"Empty where it is about no delivery"`
	Parcels        int                  `json:"parcels_inside" doc:"Of a cabinet without a connection"`
	OwnerID        *cloud.AccountID     `json:"owner_id" doc:"Account that sees to it; null: none"`
	OwnerName      string               `json:"owner_name"`
	Note           string               `json:"note"`
	SnoozedUntil   *string              `json:"snoozed_until"`
}

func show(w cloud.WorkItem, now time.Time, l *time.Location) Item {
	if !w.SnoozeUntil.After(now) {
		w.SnoozeUntil = time.Time{}
	}
	return Item{ItemID: w.ID(), Kind: w.Kind, Type: w.Type, Severity: w.Severity, Since: cloud.Stamp(w.Since, l), Title: w.Title, Subject: w.Subject, DeviceID: cloud.OrNull(w.DeviceID),
		DeviceName: w.Device, GridID: cloud.OrNull(w.GridID), GridCode: w.GridCode, DoorName: w.Door, OpenDoor: cloud.OrNull(w.OpenDoor), DeliveryID: cloud.OrNull(w.DeliveryID), DeliveryStatus: w.DeliveryStatus, Parcels: w.Parcels, OwnerID: cloud.OrNull(w.OwnerID),
		OwnerName: w.Owner, Note: w.Note, SnoozedUntil: cloud.Stamp(w.SnoozeUntil, l)}
}

// rank is the place of a severity: the gravest first.
func rank(severity string) int {
	return map[string]int{"high": 0, "medium": 1, "low": 2}[severity]
}

// Rank puts items in the order in which people should see to them: the gravest first,
// and of those the one that waits longest.
func Rank(items []cloud.WorkItem) {
	slices.SortFunc(items, func(a, b cloud.WorkItem) int {
		return cmp.Or(cmp.Compare(rank(a.Severity), rank(b.Severity)), a.Since.Compare(b.Since), cmp.Compare(a.ID(), b.ID()))
	})
}

// ListInput chooses items.
type ListInput struct {
	Kind     string `query:"kind" enum:"exception,overdue,fault,silent,endpoint,approval"`
	Severity string `query:"severity" enum:"high,medium,low"`
	Mine     *bool  `query:"mine" doc:"true: the items that the caller sees to"`
	Snoozed  *bool  `query:"snoozed" doc:"true: the items that are put off, in place of the others"`
	Limit    *int   `query:"limit" min:"1" max:"200" default:"50" doc:"Items of the answer"`
}

// ListOutput are the first items of the list.
type ListOutput struct {
	Result bool   `json:"result"`
	Items  []Item `json:"items"`
	Count  int    `json:"count" doc:"Items that wait, as far as they were counted"`
	More   bool   `json:"more" doc:"There are more than count"`
}

// counted is how far items of each kind and severity are counted.
const counted = 200

// List shows what waits for people of the caller's business, of the kinds that the caller
// may see, but for own requests that another person must decide about: the gravest first, and of those the one that waits longest.
func (s *Service) List(ctx context.Context, c cloud.Caller, in ListInput) (out ListOutput, err error) {
	f := cloud.WorkFilter{BusinessID: c.Account.BusinessID, Severity: in.Severity, Now: moment(), Limit: counted, Snoozed: in.Snoozed != nil && *in.Snoozed}
	for _, kind := range cloud.WorkKinds {
		if (in.Kind == "" || in.Kind == kind) && s.Rights(ctx, c, kind, false) == nil {
			f.Kinds = append(f.Kinds, kind)
		}
	}
	out = ListOutput{Result: true, Items: []Item{}}
	if len(f.Kinds) == 0 {
		return out, nil
	}
	if in.Mine != nil && *in.Mine {
		f.Owner = c.Account.ID
	}
	limit := usualItems
	if in.Limit != nil {
		limit = *in.Limit
	}
	err = s.Store.Look(ctx, func(v cloud.View) error {
		b, err := v.Business(c.Account.BusinessID)
		if err != nil {
			return err
		}
		items, cut, err := v.WorkItems(f)
		if err != nil {
			return err
		}
		if !b.Settings.SelfApproval { // others decide about what the caller asks for
			items = slices.DeleteFunc(items, func(w cloud.WorkItem) bool { return w.AskedBy != 0 && w.AskedBy == c.Account.ID })
		}
		Rank(items)
		out.Items, out.Count, out.More = []Item{}, len(items), cut
		for _, w := range items[:min(len(items), limit)] {
			out.Items = append(out.Items, show(w, f.Now, b.Location()))
		}
		return nil
	})
	return out, err
}

// ByItem names an item.
type ByItem struct {
	ID string `path:"id" doc:"item_id"`
}

// Output shows an item.
type Output struct {
	Result bool `json:"result"`
	Item   Item `json:"item"`
}

// Find shows an item. Error: WORK_ITEM_NOT_FOUND.
func (s *Service) Find(ctx context.Context, c cloud.Caller, in ByItem) (out Output, err error) {
	if _, _, err := s.allowed(ctx, c, in.ID, false); err != nil {
		return out, err
	}
	now := moment()
	err = s.Store.Look(ctx, func(v cloud.View) error {
		w, err := find(v, c, in.ID, now)
		if err != nil {
			return err
		}
		b, err := v.Business(c.Account.BusinessID)
		out = Output{err == nil, show(w, now, b.Location())}
		return err
	})
	return out, err
}

// allowed takes the name of an item apart and checks the caller's rights on its kind. An
// item that the caller may not see is answered as one that is not there.
func (s *Service) allowed(ctx context.Context, c cloud.Caller, id string, write bool) (kind, subject string, err error) {
	kind, subject, ok := cloud.ParseWorkID(id)
	if !ok || !slices.Contains(cloud.WorkKinds, kind) || s.Rights(ctx, c, kind, false) != nil {
		return "", "", cloud.E(cloud.NotFound, "WORK_ITEM_NOT_FOUND")
	}
	if write {
		err = s.Rights(ctx, c, kind, true)
	}
	return kind, subject, err
}

func find(v cloud.View, c cloud.Caller, id string, now time.Time) (cloud.WorkItem, error) {
	kind, subject, _ := cloud.ParseWorkID(id)
	items, _, err := v.WorkItems(cloud.WorkFilter{BusinessID: c.Account.BusinessID, Kinds: []string{kind}, Subject: subject, Now: now, Limit: 1})
	if err != nil {
		return cloud.WorkItem{}, err
	}
	if len(items) == 0 {
		return cloud.WorkItem{}, cloud.E(cloud.NotFound, "WORK_ITEM_NOT_FOUND")
	}
	return items[0], nil
}

// TakeInput makes the caller the owner of an item.
type TakeInput struct {
	ID      string `path:"id" json:"-" doc:"item_id"`
	Instead *bool  `json:"instead" doc:"true: also when another person sees to it"`
}

// Take makes the caller the one who sees to an item. Errors: WORK_ITEM_NOT_FOUND,
// WORK_ITEM_TAKEN.
func (s *Service) Take(ctx context.Context, c cloud.Caller, in TakeInput) (Output, error) {
	return s.mark(ctx, c, in.ID, "taken", func(m *cloud.WorkMark, w cloud.WorkItem) error {
		if w.Owner != "" && m.OwnerID != c.Account.ID && (in.Instead == nil || !*in.Instead) {
			return &cloud.Error{Kind: cloud.Conflict, Code: "WORK_ITEM_TAKEN", Args: []any{w.Owner}, Details: map[string]any{"owner_id": m.OwnerID}}
		}
		m.OwnerID = c.Account.ID
		return nil
	})
}

// Release gives an item back that the caller sees to. Errors: WORK_ITEM_NOT_FOUND,
// WORK_ITEM_TAKEN.
func (s *Service) Release(ctx context.Context, c cloud.Caller, in ByItem) (Output, error) {
	return s.mark(ctx, c, in.ID, "released", func(m *cloud.WorkMark, w cloud.WorkItem) error {
		if w.Owner != "" && m.OwnerID != c.Account.ID {
			return &cloud.Error{Kind: cloud.Conflict, Code: "WORK_ITEM_TAKEN", Args: []any{w.Owner}, Details: map[string]any{"owner_id": m.OwnerID}}
		}
		m.OwnerID = 0
		return nil
	})
}

// NoteInput writes the note of an item.
type NoteInput struct {
	ID   string `path:"id" json:"-" doc:"item_id"`
	Note string `json:"note" max:"1000" doc:"In place of the former note; empty removes it"`
}

// Note writes the note of an item. Error: WORK_ITEM_NOT_FOUND.
func (s *Service) Note(ctx context.Context, c cloud.Caller, in NoteInput) (Output, error) {
	return s.mark(ctx, c, in.ID, "noted", func(m *cloud.WorkMark, _ cloud.WorkItem) error {
		m.Note = strings.TrimSpace(in.Note)
		return nil
	})
}

// SnoozeInput puts an item off.
type SnoozeInput struct {
	ID    string `path:"id" json:"-" doc:"item_id"`
	Hours *int   `json:"hours" required:"true" min:"0" max:"720" doc:"From now; 0 brings the item back"`
}

// Snooze takes an item out of the list for some hours, or brings it back. Error:
// WORK_ITEM_NOT_FOUND.
func (s *Service) Snooze(ctx context.Context, c cloud.Caller, in SnoozeInput) (Output, error) {
	return s.mark(ctx, c, in.ID, "snoozed", func(m *cloud.WorkMark, _ cloud.WorkItem) error {
		m.SnoozeUntil = time.Time{}
		if in.Hours != nil && *in.Hours > 0 {
			m.SnoozeUntil = m.UpdatedAt.Add(min(time.Duration(*in.Hours)*time.Hour, maxSnooze))
		}
		return nil
	})
}

// CloseInput closes the exception that an item is about.
type CloseInput struct {
	ID   string `path:"id" json:"-" doc:"item_id"`
	Note string `json:"note" required:"true" min:"1" max:"255" doc:"What was found; the exception keeps it"`
}

// Close closes the exception at a compartment that an item is about. Items of other kinds
// end with their cause. Errors: WORK_ITEM_NOT_FOUND, WORK_ITEM_STAYS.
func (s *Service) Close(ctx context.Context, c cloud.Caller, in CloseInput) (collection.Done, error) {
	kind, subject, err := s.allowed(ctx, c, in.ID, true)
	if err != nil {
		return collection.Done{}, err
	}
	if in.Note = strings.TrimSpace(in.Note); in.Note == "" {
		f := check.Fields{}
		f.Say("note", check.MessageRequired)
		return collection.Done{}, f.Err()
	}
	if kind != cloud.WorkException {
		return collection.Done{}, cloud.E(cloud.Conflict, "WORK_ITEM_STAYS")
	}
	id, err := strconv.ParseInt(subject, 10, 64)
	if err != nil {
		return collection.Done{}, cloud.E(cloud.NotFound, "WORK_ITEM_NOT_FOUND")
	}
	err = s.Dismiss(ctx, c, cloud.ExceptionID(id), in.Note)
	if refused := (*cloud.Error)(nil); errors.As(err, &refused) {
		switch refused.Code {
		case "EXCEPTION_NOT_FOUND", "EXCEPTION_CLOSED":
			err = cloud.E(cloud.NotFound, "WORK_ITEM_NOT_FOUND")
		case "RESOLUTION_NOT_POSSIBLE":
			err = cloud.E(cloud.Conflict, "WORK_ITEM_STAYS")
		}
	}
	return collection.Done{Result: err == nil}, err
}

// mark changes what people say about an item. Two who do so at once come one after the
// other: the second sees what the first has said.
func (s *Service) mark(ctx context.Context, c cloud.Caller, id, done string, change func(*cloud.WorkMark, cloud.WorkItem) error) (out Output, err error) {
	kind, subject, err := s.allowed(ctx, c, id, true)
	if err != nil {
		return out, err
	}
	for range 3 {
		if out, err = s.markOnce(ctx, c, kind, subject, done, change); !errors.Is(err, cloud.ErrExists) { // another made the first mark
			break
		}
	}
	return out, err
}

func (s *Service) markOnce(ctx context.Context, c cloud.Caller, kind, subject, done string, change func(*cloud.WorkMark, cloud.WorkItem) error) (out Output, err error) {
	now, id := moment(), kind+"-"+subject
	err = s.Store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		b, err := v.Business(c.Account.BusinessID)
		if err != nil {
			return nil, err
		}
		m, err := markOf(v, cloud.WorkMark{Kept: cloud.Kept[cloud.WorkMarkID]{BusinessID: b.ID}, Kind: kind, Subject: subject}, now)
		if err != nil {
			return nil, err
		}
		w, err := find(v, c, id, now)
		if err != nil {
			return nil, err
		}
		m.Touch(now)
		if err := change(&m, w); err != nil {
			return nil, err
		}
		w.OwnerID, w.Note, w.SnoozeUntil = m.OwnerID, m.Note, m.SnoozeUntil
		switch m.OwnerID {
		case 0:
			w.Owner = ""
		case c.Account.ID:
			w.Owner = c.Account.Name
		}
		out = Output{true, show(w, now, b.Location())}
		return &cloud.Changes{RowChanges: cloud.RowChanges{Rows: []cloud.Row{m}}, Answer: out, AuditChanges: cloud.AuditChanges{Audits: []cloud.Audit{{BusinessID: b.ID, At: now,
			Actor: c.Account.ID.Actor(), Action: "work_item_" + done, Target: "work_item:" + id, Detail: "{}"}}}}, nil
	})
	return out, err
}

// markOf is the mark of an item, a new one when there is none. Others who decide about it
// wait.
func markOf(v cloud.View, like cloud.WorkMark, now time.Time) (cloud.WorkMark, error) {
	known, _, err := cloud.List(v, like, cloud.Page{Sort: "id", Limit: 1})
	if err != nil {
		return like, err
	}
	if len(known) > 0 {
		return cloud.Find(v, known[0])
	}
	id, err := v.NewID(cloud.WorkMarkIDs)
	like.Begin(id, like.BusinessID, now)
	return like, err
}

func moment() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }
