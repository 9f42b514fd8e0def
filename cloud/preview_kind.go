package cloud

import (
	"reflect"
	"slices"
	"strings"
	"unicode"
)

// following are the members of Changes that follow of themselves from others, each with
// the reason. A preview names them only when it has nothing else to say.
var following = map[string]string{
	"Audits":          "says what was done",
	"OrderOperations": "says what was done to an order",
	"Events":          "says what happened to a thing that changes",
	"Outbox":          "tells receivers of what changes",
	"Live":            "tells apps of what changes",
	"Reworded":        "tells apps of it in other words",
	"Pushes":          "tells telephones of what changes",
	"RewordedPushes":  "tells telephones of it in other words",
	"ProofGuesses":    "counts tries",
	"Reminders":       "follows the time to collect a delivery",
	"StaffRotas":      "counts changes of staff codes",
	"StaffLists":      "follows the staff codes of a business",
	"Mocks":           "is how a mock cabinet takes orders",
	"HTTPDevices":     "is how a device that speaks HTTP takes orders",
	"HTTPNonces":      "keeps a request from being used again",
	"DropTickets":     "removes what has expired",
	"DropOAuth":       "removes what has expired",
	"DropJobsBefore":  "removes what has expired",
}

// kinds are effects of c that only name a kind of things that it changes: those that
// have no effect of their own (shown), and those that follow of themselves. Audit lines
// are none: a call that only leaves one changes nothing.
func (c *Changes) kinds(shown map[string]bool) (named, follows []Effect) {
	for member, v := range c.each {
		list := v.Kind() == reflect.Slice || v.Kind() == reflect.Map
		if member.Tag.Get("change") == condition || member.Name == "Audits" || shown[member.Name] || list && v.Len() == 0 || v.IsZero() {
			continue
		}
		e := Effect{Type: KindOf(member.Name), Before: map[string]any{}, After: map[string]any{"changed": true}}
		if following[member.Name] != "" {
			follows = append(follows, e)
		} else {
			named = append(named, e)
		}
	}
	return named, follows
}

// addKinds adds effects that name a kind which none in list names.
func addKinds(list, kinds []Effect) []Effect {
	for _, k := range kinds {
		if !slices.ContainsFunc(list, func(e Effect) bool { return e.Type == k.Type }) {
			list = append(list, k)
		}
	}
	return list
}

// snakeCase is the name of a member in small letters with underscores.
func snakeCase(member string) string {
	var b strings.Builder
	small := false // the letter before was one
	for _, r := range member {
		if unicode.IsUpper(r) && small {
			b.WriteByte('_')
		}
		small = unicode.IsLower(r)
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// KindOf is the name of a kind of things by that of a member: ChatReads are of
// the kind chat_read.
func KindOf(member string) string {
	name := snakeCase(member)
	if y, ok := strings.CutSuffix(name, "ies"); ok {
		return y + "y"
	}
	for many, one := range map[string]string{"sses": "ss", "ches": "ch", "shes": "sh", "lves": "lf"} {
		if stem, ok := strings.CutSuffix(name, many); ok {
			return stem + one
		}
	}
	return strings.TrimSuffix(name, "s")
}
