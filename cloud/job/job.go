// Package job does work over many rows in the background: a verb over chosen records of
// a list, and the records of a file.
//
// A job is made, its rows are checked (each call is tried without writing anything),
// its person looks at what was found and starts it, and then each good row is run as its
// person may call the operation at that moment. What a row writes and its result are one
// transaction, so a row is done once, on however many nodes and however often they end.
// A right that is taken in the middle ends the job with that reason. A line of a file is
// imported once in a business, whichever job does it. Safe for concurrent use.
package job

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/check"
)

// Store is what jobs need of the database.
type Store interface {
	Decide(ctx context.Context, d cloud.DeviceID, fn func(cloud.View) (*cloud.Changes, error)) error
	Look(ctx context.Context, fn func(cloud.View) error) error
	WaitingJobs(ctx context.Context, now time.Time, limit int) ([]cloud.Job, error)
	LeaseJob(ctx context.Context, id string, now, until time.Time) error
	ReleaseJob(ctx context.Context, id string) error
	ReleaseJobs(ctx context.Context) error
	ListRowsToCheck(ctx context.Context, job string, after, limit int) ([]cloud.JobRow, error)
	ListRowsToDo(ctx context.Context, job string, after, limit int) ([]cloud.JobRow, error)
	FailJobRow(ctx context.Context, job string, row int, result []byte) error
	ListJobs(ctx context.Context, f cloud.JobFilter) (cloud.Listed, []cloud.Job, error)
	PickJobRows(ctx context.Context, f cloud.JobRowFilter) (cloud.Listed, []cloud.JobRow, error)
}

// Config is what New needs.
type Config struct {
	Store     Store
	Pipeline  *catalog.Pipeline
	DigestKey []byte
	Log       *slog.Logger // nil: nothing is logged
	// Message is an error in words, and Field a message about a member, by its name in words.
	Message func(lang, code string, args ...any) string
	Field   func(lang, message, member string) string
	// Word is a text of the pages, by its key.
	Word      func(lang, key string, args ...any) string
	Languages []string
	// Country is the code of a country that a file names, and the text itself for one that is
	// not known; nil: files have codes.
	Country func(name string) string
}

// Service makes jobs and runs them.
type Service struct {
	cfg   Config
	table *catalog.Catalog
	wake  chan struct{}

	mu      sync.Mutex
	running map[string]bool // jobs that this node works on
}

// New builds a service; Serve gives it the operations.
func New(cfg Config) *Service {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Service{cfg: cfg, wake: make(chan struct{}, 1), running: map[string]bool{}}
}

// Serve gives the operations that jobs run. It is called once, before any job is.
func (s *Service) Serve(table *catalog.Catalog) { s.table = table }

// Bounds.
const (
	// MaxLines are the most lines of a file.
	MaxLines = 20_000
	// TypedOver is the number of records from which a person types it to start a job.
	TypedOver = 50
)

// Input asks for a verb over records: those that are named, or all that a filter of
// their list finds.
type Input struct {
	Noun      string          `json:"noun" required:"true" max:"40" pattern:"^[a-z_]+$" doc:"Kind of the records: order, delivery"`
	Operation string          `json:"operation" required:"true" max:"80" doc:"Name of the operation that is run for each record"`
	IDs       []string        `json:"ids" max:"1000" rows:"true" doc:"Of the records, in place of filter"`
	Filter    string          `json:"filter" max:"1000" line:"true" doc:"Query of the records' list; all that it finds are taken"`
	All       *bool           `json:"all" doc:"true: all records of the list, with an empty filter too"`
	Input     json.RawMessage `json:"input" doc:"Members of the operation's input, but for the record itself, as an object"`
}

// View is a job as it is answered.
type View struct {
	ID         string   `json:"job_id"`
	Noun       string   `json:"noun"`
	Operation  string   `json:"operation"`
	File       string   `json:"file_name" doc:"Of an import; empty for others"`
	Status     string   `json:"status" enum:"checking,checked,queued,processing,completed,failed,cancelled"`
	Total      int      `json:"total"`
	Checked    int      `json:"checked" doc:"Rows that were checked"`
	Good       int      `json:"good" doc:"Rows that can be done"`
	Refused    int      `json:"refused" doc:"Rows that the check found bad; they are left out"`
	Succeeded  int      `json:"succeeded"`
	Failed     int      `json:"failed"`
	Reason     string   `json:"reason" doc:"Why the job ended early"`
	Digest     string   `json:"digest" doc:"Stands for what the check showed; a start names it"`
	Headers    []string `json:"headers" doc:"Columns of the file"`
	Columns    []string `json:"columns" doc:"Member of the input that each column fills, by path; empty for none"`
	CreatedBy  string   `json:"created_by"`
	CreatedAt  *string  `json:"created_at"`
	StartedAt  *string  `json:"started_at"`
	FinishedAt *string  `json:"finished_at"`
}

// Output shows a job.
type Output struct {
	Result bool `json:"result"`
	Job    View `json:"job"`
}

// GraphQLName is the name of the type in GraphQL.
func (View) GraphQLName() string { return "BulkJob" }

// GraphQLName is the name of the type in GraphQL.
func (Output) GraphQLName() string { return "BulkJobResult" }

// ByID names a job.
type ByID struct {
	ID string `path:"id" json:"-" doc:"job_id"`
}

func missing() error { return cloud.E(cloud.NotFound, "JOB_NOT_FOUND") }

// person refuses callers who are no person that signed in: what a key or a program may
// do without asking is judged call by call. Error: JOB_NEEDS_PERSON.
func person(ctx context.Context) error {
	if t, ok := catalog.TokenOf(ctx); !ok || !t.Login() || t.Kind != "" {
		return cloud.E(cloud.Forbidden, "JOB_NEEDS_PERSON")
	}
	return nil
}

// operation finds the operation of a noun that may be done to many. Error:
// VALIDATION_FAILED.
func (s *Service) operation(noun, name string) (*catalog.Noun, *catalog.Operation, error) {
	n, o := s.table.Noun(noun), s.table.Find(name)
	f := check.Fields{}
	switch {
	case n == nil || n.ID == "":
		f.Say("noun", "There is no such kind of record.")
	case o == nil || o.Many == 0 || !slices.Contains(n.Verbs, name) && n.Create != name:
		f.Say("operation", "This operation cannot be done to many records of this kind.")
	}
	return n, o, f.Err()
}

// begun is a new job of a caller.
func (s *Service) begun(ctx context.Context, c cloud.Caller, noun, operation string) (cloud.Job, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return cloud.Job{}, fmt.Errorf("make job id: %w", err)
	}
	return cloud.Job{ID: fmt.Sprintf("bat_%x", id[:]), BusinessID: c.Account.BusinessID, AccountID: c.Account.ID, Surface: c.Surface, Language: c.Language,
		BaseURL: c.ForOthers().BaseURL, IP: catalog.AddressOf(ctx), Status: cloud.JobChecking, CreatedAt: time.Now().UTC(), Noun: noun, Operation: operation}, nil
}

// item is what a row is about: a record, or the cells of a line.
type item struct {
	ID    string   `json:"id,omitempty"`
	Title string   `json:"title,omitempty"`
	Cells []string `json:"cells,omitempty"`
}

// Create makes a job of a verb over records and checks its rows; nothing else is
// written. Errors: VALIDATION_FAILED, JOB_NEEDS_PERSON, JOB_TOO_LARGE, those of the
// operation's rights.
func (s *Service) Create(ctx context.Context, c cloud.Caller, in Input) (Output, error) {
	n, o, err := s.operation(in.Noun, in.Operation)
	if err = errors.Join(person(ctx), err); err != nil {
		return Output{}, err
	}
	f := check.Fields{}
	shared := map[string]any{}
	if len(in.Input) > 0 && json.Unmarshal(in.Input, &shared) != nil {
		f.Say("input", check.MessageObject)
	}
	for name := range shared {
		if strings.Contains(name, "password") || strings.Contains(name, "secret") { // a job would keep it
			f.Say("input", "A secret is given for one record alone.")
		}
	}
	if o.Name == n.Create {
		f.Say("operation", "This operation cannot be done to many records of this kind.")
	}
	all := in.All != nil && *in.All
	if len(in.IDs) == 0 && !all && in.Filter == "" {
		f.Say("ids", "Name the records, or give a filter.")
	}
	query, err := url.ParseQuery(in.Filter)
	if err != nil {
		f.Say("filter", "The filter must be the query of an address.")
	}
	if err := f.Err(); err != nil {
		return Output{}, err
	}
	if err := s.cfg.Pipeline.May(ctx, o, c); err != nil {
		return Output{}, err
	}
	var items []item
	for _, id := range in.IDs {
		if !slices.ContainsFunc(items, func(x item) bool { return x.ID == id }) {
			items = append(items, item{ID: id})
		}
	}
	if len(in.IDs) == 0 {
		if items, err = s.found(ctx, c, n, o, query); err != nil {
			return Output{}, err
		}
	}
	if len(items) > o.Many {
		return Output{}, cloud.E(cloud.Invalid, "JOB_TOO_LARGE", o.Many)
	}
	j, err := s.begun(ctx, c, n.Name, o.Name)
	if err != nil {
		return Output{}, err
	}
	j.Shared = in.Input
	return s.save(ctx, c, j, items)
}

// save stores a new job with its rows.
func (s *Service) save(ctx context.Context, c cloud.Caller, j cloud.Job, items []item) (out Output, err error) {
	j.Total = len(items)
	ch := &cloud.Changes{}
	for i, x := range items {
		raw, err := json.Marshal(x)
		if err != nil {
			return Output{}, fmt.Errorf("encode row %d: %w", i+1, err)
		}
		ch.JobRows = append(ch.JobRows, cloud.JobRow{JobID: j.ID, Row: i + 1, Input: raw})
	}
	ch.Jobs = []cloud.Job{j}
	err = s.cfg.Store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		view, err := show(v, j, cloud.JobCount{})
		out = Output{true, view}
		ch.Answer = out
		return ch, err
	})
	return out, err
}

// found are the records that a list finds, at most one more than an operation takes.
func (s *Service) found(ctx context.Context, c cloud.Caller, n *catalog.Noun, o *catalog.Operation, query url.Values) (out []item, err error) {
	list := s.table.Find(n.List)
	if list == nil || list.Target() != "" {
		return nil, missing()
	}
	in := map[string]any{}
	pages := false
	for _, m := range list.Members() {
		if x := query.Get(m.Name); x != "" && m.Name != "cursor" && m.Name != "page" {
			in[m.Name] = x
		}
		if m.Name == "per_page" {
			pages, in["per_page"] = true, 100
		}
	}
	member, _ := list.Listed()
	admitted := catalog.Admitted(ctx, c)
	for {
		answer, err := s.run(admitted, list, catalog.Who{IP: catalog.AddressOf(ctx), Language: c.Language, BaseURL: c.BaseURL, Surface: c.Surface}, in)
		if err != nil {
			return nil, err
		}
		rows, _ := answer[member].([]any)
		for _, x := range rows {
			r, _ := x.(map[string]any)
			if id := text(r[n.ID]); id != "" {
				out = append(out, item{ID: id, Title: title(n, r)})
			}
		}
		next := text(answer["next_cursor"])
		if !pages || next == "" || len(rows) == 0 || len(out) > o.Many {
			return out, nil
		}
		in["cursor"] = next
	}
}

// run is an operation's answer as JSON has it.
func (s *Service) run(ctx context.Context, o *catalog.Operation, who catalog.Who, in map[string]any) (map[string]any, error) {
	ctx, c, _, err := s.cfg.Pipeline.Admit(ctx, o, who)
	if err != nil {
		return nil, err
	}
	a, err := s.cfg.Pipeline.Run(ctx, o, c, catalog.Key{}, o.Values(in))
	if err != nil {
		return nil, err
	}
	return object(a.Body)
}

// object is a value as JSON has it; nil when it is no object.
func object(v any) (out map[string]any, err error) {
	if v == nil {
		return nil, nil
	}
	raw, err := json.Marshal(v)
	if err == nil {
		_ = json.Unmarshal(raw, &out)
	}
	return out, err
}

// text is a plain value of JSON as text, "" for none.
func text(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case bool:
		return strconv.FormatBool(v)
	}
	return ""
}

// title is what people call a record.
func title(n *catalog.Noun, r map[string]any) string {
	for _, path := range n.Title {
		if t := text(r[path]); t != "" {
			return t
		}
	}
	return text(r[n.ID])
}

// show is a job with its figures.
func show(v cloud.View, j cloud.Job, n cloud.JobCount) (View, error) {
	b, err := v.Business(j.BusinessID)
	if err != nil {
		return View{}, err
	}
	a, err := v.Account(j.AccountID)
	if err != nil && !errors.Is(err, cloud.ErrNotFound) {
		return View{}, err
	}
	out := View{ID: j.ID, Noun: j.Noun, Operation: j.Operation, File: j.File, Status: j.Status, Total: j.Total, Checked: n.Checked, Good: n.Checked - n.Bad, Refused: n.Bad,
		Succeeded: n.Processed - n.Failed, Failed: n.Failed, Reason: j.Reason, Headers: j.Headers, Columns: j.Columns, CreatedBy: cmp.Or(a.Name, a.Email),
		CreatedAt: cloud.Stamp(j.CreatedAt, b.Location()), StartedAt: cloud.Stamp(j.StartedAt, b.Location()), FinishedAt: cloud.Stamp(j.FinishedAt, b.Location())}
	out.Headers, out.Columns = append([]string{}, j.Headers...), append([]string{}, j.Columns...)
	if j.Operation == "" { // the orders of a batch
		out.Noun, out.Operation, out.Checked, out.Good = "order", "orders.create", j.Total, j.Total
	}
	if j.Status == cloud.JobChecked {
		out.Digest = j.Digest
	}
	return out, nil
}

// own reads a job that the caller sees: their own, for administrators all of the
// business. Error: JOB_NOT_FOUND.
func own(v cloud.View, c cloud.Caller, id string) (cloud.Job, error) {
	if id == "" || len(id) > 80 || slices.ContainsFunc([]byte(id), func(b byte) bool { return b < ' ' || b > '~' }) {
		return cloud.Job{}, missing()
	}
	j, err := v.Job(c.Account.BusinessID, id)
	if errors.Is(err, cloud.ErrNotFound) || err == nil && j.AccountID != c.Account.ID && c.Account.Type != cloud.ClientAdmin {
		return j, missing()
	}
	return j, err
}

// Find shows a job. Error: JOB_NOT_FOUND.
func (s *Service) Find(ctx context.Context, c cloud.Caller, in ByID) (out Output, err error) {
	err = s.cfg.Store.Look(ctx, func(v cloud.View) error {
		j, err := own(v, c, in.ID)
		if err != nil {
			return err
		}
		n, err := v.JobCount(j.ID)
		if err == nil {
			out.Job, err = show(v, j, n)
		}
		return err
	})
	out.Result = err == nil
	return out, err
}

// ListInput asks for jobs.
type ListInput struct {
	Status string `query:"status" enum:"checking,checked,queued,processing,completed,failed,cancelled"`
	check.Keyset
}

// ListOutput lists jobs, newest first.
type ListOutput struct {
	Result bool   `json:"result"`
	Jobs   []View `json:"jobs"`
	check.PageOutput
}

// GraphQLName is the name of the type in GraphQL.
func (ListOutput) GraphQLName() string { return "BulkJobList" }

// List lists the caller's jobs, for administrators those of the business.
func (s *Service) List(ctx context.Context, c cloud.Caller, in ListInput) (ListOutput, error) {
	page, err := in.Part(in, "-id")
	if err != nil {
		return ListOutput{}, err
	}
	f := cloud.JobFilter{BusinessID: c.Account.BusinessID, Status: in.Status, Page: page}
	if c.Account.Type != cloud.ClientAdmin {
		f.AccountID = c.Account.ID
	}
	listed, jobs, err := s.cfg.Store.ListJobs(ctx, f)
	if err != nil {
		return ListOutput{}, err
	}
	out := ListOutput{Result: true, Jobs: []View{}, PageOutput: in.Output(in, listed)}
	err = s.cfg.Store.Look(ctx, func(v cloud.View) error {
		out.Jobs = out.Jobs[:0]
		for _, j := range jobs {
			n, err := v.JobCount(j.ID)
			if err != nil {
				return err
			}
			x, err := show(v, j, n)
			if err != nil {
				return err
			}
			out.Jobs = append(out.Jobs, x)
		}
		return nil
	})
	return out, err
}

// allowed says why a caller may not call the operation of a job.
func (s *Service) allowed(ctx context.Context, c cloud.Caller, id string) error {
	var j cloud.Job
	err := s.cfg.Store.Look(ctx, func(v cloud.View) (err error) { j, err = own(v, c, id); return err })
	if o := s.table.Find(j.Operation); err == nil && o != nil {
		err = s.cfg.Pipeline.May(ctx, o, c)
	}
	return err
}

// change decides about a job of the caller.
func (s *Service) change(ctx context.Context, c cloud.Caller, id string, fn func(v cloud.View, j *cloud.Job, n cloud.JobCount, ch *cloud.Changes) error) (out Output, err error) {
	err = s.cfg.Store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		j, err := own(v, c, id)
		if err != nil {
			return nil, err
		}
		n, err := v.JobCount(j.ID)
		if err != nil {
			return nil, err
		}
		ch := &cloud.Changes{}
		if err := fn(v, &j, n, ch); err != nil {
			return nil, err
		}
		ch.Jobs = []cloud.Job{j}
		view, err := show(v, j, n)
		out = Output{true, view}
		ch.Answer = out
		return ch, err
	})
	return out, err
}

// StartInput starts a job whose rows were looked at.
type StartInput struct {
	ID     string `path:"id" json:"-" doc:"job_id"`
	Digest string `json:"digest" required:"true" max:"64" doc:"digest of the job as it was shown"`
	Count  *int   `json:"count" min:"1" doc:"Number of good rows; needed when there are more than 50"`
}

// Start runs the good rows of a checked job. Errors: JOB_NOT_FOUND, JOB_STATE_CONFLICT,
// APPROVAL_CHANGED, VALIDATION_FAILED, JOB_NEEDS_PERSON, those of the operation's rights.
func (s *Service) Start(ctx context.Context, c cloud.Caller, in StartInput) (Output, error) {
	if err := errors.Join(person(ctx), s.allowed(ctx, c, in.ID)); err != nil {
		return Output{}, err
	}
	return s.change(ctx, c, in.ID, func(v cloud.View, j *cloud.Job, n cloud.JobCount, ch *cloud.Changes) error {
		o := s.table.Find(j.Operation)
		good := n.Checked - n.Bad
		f := check.Fields{}
		switch {
		case j.Status != cloud.JobChecked || o == nil || j.AccountID != c.Account.ID:
			return cloud.E(cloud.Conflict, "JOB_STATE_CONFLICT", j.Status)
		case in.Digest != j.Digest:
			return cloud.E(cloud.Conflict, "APPROVAL_CHANGED")
		case good == 0:
			return cloud.E(cloud.Conflict, "JOB_EMPTY")
		case good > TypedOver && (in.Count == nil || *in.Count != good):
			f.Say("count", "Give the number of rows that can be done.")
			return f.Err()
		}
		j.Status = cloud.JobQueued
		return s.remember(v, *j, ch)
	})
}

// Cancel ends a job. Rows that are done stay. Errors: JOB_NOT_FOUND, JOB_STATE_CONFLICT.
func (s *Service) Cancel(ctx context.Context, c cloud.Caller, in ByID) (Output, error) {
	return s.change(ctx, c, in.ID, func(_ cloud.View, j *cloud.Job, _ cloud.JobCount, _ *cloud.Changes) error {
		if !j.FinishedAt.IsZero() || j.Operation == "" {
			return cloud.E(cloud.Conflict, "JOB_STATE_CONFLICT", j.Status)
		}
		j.Status, j.FinishedAt = cloud.JobCancelled, time.Now().UTC()
		return nil
	})
}

// Retry runs the rows of an ended job again that failed, and those that an early end
// left. Errors: JOB_NOT_FOUND, JOB_STATE_CONFLICT, JOB_NEEDS_PERSON, those of the
// operation's rights.
func (s *Service) Retry(ctx context.Context, c cloud.Caller, in ByID) (Output, error) {
	if err := errors.Join(person(ctx), s.allowed(ctx, c, in.ID)); err != nil {
		return Output{}, err
	}
	return s.change(ctx, c, in.ID, func(_ cloud.View, j *cloud.Job, n cloud.JobCount, ch *cloud.Changes) error {
		o := s.table.Find(j.Operation)
		if o == nil || j.StartedAt.IsZero() || j.FinishedAt.IsZero() || j.AccountID != c.Account.ID || n.Failed == 0 && n.Processed+n.Bad >= j.Total {
			return cloud.E(cloud.Conflict, "JOB_STATE_CONFLICT", j.Status)
		}
		j.Status, j.FinishedAt, j.Reason = cloud.JobQueued, time.Time{}, ""
		ch.RetryJobs = []string{j.ID}
		return nil
	})
}

// digest stands for what a check showed, after what it showed before.
func (s *Service) digest(before string, rows ...cloud.JobRow) string {
	mac := hmac.New(sha256.New, s.cfg.DigestKey)
	mac.Write([]byte(before))
	for _, r := range rows {
		fmt.Fprintf(mac, "\n%d %s %s", r.Row, r.Input, r.Checked)
	}
	return hex.EncodeToString(mac.Sum(nil))
}
