package cloud

import (
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// fill gives a member of a section something to write.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.Zero(v.Type().Key()), reflect.Zero(v.Type().Elem()))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Unix(1, 0)))
		} else {
			fill(v.Field(0))
		}
	}
}

// A kind that a preview has no clause for is named beside effects too, once, unless it
// follows of itself.
func TestPreviewsNameKindsBesideEffects(t *testing.T) {
	t.Parallel()
	clauses := map[string]bool{"Businesses": true, "Providers": true, "Accounts": true, "Tokens": true, "Rows": true, "DroppedRows": true, "WebhookSettings": true, "Devices": true, "Compartments": true, "Deliveries": true,
		"Commands": true, "DeviceOrders": true, "Exceptions": true, "Orders": true, "DroppedOrders": true, "Interceptions": true, "Assignments": true, "ThirdParties": true, "Routes": true, "Jobs": true, "Approvals": true, "ChatMessages": true}
	named, followed := 0, 0
	for member := range (&Changes{}).each {
		if clauses[member.Name] || member.Tag.Get("change") == condition {
			continue
		}
		var alone, beside Changes
		beside.Orders = []Order{{ID: 1, Number: "A1", Note: "y"}}
		for _, c := range []*Changes{&alone, &beside} {
			for f, v := range c.each {
				if f.Name == member.Name {
					fill(v)
				}
			}
		}
		types := func(changes ...*Changes) (out []string) {
			p := &Preview{}
			for _, c := range changes {
				require.NoError(t, p.Take(found{}, c), member.Name)
			}
			for _, e := range p.Effects() {
				out = append(out, e.Type)
			}
			return out
		}
		kind := KindOf(member.Name)
		switch reason := following[member.Name]; {
		case member.Name == "Audits":
			require.Empty(t, types(&alone))
		case reason != "":
			followed++
			require.Equal(t, []string{kind}, types(&alone, &alone))
			require.Equal(t, []string{"order"}, types(&beside))
			require.Equal(t, []string{"order"}, types(&alone, &beside))
		default:
			named++
			require.Equal(t, []string{kind}, types(&alone, &alone))
			require.Equal(t, []string{"order", kind}, types(&beside))
		}
	}
	require.Len(t, following, 18)
	require.Equal(t, 17, followed, "each name is that of a member")
	require.Greater(t, named, 30)
}

// An order of which nothing is shown that changes is named.
func TestPreviewsNameThingsWithoutShownMembers(t *testing.T) {
	t.Parallel()
	p := &Preview{}
	c := &Changes{}
	c.Orders = []Order{{ID: 1, Number: "A1", Note: "x", Metadata: map[string]string{"a": "b"}}}
	c.Devices = []Device{{ID: 88, Disabled: true}}
	require.NoError(t, p.Take(found{}, c))
	require.Len(t, p.Effects(), 2)
	require.Equal(t, []any{"device", "order", map[string]any{"changed": true}}, []any{p.Effects()[0].Type, p.Effects()[1].Type, p.Effects()[1].After})
	require.Len(t, p.Marks(), 1, "a name is no mark")
}
