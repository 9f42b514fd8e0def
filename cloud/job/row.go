package job

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
)

// outcome is what a check found of a row, or what became of it.
type outcome struct {
	ID      string              `json:"id,omitempty"` // of the record
	Title   string              `json:"title,omitempty"`
	Code    string              `json:"code,omitempty"`    // of a refusal
	Args    []any               `json:"args,omitempty"`    // of its message
	Scope   string              `json:"scope,omitempty"`   // that the caller lacks
	Message string              `json:"message,omitempty"` // of a row that names no code and arguments
	Errors  map[string][]string `json:"errors,omitempty"`  // in English, by path of the member
	// Mark stands for what the row would change of its record.
	Mark string `json:"mark,omitempty"`
	// Changes are those of the record, as far as its person is shown them.
	Changes []Change `json:"changes,omitempty"`
}

// Change is a member of a record that a row would change.
type Change struct {
	Member string `json:"member"`
	Before any    `json:"before"`
	After  any    `json:"after"`
}

// GraphQLName is the name of the type in GraphQL.
func (Change) GraphQLName() string { return "BulkJobChange" }

// maxChanges bounds the changes of a row that are kept.
const maxChanges = 4

// changesOf are the changes of a record, in the order of their members.
func changesOf(effects []cloud.Effect, id string) (out []Change) {
	for _, e := range effects {
		if e.ID == nil || fmt.Sprint(e.ID) != id {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(e.After)) {
			if len(out) < maxChanges && name != "changed" && name != "order_status" { // its number says it
				out = append(out, Change{name, e.Before[name], e.After[name]})
			}
		}
	}
	return out
}

// refusal is the outcome of a row that is refused. It has words of no language: they are
// those of who reads it.
func refusal(x item, e *cloud.Error) outcome {
	out := outcome{ID: x.ID, Title: x.Title, Code: e.Code, Args: e.Args, Errors: map[string][]string{}}
	out.Scope, _ = e.Details["scope"].(string)
	for path, list := range e.Fields {
		out.Errors[FieldPath(path)] = list
	}
	return out
}

// message is why a row is refused or failed, as a whole.
func (o outcome) message(cfg Config, lang string) string {
	if o.Message != "" || o.Code == "" {
		return o.Message
	}
	args := slices.Clone(o.Args)
	for i, a := range args {
		if n, ok := a.(float64); ok { // as JSON has numbers
			args[i] = int64(n)
		}
	}
	return messageOf(cfg, lang, &cloud.Error{Code: o.Code, Args: args, Details: map[string]any{"scope": o.Scope}})
}

// messages are those about a member, by its name in words; "" is the row as a whole.
func (o outcome) messages(cfg Config, lang, path, name string) (out []string) {
	if path == "" && len(o.Errors) == 0 {
		return []string{o.message(cfg, lang)}
	}
	for _, m := range o.Errors[path] {
		out = append(out, cfg.Field(lang, m, name))
	}
	return out
}

// FieldPath is a path of an error, packages.0.weight, as forms and columns name the
// member: packages[0].weight.
func FieldPath(path string) string { return position.ReplaceAllString(path, "[$1]") }

var position = regexp.MustCompile(`\.(\d+)\b`)

// messageOf is an error in words.
func messageOf(cfg Config, lang string, e *cloud.Error) string {
	out := cfg.Message(lang, e.Code, e.Args...)
	if scope, _ := e.Details["scope"].(string); scope != "" {
		out += " (" + scope + ")"
	}
	return out
}

// RowsInput asks for the rows of a job.
type RowsInput struct {
	ID    string `path:"id" json:"-" doc:"job_id"`
	State string `query:"state" enum:"open,refused,done,failed"`
	check.Keyset
}

// RowView is a row of a job.
type RowView struct {
	Row      int         `json:"row" doc:"From 1; of a file the line behind the header"`
	State    string      `json:"row_state" enum:"open,refused,done,failed"`
	RecordID string      `json:"record_id"`
	Title    string      `json:"title"`
	Message  string      `json:"message" doc:"Why it is refused or failed"`
	Changes  []Change    `json:"changes" doc:"What would change of the record, of a row that is open"`
	Errors   []CellError `json:"errors" doc:"By column of the file, or member of the input"`
	Cells    []string    `json:"cells" doc:"Of a file's line, as long as it is not done"`
}

// CellError says what is wrong with a cell.
type CellError struct {
	Column  string   `json:"column" doc:"Header of the column; the member in words where there is none, or where it is the path"`
	Path    string   `json:"path"`
	Message string   `json:"message"`
	Choices []string `json:"choices" doc:"Values that are allowed, where they are few"`
}

// RowsOutput lists rows by number.
type RowsOutput struct {
	Result bool      `json:"result"`
	Rows   []RowView `json:"rows"`
	check.PageOutput
}

// GraphQLName is the name of the type in GraphQL.
func (RowView) GraphQLName() string { return "BulkJobRow" }

// GraphQLName is the name of the type in GraphQL.
func (RowsOutput) GraphQLName() string { return "BulkJobRows" }

// Rows lists the rows of a job. Error: JOB_NOT_FOUND.
func (s *Service) Rows(ctx context.Context, c cloud.Caller, in RowsInput) (RowsOutput, error) {
	page, err := in.Part(in, "id")
	if err != nil {
		return RowsOutput{}, err
	}
	var j cloud.Job
	if err := s.cfg.Store.Look(ctx, func(v cloud.View) (err error) { j, err = own(v, c, in.ID); return err }); err != nil {
		return RowsOutput{}, err
	}
	listed, rows, err := s.cfg.Store.PickJobRows(ctx, cloud.JobRowFilter{JobID: j.ID, State: map[string]string{"refused": "bad"}[in.State] + map[bool]string{true: in.State}[in.State != "refused"], Page: page})
	if err != nil {
		return RowsOutput{}, err
	}
	out := RowsOutput{Result: true, Rows: []RowView{}, PageOutput: in.Output(in, listed)}
	var known []Column
	if o := s.table.Find(j.Operation); o != nil {
		known = FlatColumns(o)
	}
	for _, r := range rows {
		out.Rows = append(out.Rows, s.showRow(c.Language, j, known, r))
	}
	return out, nil
}

func (s *Service) showRow(lang string, j cloud.Job, known []Column, r cloud.JobRow) RowView {
	var x item
	var o outcome
	_ = json.Unmarshal(r.Input, &x) // empty when it is done
	out := RowView{Row: r.Row, State: "open", Changes: []Change{}, Errors: []CellError{}, Cells: append([]string{}, x.Cells...)}
	switch {
	case r.Result != nil:
		out.State = map[bool]string{true: "failed", false: "done"}[r.Failed]
		_ = json.Unmarshal(r.Result, &o)
		if j.Operation == "" {
			var made struct {
				OrderID *int64  `json:"order_id"`
				Number  *string `json:"tracking_number"`
			}
			_ = json.Unmarshal(r.Result, &made)
			if made.OrderID != nil {
				o.ID = text(float64(*made.OrderID))
			}
			if made.Number != nil {
				o.Title = *made.Number
			}
		}
	case r.Checked != nil:
		_ = json.Unmarshal(r.Checked, &o)
		out.Changes = append(out.Changes, o.Changes...)
		if r.Bad {
			out.State = "refused"
		}
	}
	out.RecordID, out.Title, out.Message = o.ID, o.Title, o.message(s.cfg, lang)
	if out.RecordID == "" {
		out.RecordID, out.Title = x.ID, x.Title
	}
	if out.Title == "" {
		out.Title = out.RecordID
	}
	for _, path := range slices.Sorted(maps.Keys(o.Errors)) {
		e := CellError{Column: column(s.cfg, lang, j, path), Path: path, Choices: choices(s.cfg, lang, known, path)}
		e.Message = strings.Join(o.messages(s.cfg, lang, path, e.Column), " ")
		out.Errors = append(out.Errors, e)
	}
	return out
}

// column is what the people of a file call a member: the name of its column, else the
// member in words.
func column(cfg Config, lang string, j cloud.Job, path string) string {
	if i := slices.Index(j.Columns, path); i >= 0 && i < len(j.Headers) {
		return ColumnName(cfg.Word, lang, j.Headers[i], path)
	}
	return Label(cfg.Word, lang, path)
}

// choices are the values that a member allows, in words, where they are few.
func choices(cfg Config, lang string, known []Column, path string) []string {
	out := []string{}
	for _, f := range known {
		if f.Path != path {
			continue
		}
		for _, v := range f.choices() {
			word := cfg.Word(lang, "value."+v)
			if word == "value."+v {
				word = v
			}
			out = append(out, word)
		}
	}
	return out
}

// isColumn reports whether a member is one of those that a file can fill.
func isColumn(known []Column, path string) bool {
	return slices.ContainsFunc(known, func(c Column) bool { return c.Path == path })
}
