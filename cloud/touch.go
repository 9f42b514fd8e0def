package cloud

import (
	"reflect"
	"slices"
	"sync"
)

// Touch says what a part of committed changes is about, so that only views that show it
// look again. A member is zero where the part does not say it.
type Touch struct {
	// Kind is the member of Changes, such as Orders, or the kind of a stored row.
	Kind     string     `json:"kind,omitempty"`
	Business BusinessID `json:"business,omitempty"`
	Device   DeviceID   `json:"device,omitempty"`
	Shipment ShipmentID `json:"shipment,omitempty"`
	Order    OrderID    `json:"order,omitempty"`
	Delivery DeliveryID `json:"delivery,omitempty"`
	Account  AccountID  `json:"account,omitempty"`
}

// untouched are members of Changes that no page shows: how devices number what they
// send, secrets, and what is sent on to others.
var untouched = []string{"Generation", "Lanes", "Epochs", "Batches", "Codes", "Seen", "Live", "Reworded", "Pushes", "RewordedPushes", "PushTokens", "NoPushTokens", "Notifications", "ResetRequests", "DoneResetRequests",
	"Tickets", "DropTickets", "EndTickets", "LoginFailures", "DropFailures", "OAuthEnds", "DropOAuth", "DropJobsBefore", "ChatReads", "Files", "DroppedFiles", "Setup"}

// subjects are the members of a type that say what a value of it is about, by the
// member of Touch that takes them. A member that is missing has no path.
type subjects [6][]int

// subjectTypes are the types of the members of Touch after Kind, in their order.
var subjectTypes = [6]reflect.Type{reflect.TypeFor[BusinessID](), reflect.TypeFor[DeviceID](), reflect.TypeFor[ShipmentID](), reflect.TypeFor[OrderID](), reflect.TypeFor[DeliveryID](), reflect.TypeFor[AccountID]()}

var knownSubjects sync.Map // of reflect.Type to *subjects

func subjectsOf(t reflect.Type) *subjects {
	if s, ok := knownSubjects.Load(t); ok {
		return s.(*subjects)
	}
	s := &subjects{}
	if t.Kind() == reflect.Struct {
		s.collect(t, nil)
	}
	knownSubjects.Store(t, s)
	return s
}

// collect finds the first member of each type, those of a struct before those of the
// structs in it.
func (s *subjects) collect(t reflect.Type, path []int) {
	var inner []int
	for i := range t.NumField() {
		f := t.Field(i)
		if k := slices.Index(subjectTypes[:], f.Type); k >= 0 && s[k] == nil {
			s[k] = append(slices.Clone(path), i)
		} else if k < 0 && f.Type.Kind() == reflect.Struct {
			inner = append(inner, i)
		}
	}
	if len(path) > 0 {
		return
	}
	for _, i := range inner {
		s.collect(t.Field(i).Type, []int{i})
	}
}

// of is what a value is about.
func (s *subjects) of(kind string, v reflect.Value) Touch {
	id := func(i int) int64 {
		if s[i] == nil {
			return 0
		}
		return v.FieldByIndex(s[i]).Int()
	}
	return Touch{kind, BusinessID(id(0)), DeviceID(id(1)), ShipmentID(id(2)), OrderID(id(3)), DeliveryID(id(4)), AccountID(id(5))}
}

// touchMembers are the members of Changes that pages show, each with its path.
var touchMembers = sync.OnceValue(func() (out []touchMember) {
	t := reflect.TypeFor[Changes]()
	for i := range t.NumField() {
		if !t.Field(i).Anonymous {
			continue
		}
		section := t.Field(i).Type
		for k := range section.NumField() {
			if f := section.Field(k); !slices.Contains(untouched, f.Name) {
				out = append(out, touchMember{f.Name, []int{i, k}})
			}
		}
	}
	return out
})

type touchMember struct {
	kind string
	path []int
}

// TouchKinds are the kinds of a Touch but for those of stored rows.
func TouchKinds() (names []string) {
	for _, m := range touchMembers() {
		names = append(names, m.kind)
	}
	return names
}

// Touches says what c is about, each once.
func (c *Changes) Touches() (out []Touch) {
	known := map[Touch]bool{}
	add := func(t Touch) {
		if !known[t] {
			known[t] = true
			out = append(out, t)
		}
	}
	all := reflect.ValueOf(c).Elem()
	for _, m := range touchMembers() {
		v := all.FieldByIndex(m.path)
		switch v.Kind() {
		case reflect.Slice:
			for i := range v.Len() {
				x, kind := v.Index(i), m.kind
				switch {
				case x.Kind() == reflect.Interface:
					x = reflect.Indirect(x.Elem())
					if r, ok := v.Index(i).Interface().(Row); ok {
						kind = string(r.RowKind())
					}
				case x.Kind() == reflect.Int64: // an id
					t := Touch{Kind: kind}
					if x.Type() == subjectTypes[0] {
						t.Business = BusinessID(x.Int())
					}
					add(t)
					continue
				}
				add(subjectsOf(x.Type()).of(kind, x))
			}
		case reflect.Map:
			for it := v.MapRange(); it.Next(); {
				if id, ok := it.Key().Interface().(DeviceID); ok {
					add(Touch{Kind: m.kind, Device: id})
				}
			}
		}
	}
	return out
}
