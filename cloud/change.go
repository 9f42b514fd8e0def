package cloud

import (
	"cmp"
	"reflect"
)

// View reads the present inside one transaction. Values are copies. A missing
// row is ErrNotFound. It must not be used after the decision returned, nor
// from another goroutine.
type View interface {
	// NewID gives an id that was never given before. Ids of a decision that
	// wrote nothing are lost.
	NewID(IDKind) (int64, error)

	SetupView
	AccountView
	OAuthView
	FactorView
	RowView
	NotificationView
	IdentityView
	AuditView
	HookView
	DeviceView
	LockerView
	TrackingView
	OrderView
	InterceptionView
	AssignmentView
	ThirdPartyView
	RouteView
	PlaceView
	JobView
	ApprovalView
	ChatView
	PlatformView
	SearchView
	WorkView
	ReportView
	ContainerView
	AliasView
}

// Changes is everything one decision writes. Entities with an id or key are
// inserted when it is new and replaced as a whole when it is known, unless a
// field says otherwise. The zero Changes writes nothing.
type Changes struct {
	SetupChanges
	AccountChanges
	OAuthChanges
	FactorChanges
	RowChanges
	NotificationChanges
	IdentityChanges
	HookChanges
	DeviceChanges
	LockerChanges
	TrackingChanges
	OrderChanges
	InterceptionChanges
	AssignmentChanges
	ThirdPartyChanges
	RouteChanges
	PlaceChanges
	JobChanges
	ApprovalChanges
	ChatChanges
	PlatformChanges
	FileChanges
	OutboxChanges
	ReplayChanges
	LiveChanges
	PushChanges
	AuditChanges

	// Answer is what the call that the decision is made for is answered if
	// nothing more comes of it, as the operation gives it. It is kept for calls
	// that come with a key, and is no change by itself. Unfinished says that the
	// call goes on and may be answered otherwise.
	Answer     any
	Unfinished bool
	// Refused says that the call is refused, although something is written: no
	// audit line says that it was done.
	Refused bool
	// Unaudited says that no account did this: what is written was measured.
	Unaudited bool
}

// members are those of all sections of Changes, and where they are.
var members = func() (out []changesMember) {
	whole := reflect.TypeFor[Changes]()
	for i := range whole.NumField() {
		if section := whole.Field(i); section.Anonymous {
			for k := range section.Type.NumField() {
				out = append(out, changesMember{section.Type.Field(k), i, k})
			}
		}
	}
	return out
}()

type changesMember struct {
	field          reflect.StructField
	section, index int
}

// each walks the members of all sections of c.
func (c *Changes) each(yield func(member reflect.StructField, v reflect.Value) bool) {
	v := reflect.ValueOf(c).Elem()
	for _, m := range members {
		if !yield(m.field, v.Field(m.section).Field(m.index)) {
			return
		}
	}
}

// Join adds what another decision about other things writes. Conditions of one
// session generation cannot be joined with those of another: the later wins.
func (c *Changes) Join(other *Changes) {
	v, o := reflect.ValueOf(c).Elem(), reflect.ValueOf(other).Elem()
	for _, m := range members {
		to, add := v.Field(m.section).Field(m.index), o.Field(m.section).Field(m.index)
		switch {
		case add.IsZero():
		case to.Kind() == reflect.Slice:
			to.Set(reflect.AppendSlice(to, add))
		case to.Kind() == reflect.Map && !to.IsNil():
			for m := add.MapRange(); m.Next(); {
				to.SetMapIndex(m.Key(), m.Value())
			}
		default:
			to.Set(add)
		}
	}
	if other.Answer != nil {
		c.Answer = other.Answer
	}
	c.Unfinished, c.Refused, c.Unaudited = c.Unfinished || other.Unfinished, c.Refused || other.Refused, c.Unaudited || other.Unaudited
}

// condition is the tag of members that say when changes may be written, and
// write nothing.
const condition = "condition"

// Follow puts the trace of the call that decided on what it orders and says: openings,
// commands and events of webhooks that belong to none yet. "" changes nothing.
func (c *Changes) Follow(trace string) {
	if trace == "" {
		return
	}
	for i := range c.Openings {
		c.Openings[i].Trace = cmp.Or(c.Openings[i].Trace, trace)
	}
	for i := range c.Commands {
		c.Commands[i].Trace = cmp.Or(c.Commands[i].Trace, trace)
	}
	for i := range c.Outbox {
		c.Outbox[i].Event.Trace = cmp.Or(c.Outbox[i].Event.Trace, trace)
	}
}

// Empty reports whether c writes nothing.
func (c *Changes) Empty() bool {
	for member, v := range c.each {
		switch {
		case member.Tag.Get("change") == condition:
		case v.Kind() == reflect.Slice || v.Kind() == reflect.Map:
			if v.Len() > 0 {
				return false
			}
		case !v.IsZero():
			return false
		}
	}
	return true
}
