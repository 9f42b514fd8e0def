package api

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// entry is one thing on a time line.
type entry struct {
	At     string `json:"at"`
	Kind   string `json:"kind"`
	ID     any    `json:"id"`
	Title  string `json:"title"`
	Detail any    `json:"detail"`

	at time.Time
}

type timeLine struct {
	entries []entry
	left    []string // kinds that the caller may not see
}

// add puts rows on the line, by the names of their members.
func (l *timeLine) add(rows any, kind, at, title string) {
	list, _ := rows.([]any)
	for _, x := range list {
		row, _ := x.(map[string]any)
		text, _ := row[at].(string)
		moment, err := time.Parse(time.RFC3339, text)
		if err != nil {
			continue // has no moment, so no place on a time line
		}
		id := row["id"]
		for _, name := range []string{"event_id", "log_id"} {
			if id == nil {
				id = row[name]
			}
		}
		l.entries = append(l.entries, entry{At: text, Kind: kind, ID: id, Title: fmt.Sprint(row[title]), Detail: row, at: moment})
	}
}

// sorted are the newest entries, oldest first, and whether older ones are left
// out.
func (l *timeLine) sorted(limit int) ([]entry, bool) {
	slices.SortStableFunc(l.entries, func(a, b entry) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.Kind, b.Kind)) })
	cut := max(0, len(l.entries)-limit)
	return append([]entry{}, l.entries[cut:]...), cut > 0
}
