package check

import (
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/postern-io/postern/cloud"
)

type size string

func (size) Values() []string { return []string{"S", "M"} }

type box struct {
	Weight float64 `json:"weight" above:"0" max:"70"`
	Size   size    `json:"size"`
}

type shared struct {
	Note string `json:"note" max:"5"`
}

type tried struct {
	ID      int64             `path:"id" min:"1"`
	Page    *int              `query:"page" min:"1" max:"200"`
	PerPage int               `query:"per_page" default:"20" max:"200"`
	Sort    *string           `query:"sort" default:"-id"`
	Type    string            `json:"type" required:"true" enum:"D,P,P2P"`
	Name    *string           `json:"name" min:"2" max:"8" line:"true"`
	Text    string            `json:"text"`
	Day     string            `json:"day" format:"date"`
	At      string            `json:"at" format:"date-time"`
	Mail    string            `json:"mail" format:"email"`
	Site    string            `json:"site" format:"https"`
	Code    string            `json:"code" pattern:"^[A-Z]{2}$" example:"AB"`
	Boxes   []box             `json:"boxes" min:"1" max:"3"`
	Numbers []string          `json:"numbers" unique:"true" item_max:"4"`
	Wanted  []string          `json:"wanted" required:"true"`
	ByName  map[string]box    `json:"by_name"`
	More    *box              `json:"more"`
	Raw     json.RawMessage   `json:"raw"`
	Free    map[string]string `json:"free"`
	When    time.Time         `json:"when"`
	Hidden  string            `json:"-" required:"true"`
	Body    []byte            `body:"raw" required:"true"`
	shared
	Shared shared `json:"shared"`
}

// wrong is what is wrong with an input in JSON, by member.
func wrong(t require.TestingT, change func(in *tried)) map[string][]string {
	in := tried{Type: "D", Wanted: []string{"x"}, Boxes: []box{{Weight: 1}}}
	change(&in)
	err := Input(&in)
	if err == nil {
		return nil
	}
	var e *cloud.Error
	require.True(t, errors.As(err, &e))
	require.Equal(t, cloud.Invalid, e.Kind)
	return e.Fields
}

func TestInputs(t *testing.T) {
	t.Parallel()
	text := func(s string) *string { return &s }
	number := func(n int) *int { return &n }
	for name, c := range map[string]struct {
		change        func(in *tried)
		path, message string // "" when all is well
	}{
		"as it is":                     {func(*tried) {}, "", ""},
		"no type":                      {func(in *tried) { in.Type = "" }, "type", "type is required."},
		"another type":                 {func(in *tried) { in.Type = "X" }, "type", "type must be one of D, P, P2P."},
		"page 0":                       {func(in *tried) { in.Page = number(0) }, "page", "page must be from 1 to 200."},
		"page 200":                     {func(in *tried) { in.Page = number(200) }, "", ""},
		"page 201":                     {func(in *tried) { in.Page = number(201) }, "page", "page must be from 1 to 200."},
		"an id below":                  {func(in *tried) { in.ID = -4 }, "id", "id must be at least 1."},
		"per_page above":               {func(in *tried) { in.PerPage = 201 }, "per_page", "per_page must be at most 200."},
		"an empty name goes back":      {func(in *tried) { in.Name = text("") }, "", ""},
		"a short name":                 {func(in *tried) { in.Name = text("x") }, "name", "name must have 2 to 8 characters; it has 1."},
		"a name of eight characters":   {func(in *tried) { in.Name = text("ßßßßßßßß") }, "", ""},
		"a name of nine":               {func(in *tried) { in.Name = text("ßßßßßßßßß") }, "name", "name must have 2 to 8 characters; it has 9."},
		"two lines for a name":         {func(in *tried) { in.Name = text("a\nb") }, "name", "name must be one line, without control characters."},
		"two lines of text":            {func(in *tried) { in.Text = "a\n\tb\r" }, "", ""},
		"a zero byte":                  {func(in *tried) { in.Text = "a\x00b" }, "text", "text must not contain control characters."},
		"bytes that are no text":       {func(in *tried) { in.Text = "\xff" }, "text", "text must be valid UTF-8."},
		"a day":                        {func(in *tried) { in.Day = "2026-11-22" }, "", ""},
		"a day that never was":         {func(in *tried) { in.Day = "2026-11-31" }, "day", "day must look like 2026-11-20."},
		"a moment":                     {func(in *tried) { in.At = "2026-11-22T10:00:00Z" }, "", ""},
		"a moment in business time":    {func(in *tried) { in.At = "2026-11-22 10:00:00" }, "", ""},
		"no moment":                    {func(in *tried) { in.At = "noon" }, "at", "at must look like 2026-11-20T18:12:00-05:00."},
		"an address":                   {func(in *tried) { in.Mail = "ann@example.com" }, "", ""},
		"an address with a name":       {func(in *tried) { in.Mail = "Ann <ann@example.com>" }, "mail", "mail must look like ann@example.com."},
		"a site":                       {func(in *tried) { in.Site = "https://example.com" }, "", ""},
		"a site with a login":          {func(in *tried) { in.Site = "https://a:b@example.com" }, "site", "site must look like https://example.com/path."},
		"a site in the clear":          {func(in *tried) { in.Site = "http://example.com" }, "site", "site must look like https://example.com/path."},
		"a code":                       {func(in *tried) { in.Code = "XY" }, "", ""},
		"another code":                 {func(in *tried) { in.Code = "xyz" }, "code", "code must look like AB."},
		"no boxes but a list":          {func(in *tried) { in.Boxes = []box{} }, "boxes", "boxes must have 1 to 3 elements; it has 0."},
		"four boxes":                   {func(in *tried) { in.Boxes = make([]box, 4) }, "boxes", "boxes must have 1 to 3 elements; it has 4."},
		"a box of no weight":           {func(in *tried) { in.Boxes = []box{{Weight: 1}, {Weight: -1}} }, "boxes.1.weight", "boxes[1].weight must be above 0."},
		"a box that weighs nothing":    {func(in *tried) { in.Boxes = []box{{Weight: math.NaN()}} }, "boxes.0.weight", "boxes[0].weight must be above 0."},
		"a heavy box":                  {func(in *tried) { in.Boxes = []box{{Weight: 70.5}} }, "boxes.0.weight", "boxes[0].weight must be at most 70."},
		"a box of a size":              {func(in *tried) { in.Boxes = []box{{Weight: 1, Size: "M"}} }, "", ""},
		"a box of another size":        {func(in *tried) { in.Boxes = []box{{Weight: 1, Size: "Q"}} }, "boxes.0.size", "boxes[0].size must be one of S, M."},
		"a number twice":               {func(in *tried) { in.Numbers = []string{"a", "b", "a"} }, "numbers.2", "numbers[2] is in the list twice."},
		"a long number":                {func(in *tried) { in.Numbers = []string{"abcde"} }, "numbers.0", "numbers[0] must have at most 4 characters; it has 5."},
		"an empty list that is needed": {func(in *tried) { in.Wanted = []string{} }, "wanted", "wanted is required."},
		"a box by name":                {func(in *tried) { in.ByName = map[string]box{"a": {Weight: 71}} }, "by_name.a.weight", "by_name.a.weight must be at most 70."},
		"a box by address":             {func(in *tried) { in.More = &box{Weight: 71} }, "more.weight", "more.weight must be at most 70."},
		"JSON as it came":              {func(in *tried) { in.Raw = json.RawMessage(`{"weight":-1}`) }, "", ""},
		"an embedded note":             {func(in *tried) { in.Note = "abcdef" }, "note", "note must have at most 5 characters; it has 6."},
		"a note inside":                {func(in *tried) { in.Shared.Note = "abcdef" }, "shared.note", "shared.note must have at most 5 characters; it has 6."},
	} {
		got := wrong(t, c.change)
		if c.path == "" {
			require.Empty(t, got, name)
			continue
		}
		require.Equal(t, map[string][]string{c.path: {c.message}}, got, name)
	}
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	in := tried{Type: "D", Wanted: []string{"x"}, Boxes: []box{{Weight: 1}}}
	require.NoError(t, Input(&in))
	require.Equal(t, []any{20, "-id"}, []any{in.PerPage, *in.Sort})
	given := "id"
	in.PerPage, in.Sort = 5, &given
	require.NoError(t, Input(&in))
	require.Equal(t, []any{5, "id"}, []any{in.PerPage, *in.Sort})
}

// Whatever an input holds, checking it ends without a panic, and each message is
// one of Messages about its own path.
func TestAnyInput(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		word := rapid.StringN(0, 12, 40)
		got := wrong(r, func(in *tried) {
			in.Type, in.Text, in.Day, in.Mail, in.Site, in.Code = word.Draw(r, "type"), word.Draw(r, "text"), word.Draw(r, "day"), word.Draw(r, "mail"), word.Draw(r, "site"), word.Draw(r, "code")
			in.Numbers = rapid.SliceOfN(word, 0, 5).Draw(r, "numbers")
			in.Boxes = rapid.SliceOfN(rapid.Map(rapid.Float64(), func(w float64) box { return box{Weight: w} }), 0, 5).Draw(r, "boxes")
			in.ID = rapid.Int64().Draw(r, "id")
		})
		for path, messages := range got {
			for _, m := range messages {
				require.True(r, strings.HasPrefix(m, displayPath(path)+" "), "%s: %s", path, m)
			}
		}
	})
}

func TestTagsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for _, v := range []any{struct {
		A int `json:"a" min:"x"`
	}{}, struct {
		A string `json:"a" pattern:"("`
	}{}} {
		require.Panics(t, func() { RulesOf(reflect.TypeOf(v).Field(0)) })
	}
}
