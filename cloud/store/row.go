package store

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/postern-io/postern/cloud"
)

// rowTables are the tables of rows whose members are their columns. A table has an
// index of its owner and id, and a unique one of each unique column.
var rowTables = []*rowTable{
	newRowTable("announced_package", cloud.AnnouncedPackage{}),
	newRowTable("cabinet_profile", cloud.CabinetProfile{}),
	newRowTable("alias", cloud.Alias{}),
	newRowTable("container", cloud.Container{}),
	newRowTable("container_capture", cloud.ContainerCapture{}),
	newRowTable("container_event", cloud.ContainerEvent{}),
	newRowTable("container_mark", cloud.ContainerMark{}),
	newRowTable("container_task", cloud.ContainerTask{}),
	newRowTable("container_turn", cloud.ContainerTurn{}),
	newRowTable("device_photo", cloud.DevicePhoto{}),
	newRowTable("diagnosis", cloud.Diagnosis{}),
	newRowTable("due_event", cloud.DueEvent{}),
	newRowTable("file_column", cloud.FileColumn{}),
	newRowTable("invitation", cloud.Invitation{}),
	newRowTable("passkey", cloud.Passkey{}),
	newRowTable("platform_pass", cloud.PlatformPass{}),
	newRowTable("qr_code", cloud.QRCode{}),
	newRowTable("review", cloud.Review{}),
	newRowTable("rollout", cloud.Rollout{}),
	newRowTable("saved_view", cloud.SavedView{}),
	newRowTable("site", cloud.Site{}),
	newRowTable("staff_code", cloud.StaffCode{}),
	newRowTable("staff_code_holder", cloud.StaffCodeHolder{}),
	newRowTable("subscribed_parcel", cloud.SubscribedParcel{}),
	newRowTable("tracking_subscription", cloud.Subscription{}),
	newRowTable("work_item", cloud.WorkMark{}),
}

// rowTable reads and writes the rows of one noun.
type rowTable struct {
	name    string
	row     reflect.Type
	columns []cloud.Column
	owner   cloud.Column
	list    string // of columns, in the order of the members
	save    string // a statement that inserts a row or changes it
	sorts   sortable
}

func newRowTable(name string, r cloud.Row) *rowTable {
	t := &rowTable{name: name, row: reflect.TypeOf(r), columns: cloud.ColumnsOf(r), sorts: sortable{}}
	var names, values, changed []string
	for i, c := range t.columns {
		names, values = append(names, c.Name), append(values, fmt.Sprintf("$%d", i+1))
		if c.Owner {
			t.owner = c
		}
		if !c.Owner && !c.Fixed && c.Name != "id" {
			changed = append(changed, c.Name+" = excluded."+c.Name)
		}
		if c.Sort && c.Name == "id" {
			t.sorts["id"] = sortColumn{}
		} else if c.Sort {
			t.sorts[c.Name] = sortColumn{name: c.Name, text: t.row.FieldByIndex(c.Index).Type.Kind() == reflect.String}
		}
	}
	t.list = strings.Join(names, ", ")
	t.save = fmt.Sprintf("INSERT INTO %[1]s (%[2]s) VALUES (%[3]s) ON CONFLICT (id) DO UPDATE SET %[4]s WHERE %[1]s.%[5]s = excluded.%[5]s",
		name, t.list, strings.Join(values, ", "), strings.Join(changed, ", "), t.owner.Name)
	return t
}

// tableOf is the table of a row.
func tableOf(r cloud.Row) (*rowTable, error) {
	for _, t := range rowTables {
		if t.row == reflect.TypeOf(r) {
			return t, nil
		}
	}
	return nil, fmt.Errorf("%T has no table", r)
}

// value is a member as it is stored.
func (t *rowTable) value(r reflect.Value, c cloud.Column) any {
	f := r.FieldByIndex(c.Index)
	switch v := f.Interface().(type) {
	case time.Time:
		return ms(v)
	case []byte:
		if c.Text {
			return string(v)
		}
		return blob(v)
	}
	switch f.Kind() {
	case reflect.String:
		return f.String()
	case reflect.Bool:
		return f.Bool()
	case reflect.Float64:
		return f.Float()
	case reflect.Array: // of bytes
		b := make([]byte, f.Len())
		reflect.Copy(reflect.ValueOf(b), f)
		return b
	}
	if f.CanInt() {
		return f.Int()
	}
	return text(f.Interface())
}

// scan reads the columns of list into a row.
func (t *rowTable) scan(r rows, out *cloud.Row) error {
	v := reflect.New(t.row).Elem()
	var at []any
	for _, c := range t.columns {
		p := v.FieldByIndex(c.Index).Addr().Interface()
		switch f := v.FieldByIndex(c.Index); {
		case f.Type() == reflect.TypeFor[time.Time]():
			p = when(p.(*time.Time))
		case f.Kind() == reflect.Array:
			p = fixed(f.Slice(0, f.Len()).Bytes())
		case f.Type() == reflect.TypeFor[[]byte]():
			p = &bytesColumn{p.(*[]byte)}
		case f.Kind() == reflect.Slice || f.Kind() == reflect.Map || f.Kind() == reflect.Struct || f.Kind() == reflect.Pointer:
			p = parsed(p)
		}
		at = append(at, p)
	}
	err := r.Scan(at...)
	*out = v.Interface().(cloud.Row)
	return err
}

// bytesColumn reads bytes that are stored as such or as text.
type bytesColumn struct{ dst *[]byte }

// Scan implements sql.Scanner.
func (c *bytesColumn) Scan(src any) error {
	switch s := src.(type) {
	case nil:
		*c.dst = nil
	case string:
		*c.dst = []byte(s)
	case []byte:
		*c.dst = slices.Clone(s)
	default:
		return fmt.Errorf("bytes are stored as %T", src)
	}
	return nil
}

// key is the condition that names one row: its owner and id, or else a unique member.
func (t *rowTable) key(r reflect.Value) (c conditions) {
	id, owner := r.FieldByName("ID"), r.FieldByIndex(t.owner.Index)
	if !id.IsZero() && !owner.IsZero() {
		c.and(t.owner.Name+" = $%d AND id = $%d", owner.Int(), id.Int())
		return c
	}
	for _, x := range t.columns {
		if x.Unique && !r.FieldByIndex(x.Index).IsZero() {
			c.and(x.Name+" = $%d", t.value(r, x))
		}
	}
	return c
}

// FindRow implements cloud.RowView.
func (v *snapshot) FindRow(like cloud.Row) (cloud.Row, error) {
	t, err := tableOf(like)
	if err != nil {
		return nil, err
	}
	c := t.key(reflect.ValueOf(like))
	if len(c.args) == 0 {
		return nil, cloud.ErrNotFound
	}
	return one(v.ctx, v.q, v.locked(`SELECT `+t.list+` FROM `+t.name+c.where()), t.scan, c.args...)
}

// ListRows implements cloud.RowView.
func (v *snapshot) ListRows(like cloud.Row, p cloud.Page) ([]cloud.Row, cloud.Listed, error) {
	t, err := tableOf(like)
	if err != nil {
		return nil, cloud.Listed{}, err
	}
	r := reflect.ValueOf(like)
	if r.FieldByIndex(t.owner.Index).IsZero() {
		return nil, cloud.Listed{}, cloud.ErrNoOwner
	}
	var c conditions
	for _, x := range t.columns {
		if !r.FieldByIndex(x.Index).IsZero() {
			c.and(x.Name+" = $%d", t.value(r, x))
		}
	}
	return part(v, keyList{from: t.name, columns: t.list, where: c, page: p}, t.sorts, t.scan)
}

func saveRows(w *writer, c *cloud.Changes) error {
	for _, x := range c.DroppedRows {
		t, err := tableOf(x)
		if err != nil {
			return err
		}
		r := reflect.ValueOf(x)
		w.add(anything, `DELETE FROM `+t.name+` WHERE `+t.owner.Name+` = $1 AND id = $2`, r.FieldByIndex(t.owner.Index).Int(), x.RowID())
	}
	for _, x := range c.Rows {
		t, err := tableOf(x)
		if err != nil {
			return err
		}
		var args []any
		for _, column := range t.columns {
			args = append(args, t.value(reflect.ValueOf(x), column))
		}
		w.add(mustExist, t.save, args...)
		feedOfRow(w, x)
	}
	return nil
}

// withRows puts the rows' tables in front of those that are listed already.
func withRows(listed []tenantTable) (out []tenantTable) {
	for _, t := range rowTables {
		if slices.ContainsFunc(listed, func(x tenantTable) bool { return x.name == t.name }) {
			continue
		}
		x := tenantTable{name: t.name, key: "id", owner: strings.TrimSuffix(t.owner.Name, "_id")}
		for _, c := range t.columns {
			to := &x.columns
			if c.Secret || c.Name == "business_id" {
				to = &x.left
			}
			*to = strings.TrimSpace(*to + " " + c.Name)
		}
		out = append(out, x)
	}
	return append(out, listed...)
}

// findRow is cloud.Find outside of a View.
func findRow[R cloud.Row](ctx context.Context, q querier, like R) (R, error) {
	return cloud.Find(&snapshot{ctx: ctx, q: q}, like)
}
