package check

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"github.com/postern-io/postern/cloud"
)

// Keyset is the part of a list that a caller asks for. Inputs of lists embed it. A
// page that comes by a cursor shows no row twice and leaves none out when rows are
// added or removed meanwhile, and costs the same wherever it is.
type Keyset struct {
	Page    *int   `query:"page" json:"page" default:"1" min:"1" max:"10000000" doc:"From 1"`
	PerPage *int   `query:"per_page" json:"per_page" default:"20" min:"1" max:"200" doc:"Rows of a page"`
	Cursor  string `query:"cursor" json:"cursor" max:"2400" doc:"next_cursor of the page before, with the same filters and sort, in place of page"`
}

// LongKeyset is a Keyset of 50 rows a page.
type LongKeyset struct {
	Keyset
	PerPage *int `query:"per_page" json:"per_page" default:"50" min:"1" max:"200" doc:"Rows of a page"`
}

// PageOutput is the part of a list that an answer shows. Answers of lists embed it.
type PageOutput struct {
	Total   int `json:"total"`
	Page    int `json:"page"`
	PerPage int `json:"per_page"`
	// LowerBound is set when there are more rows than Total, which is not counted
	// further.
	LowerBound bool    `json:"total_is_lower_bound,omitempty"`
	NextCursor *string `json:"next_cursor"` // null on the last page
}

// cursorHash is how many bytes of a cursor say which list it belongs to.
const cursorHash = 8

// short is a long page as any other.
func (k LongKeyset) short() Keyset {
	if k.Keyset.PerPage = k.PerPage; k.PerPage == nil {
		k.Keyset.PerPage = new(50)
	}
	return k.Keyset
}

// Part is Keyset.Part.
func (k LongKeyset) Part(in any, sort string) (cloud.Page, error) { return k.short().Part(in, sort) }

// Output is Keyset.Output.
func (k LongKeyset) Output(in any, l cloud.Listed) PageOutput { return k.short().Output(in, l) }

// window is the page's number and size; what was not given is the first page of 20
// rows.
func (k Keyset) window() (page, perPage int) {
	page, perPage = 1, 20
	if k.Page != nil {
		page = *k.Page
	}
	if k.PerPage != nil {
		perPage = *k.PerPage
	}
	return page, perPage
}

// Part is the part that is asked for, sorted by a column, or with - before it the
// other way round. in is the input that embeds the Keyset: a cursor of another list,
// with other filters or another sort, is refused. Errors: VALIDATION_FAILED,
// cloud.ErrNoMark.
func (k Keyset) Part(in any, sort string) (cloud.Page, error) {
	page, perPage := k.window()
	out := cloud.Page{Offset: (page - 1) * perPage, Limit: perPage}
	out.Sort, out.Down = strings.CutPrefix(sort, "-")
	if k.Cursor == "" {
		return out, nil
	}
	if page > 1 {
		f := Fields{}
		f.Add("page", "Give a page or a cursor, not both.")
		return out, f.Err()
	}
	m, ok := readCursor(k.Cursor, listHash(in))
	if !ok {
		return out, cloud.ErrNoMark
	}
	out.After = m
	return out, nil
}

// Output is what to say of the list that an input asked for.
func (k Keyset) Output(in any, l cloud.Listed) PageOutput {
	page, perPage := k.window()
	out := PageOutput{Total: l.Total, Page: page, PerPage: perPage, LowerBound: l.AtLeast}
	if l.Next != nil {
		raw, _ := json.Marshal([]any{l.Next.Key, l.Next.ID}) // numbers and texts always encode
		hash := listHash(in)
		text := base64.RawURLEncoding.EncodeToString(append(hash[:], raw...))
		out.NextCursor = &text
	}
	return out
}

// listHash is of all members of an input but its Keyset, and of the input's type:
// lists without filters are not the same.
func listHash(in any) (hash [cursorHash]byte) {
	v := reflect.Indirect(reflect.ValueOf(in))
	asked := map[string]any{}
	for _, f := range reflect.VisibleFields(v.Type()) {
		if !f.Anonymous && !slices.Contains([]string{"Page", "PerPage", "Cursor"}, f.Name) {
			asked[f.Name] = v.FieldByIndex(f.Index).Interface()
		}
	}
	raw, _ := json.Marshal(asked) // plain members always encode
	sum := sha256.Sum256(append(raw, v.Type().String()...))
	copy(hash[:], sum[:])
	return hash
}

func readCursor(text string, of [cursorHash]byte) (*cloud.Mark, bool) {
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(raw) < cursorHash || !bytes.Equal(raw[:cursorHash], of[:]) {
		return nil, false
	}
	d := json.NewDecoder(bytes.NewReader(raw[cursorHash:]))
	d.UseNumber()
	var parts []any
	if err := d.Decode(&parts); err != nil || len(parts) != 2 || d.More() {
		return nil, false
	}
	for i, p := range parts {
		switch p := p.(type) {
		case json.Number:
			n, err := p.Int64()
			if err != nil {
				return nil, false
			}
			parts[i] = n
		case string:
			if strings.ContainsRune(p, 0) {
				return nil, false
			}
		case nil:
		default:
			return nil, false
		}
	}
	return &cloud.Mark{Key: parts[0], ID: parts[1]}, true
}
