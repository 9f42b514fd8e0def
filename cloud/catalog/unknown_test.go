package catalog

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
)

type unknownPart struct {
	Size int             `json:"size"`
	Any  json.RawMessage `json:"any"`
}

type unknownPaging struct {
	Page int `json:"page"`
}

type unknownInput struct {
	ID    int                      `path:"id" json:"-"`
	Sort  string                   `query:"sort" json:"-"`
	At    *time.Time               `json:"at"`
	Parts []*unknownPart           `json:"parts"`
	ByKey map[string][]unknownPart `json:"by_key"`
	Texts map[string]string        `json:"texts"`
	unknownPaging
}

func TestUnknownMembersByPath(t *testing.T) {
	t.Parallel()
	o := Define(Operation{Name: "things.change", Summary: "Change a thing", Tag: "Client", Method: "PATCH", Path: "/api/v1/things/{id}", Fixed: []string{"colour", "size", "page"}},
		func(context.Context, cloud.Caller, unknownInput) (struct{}, error) { return struct{}{}, nil }, nil)
	for body, want := range map[string][]string{
		`{"at":"2026-01-01T00:00:00Z","parts":[{"size":1,"any":{"x":1}},null],"texts":{"x":"y"},"PAGE":2,"by_key":{"a":[{"size":1}]}}`: nil,
		`{"id":1,"sort":"x","at":{"year":1}}`:                                      {"at.year", "id", "sort"},
		`{"parts":[{},{"sise":1}],"by_key":{"k":[{"x":null}]},"unknownPaging":{}}`: {"by_key.k.0.x", "parts.1.sise", "unknownPaging"},
		`[1]`: nil, `{`: nil, ``: nil, `{"parts":7,"by_key":[]}`: nil,
	} {
		require.Equal(t, want, o.Unknown([]byte(body)), body)
	}
	var many []string
	for i := range 50 {
		many = append(many, fmt.Sprintf(`"x%02d":1`, i))
	}
	found := o.Unknown([]byte("{" + strings.Join(many, ",") + "}"))
	require.Len(t, found, maxUnknown)
	require.Equal(t, "x00", found[0])

	require.NoError(t, o.CheckFixed([]byte(`{"page":1,"parts":[],"shape":"x"}`)))
	require.NoError(t, o.CheckFixed([]byte(`{`)))
	for _, body := range []string{`{"colour":1}`, `{"Colour":null}`, "{" + strings.Join(many, ",") + `,"zize":1,"size":2}`} {
		var e *cloud.Error
		require.ErrorAs(t, o.CheckFixed([]byte(body)), &e, body)
		require.Len(t, e.Fields, 1)
		for _, list := range e.Fields {
			require.Contains(t, list[0], "at, by_key, page, parts, texts")
		}
	}
}

// An unknown argument names the one that was probably meant: the closest by characters that are
// put in, taken out or changed, and none when more than half of them would be.
func TestAnUnknownArgumentNamesTheNearest(t *testing.T) {
	t.Parallel()
	tool := Tool{Name: "t", Arguments: Arguments("order_id integer", "business_id integer", "page integer")}
	for name, want := range map[string]string{
		"order_ids": "order_id", "orderid": "order_id", "order-id": "order_id", "busines_id": "business_id", "odrer_id": "order_id", "pages": "page", "gape": "page",
		"colour": "", "p": "", "x": "", strings.Repeat("page", 17): "",
	} {
		_, problems := tool.Check([]byte(fmt.Sprintf(`{%q:1}`, name)), "")
		require.Equal(t, []Problem{{Argument: short(name), Rule: "unknown", Want: want}}, problems, name)
	}
}

// A value beyond a bound names the bound, as people write it.
func TestAValueBeyondABoundNamesTheBound(t *testing.T) {
	t.Parallel()
	tool := Tool{Name: "t", Arguments: Arguments("amount number 0.25..25000000", "name text 2..3", "ids list integer 1..2")}
	for in, want := range map[string]Problem{
		`{"amount":0.2}`:      {"amount", "least", "0.2", "0.25"},
		`{"amount":25000001}`: {"amount", "most", "25000001", "25000000"},
		`{"name":"é"}`:        {"name", "shortest", `"é"`, "2"},
		`{"name":"éééé"}`:     {"name", "longest", `"éééé"`, "3"},
		`{"ids":[]}`:          {"ids", "fewest", "0", "1"},
		`{"ids":[1,2,3]}`:     {"ids", "many", "3", "2"},
	} {
		_, problems := tool.Check([]byte(in), "")
		require.Equal(t, []Problem{want}, problems, in)
	}
	_, problems := tool.Check([]byte(`{"amount":25000000,"name":"éé","ids":[1]}`), "")
	require.Empty(t, problems)
}

type shapedPart struct {
	Size int `json:"size"`
}

type shapedWhole struct {
	Part  *shapedPart  `json:"part"`
	Parts []shapedPart `json:"parts"`
}

// The schema of a tool's result stands alone: whatever may also be null has its members in it.
func TestASchemaOfAResultStandsAlone(t *testing.T) {
	t.Parallel()
	schema := string(shapeOf(reflect.TypeFor[shapedWhole](), false))
	require.NotContains(t, schema, "$ref")
	require.Equal(t, 2, strings.Count(schema, `"size":{`), schema)
}
