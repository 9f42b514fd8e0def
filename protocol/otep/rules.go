package otep

import (
	"fmt"
	"slices"
	"strings"
)

// Rule is one rule of conformance.
type Rule struct {
	ID      string
	Warning bool   // does not cost conformance
	Message string // English and fixed; %s stand for an entry's Args, in their order
}

// Whole reports whether the rule looks at the timeline as a whole and not at
// one member of it.
func (r Rule) Whole() bool { return r.ID >= "V40" }

var rules = []Rule{
	{"V01", false, "timeline must be a JSON object"},
	{"V02", false, "otep_version is required"},
	{"V03", false, "otep_version '%s' is not supported"},
	{"V04", true, "otep_version '%s' is newer than " + Version},
	{"V05", true, "profile is missing, '" + DefaultProfile + "' is assumed"},
	{"V06", false, "profile '%s' is not a valid name"},
	{"V07", true, "profile '%s' is not registered"},
	{"V08", false, "subject needs at least one identifier"},
	{"V09", false, "%s is not valid"},
	{"V10", false, "events is required (array)"},
	{"V11", false, "occurred_at is required (ISO-8601 with offset)"},
	{"V12", false, "occurred_at must be ISO-8601 with offset"},
	{"V13", true, "occurred_at is in the future"},
	{"V14", false, "recorded_at must be ISO-8601 with offset"},
	{"V15", true, "recorded_at is before occurred_at"},
	{"V16", false, "otep_version differs from the timeline"},
	{"V17", false, "status_code is required"},
	{"V18", false, "status_code '%s' is not an OTEP status code"},
	{"V19", true, "status_code '%s' should be '%s'"},
	{"V20", true, "status_code '%s' is experimental"},
	{"V21", false, "phase '%s' disagrees with status_code (expected '%s')"},
	{"V22", false, "phase is required for an unregistered status_code"},
	{"V23", true, "source is missing"},
	{"V24", false, "source.type '%s' is not one of: " + familyList()},
	{"V25", true, "source.type '%s' should be '%s'"},
	{"V26", false, "location is not valid"},
	{"V27", true, "country should be ISO 3166-1 alpha-2"},
	{"V28", false, "incident_reason '%s' is not an OTEP incident reason"},
	{"V29", true, "incident_reason '%s' is experimental"},
	{"V30", true, "incident_reason is unusual for '%s'"},
	{"V31", true, "pod is unusual for '%s'"},
	{"V32", false, "telemetry needs type and numeric value"},
	{"V33", false, "time_type '%s' is not valid"},
	{"V34", false, "event_id '%s' is repeated"},
	{"V35", false, "event must be an object"},
	{"V36", false, "%s must be %s"},
	{"V37", false, "%s is longer than %s"},
	{"V38", true, "%s '%s' is not well formed"},
	{"V39", true, "member '%s' is not known: %s"},
	{"V40", true, "events is empty"},
	{"V41", true, "events are not in order of occurred_at"},
	{"V42", false, "transition from '%s' to '%s' is not valid"},
	{"V43", false, "'%s' follows terminal status '%s'"},
	{"V44", false, "current_status '%s' is not the latest event ('%s')"},
	{"V45", false, "delivered disagrees with the latest event"},
}

func familyList() string {
	var out []string
	for _, f := range families {
		out = append(out, f.Type)
	}
	return strings.Join(out, ", ")
}

// Rules lists the rules by id.
func Rules() []Rule { return slices.Clone(rules) }

var ruleByID = func() map[string]*Rule {
	m := make(map[string]*Rule, len(rules))
	for i := range rules {
		m[rules[i].ID] = &rules[i]
	}
	return m
}()

// Entry is one finding.
type Entry struct {
	Rule    string   // id
	Path    string   // dotted names, [n] for items from 0, $ for the body
	Message string   // English
	Event   int      // index of the event it is about, -1 for the envelope
	Args    []string // the values in Message
}

// Report is what conformance says about a timeline. Entries stand envelope
// first, then by event and rule, then those of the timeline as a whole.
type Report struct {
	Errors   []Entry
	Warnings []Entry
	// Level is 0 with any error, 2 without one when a code of a single profile
	// is used, 1 otherwise.
	Level int
}

// Conformant reports whether there is no error.
func (r Report) Conformant() bool { return len(r.Errors) == 0 }

// Refused reports whether ingest must refuse an event, or with -1 the whole
// timeline, for an error of its own. Errors of the timeline as a whole refuse
// nothing: real sources skip.
func (r Report) Refused(event int) bool {
	return slices.ContainsFunc(r.Errors, func(e Entry) bool { return e.Event == event && !ruleByID[e.Rule].Whole() })
}

// Tolerant is the report as ingest takes it: errors of the timeline as a whole
// are warnings.
func (r Report) Tolerant() Report {
	t := Report{Warnings: slices.Clone(r.Warnings), Level: r.Level}
	for _, e := range r.Errors {
		if ruleByID[e.Rule].Whole() {
			t.Warnings = append(t.Warnings, e)
		} else {
			t.Errors = append(t.Errors, e)
		}
	}
	return t
}

// add notes a finding. args are the values of the rule's message.
func (r *Report) add(id, path string, event int, args ...string) {
	rule := ruleByID[id]
	e := Entry{Rule: id, Path: path, Message: rule.Message, Event: event, Args: args}
	if len(args) > 0 {
		values := make([]any, len(args))
		for i, a := range args {
			values[i] = a
		}
		e.Message = fmt.Sprintf(rule.Message, values...)
	}
	if rule.Warning {
		r.Warnings = append(r.Warnings, e)
	} else {
		r.Errors = append(r.Errors, e)
	}
}

// Entry is the finding that a bad move is, at a path. event is the index of the
// event that it leads to, as its sender counts.
func (m Move) Entry(path string, event int) Entry {
	var r Report
	if m.Ended {
		r.add("V43", path, event, string(m.To), string(m.From))
	} else {
		r.add("V42", path, event, string(m.From), string(m.To))
	}
	return r.Errors[0]
}
