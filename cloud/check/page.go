package check

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/postern-io/postern/cloud"
)

// Paging is the part of a list that a caller asks for. Inputs of lists embed it.
type Paging struct {
	Page    *int `query:"page" json:"page" default:"1" min:"1" max:"10000000" doc:"From 1"`
	PerPage *int `query:"per_page" json:"per_page" default:"20" min:"1" max:"200" doc:"Rows of a page"`
}

// LongPaging is Paging of lists that have 50 rows a page.
type LongPaging struct {
	Page    *int `query:"page" json:"page" default:"1" min:"1" max:"10000000" doc:"From 1"`
	PerPage *int `query:"per_page" json:"per_page" default:"50" min:"1" max:"200" doc:"Rows of a page"`
}

// Window is the page's number and size, and how many rows come before it. What was
// not given is the first page of 20 rows.
func (p Paging) Window() (page, perPage, offset int) { return window(p.Page, p.PerPage, 20) }

// Window is that of Paging, with 50 rows where no number was given.
func (p LongPaging) Window() (page, perPage, offset int) { return window(p.Page, p.PerPage, 50) }

func window(page, perPage *int, rows int) (number, size, offset int) {
	number, size = 1, rows
	if page != nil {
		number = *page
	}
	if perPage != nil {
		size = *perPage
	}
	return number, size, (number - 1) * size
}

// Keyset is Paging of lists that can go on behind a row as well: what comes by a
// cursor is neither shown twice nor left out when rows are added or removed
// meanwhile, and costs the same on every page.
type Keyset struct {
	Paging
	Cursor string `query:"cursor" json:"cursor" max:"400" doc:"next_cursor of the page before, with the same filters and sort, in place of page"`
}

// More is what a list that grows without a bound says beside its rows and its total.
type More struct {
	// LowerBound is set when there are more rows than total, which is not counted
	// further.
	LowerBound bool    `json:"total_is_lower_bound,omitempty"`
	NextCursor *string `json:"next_cursor"` // null on the last page
}

// cursorHash is how many bytes of a cursor say which list it belongs to.
const cursorHash = 8

// Mark is the row that the page begins behind, nil without a cursor. list is
// whatever else the caller asks for, its filters and sort: a cursor of another list
// is refused. Error: VALIDATION_FAILED.
func (k Keyset) Mark(list any) (*cloud.Mark, error) {
	if k.Cursor == "" {
		return nil, nil
	}
	f := Fields{}
	if k.Page != nil && *k.Page > 1 {
		f.Add("page", "Give a page or a cursor, not both.")
		return nil, f.Err()
	}
	m, ok := readCursor(k.Cursor, listHash(list))
	if !ok {
		f.Add("cursor", "This is no next_cursor of a list with these filters and this sort. Begin without a cursor.")
	}
	return m, f.Err()
}

// More is what to say of a list that was read.
func (k Keyset) More(list any, l cloud.Listed) More {
	out := More{LowerBound: l.AtLeast}
	if l.Next != nil {
		raw, _ := json.Marshal([]any{l.Next.Key, l.Next.ID}) // numbers and texts always encode
		hash := listHash(list)
		text := base64.RawURLEncoding.EncodeToString(append(hash[:], raw...))
		out.NextCursor = &text
	}
	return out
}

func listHash(list any) (hash [cursorHash]byte) {
	raw, _ := json.Marshal(list) // plain fields always encode
	sum := sha256.Sum256(raw)
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
