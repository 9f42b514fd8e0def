package cloud

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Row is a noun that is stored as one row of its table. Each member is a column,
// named as the member in small letters with underscores. The tag row has another name,
// and behind commas what else is to know of the column:
//
//	owner    whose the row is; without it that is business_id
//	unique   of all rows; one is found by it alone
//	fixed    it stays as it was first written
//	sort     lists can be in the order of it; it is never null
//	secret   no export has it
//	text     bytes that are stored as text
type Row interface {
	RowKind() IDKind // the sequence of its ids, and its name in previews and audit lines
	RowID() int64
}

// Kept is what rows of a business have in common. Nouns embed it.
type Kept[I ~int64] struct {
	ID         I          `row:",sort"`
	BusinessID BusinessID `row:",fixed"`
	CreatedAt  time.Time  `row:",fixed,sort"`
	UpdatedAt  time.Time
}

// RowID is the row's id.
func (k Kept[I]) RowID() int64 { return int64(k.ID) }

// Begin makes it a new row of a business.
func (k *Kept[I]) Begin(id int64, b BusinessID, now time.Time) {
	k.ID, k.BusinessID, k.CreatedAt, k.UpdatedAt = I(id), b, now, now
}

// Touch says that the row changes at now.
func (k *Kept[I]) Touch(now time.Time) { k.UpdatedAt = now }

// RowView reads the present of rows by an example: a row is found when it has all
// members of the example that are not zero. Find and List are its typed forms.
type RowView interface {
	FindRow(like Row) (Row, error)
	ListRows(like Row, p Page) ([]Row, Listed, error)
}

// RowChanges are the changes of rows.
type RowChanges struct {
	Rows        []Row
	DroppedRows []Row // that are removed, by owner and id
}

func (s *RowChanges) preview(e *effectList) {
	previewEach(e, "Rows", s.Rows, func(x Row) {
		old, err := e.view.FindRow(x)
		showChanged(e, string(x.RowKind()), x.RowID(), nameOf(x), x, old, err, nil)
	})
	previewEach(e, "DroppedRows", s.DroppedRows, func(x Row) {
		e.list = append(e.list, Effect{Type: string(x.RowKind()), ID: x.RowID(), Name: nameOf(x), version: versionOf(x), Before: map[string]any{"removed": false}})
	})
}

// Find finds the one row that is like the example, which has the row's id and owner,
// or a unique member. In a decision on PostgreSQL the row waits for others that decide
// about it. Errors: ErrNotFound, also for an example whose key is zero.
func Find[R Row](v RowView, like R) (R, error) {
	row, err := v.FindRow(like)
	if err != nil {
		var none R
		return none, err
	}
	return row.(R), nil
}

// List lists a part of the rows of an owner that are like the example. Errors:
// ErrNoMark, ErrNoOwner.
func List[R Row](v RowView, like R, p Page) ([]R, Listed, error) {
	rows, listed, err := v.ListRows(like, p)
	out := make([]R, len(rows))
	for i, r := range rows {
		out[i] = r.(R)
	}
	return out, listed, err
}

// All lists all rows of an owner that are like the example, by id. Error: ErrNoOwner.
func All[R Row](v RowView, like R) (out []R, err error) {
	p := Page{Sort: "id", Limit: 1000}
	for {
		some, listed, err := List(v, like, p)
		if out = append(out, some...); err != nil || listed.Next == nil {
			return out, err
		}
		p.After = listed.Next
	}
}

// AsRows are nouns as Changes has them.
func AsRows[R Row](list []R) (out []Row) {
	for _, r := range list {
		out = append(out, r)
	}
	return out
}

// ErrNoOwner is returned when rows are listed without saying whose.
var ErrNoOwner = errors.New("the example of a list says not whose rows are listed")

// Column is a member of a row as it is stored.
type Column struct {
	Name                                     string
	Owner, Unique, Fixed, Sort, Secret, Text bool
	Index                                    []int // of the member, for reflect
}

// ColumnsOf are the columns of a row, in the order of its members.
func ColumnsOf(r Row) (out []Column) {
	t := reflect.TypeOf(r)
	owned := false
	for _, f := range reflect.VisibleFields(t) {
		if f.Anonymous || !f.IsExported() {
			continue
		}
		name, rest, _ := strings.Cut(f.Tag.Get("row"), ",")
		if name == "" {
			name = snakeCase(f.Name)
		}
		has := func(option string) bool { return slices.Contains(strings.Split(rest, ","), option) }
		out = append(out, Column{Name: name, Owner: has("owner"), Unique: has("unique"), Fixed: has("fixed"), Sort: has("sort"), Secret: has("secret"), Text: has("text"), Index: f.Index})
		owned = owned || has("owner")
	}
	for i := range out {
		out[i].Owner = out[i].Owner || !owned && out[i].Name == "business_id"
	}
	return out
}

// nameOf is what people call a row: its member Name, where it has one.
func nameOf(r Row) string {
	if v := reflect.ValueOf(r).FieldByName("Name"); v.Kind() == reflect.String {
		return v.String()
	}
	return ""
}
