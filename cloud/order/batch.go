package order

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
	"github.com/postern-io/postern/cloud/locale"
)

// BatchInput is several new orders.
type BatchInput struct {
	Orders      []BatchRow `json:"orders" required:"true" min:"1" max:"2000" rows:"true" doc:"Each is checked and made by itself: the job says what became of it"`
	StopOnError bool       `json:"stop_on_error"`
	// PostbackURL receives the end of a batch in the background, in place of
	// the addresses in the settings.
	PostbackURL string `json:"postback_url" max:"2048"`
}

// BatchRow is one order of a batch. A row that cannot be read is refused by itself.
type BatchRow struct {
	CreateInput
	unreadable error // VALIDATION_FAILED
}

// UnmarshalJSON reads a row. A member of the wrong type, or with text that no database
// takes, is an error of the row.
func (r *BatchRow) UnmarshalJSON(raw []byte) error {
	*r = BatchRow{}
	var err error
	if r.unreadable, err = check.ReadRow(raw, &r.CreateInput); !IsSane(r.Ref) {
		r.Ref = "" // it is shown with the error
	}
	return err
}

// MarshalJSON writes the order alone.
func (r BatchRow) MarshalJSON() ([]byte, error) { return json.Marshal(r.CreateInput) }

// RowResult is what became of one order of a batch. Members about the order are
// null when there is none, those about the error when it was made.
type RowResult struct {
	Row      int                 `json:"row"` // from 1
	Ref      *string             `json:"order_ref"`
	Result   bool                `json:"result"`
	OrderID  *cloud.OrderID      `json:"order_id"`
	Number   *string             `json:"tracking_number"`
	StatusID *cloud.OrderStatus  `json:"order_status_id"`
	Code     *string             `json:"code"`
	Message  *string             `json:"message"` // in the language of who asked
	Errors   map[string][]string `json:"errors" null:"true"`
}

const (
	batchCreated = 6007
)

// made is the row of an order that was made.
func made(row int, out CreateOutput) RowResult {
	return RowResult{Row: row, Ref: out.Ref, Result: true, OrderID: &out.OrderID, Number: &out.Number, StatusID: &out.StatusID}
}

// refused is the row of an order that could not be made.
func refused(c cloud.Caller, row int, in CreateInput, e *cloud.Error) RowResult {
	text := message(c, e)
	return RowResult{Row: row, Ref: cloud.OrNull(in.Ref), Code: &e.Code, Message: &text, Errors: locale.Fields(c.Language, e.Fields)}
}

// AsyncOutput is the answer to a batch that is made in the background.
type AsyncOutput struct {
	Result  bool   `json:"result"`
	AsyncID string `json:"asyncId"`
	Total   int    `json:"total"`
	Status  string `json:"status"`
}

// BatchAsync takes up to two thousand orders to be made in the background, by
// Run. Errors: VALIDATION_FAILED, BLOCKED_URL, ACCOUNT_TYPE_NOT_ALLOWED.
func (s *Service) BatchAsync(ctx context.Context, c cloud.Caller, in BatchInput) (AsyncOutput, error) {
	if err := RequireOwners(c); err != nil {
		return AsyncOutput{}, err
	}
	if in.PostbackURL != "" {
		if err := s.webhooks.CheckURL(ctx, in.PostbackURL); err != nil {
			return AsyncOutput{}, &cloud.Error{Kind: cloud.Invalid, Code: "BLOCKED_URL", Details: map[string]any{"postback_url": err.Error()},
				Fields: map[string][]string{"postback_url": {"This address cannot be used: it must be a public https address that our guard accepts."}}}
		}
	}
	id, err := uuid.NewV7()
	if err != nil {
		return AsyncOutput{}, fmt.Errorf("make job id: %w", err)
	}
	j := cloud.Job{ID: fmt.Sprintf("bat_%x", id[:]), BusinessID: c.Account.BusinessID, AccountID: c.Account.ID, Surface: c.Surface, Language: c.Language,
		BaseURL: c.ForOthers().BaseURL, Total: len(in.Orders), StopOnError: in.StopOnError, Status: cloud.JobQueued, CreatedAt: s.time()}
	ch := &cloud.Changes{JobChanges: cloud.JobChanges{Jobs: []cloud.Job{j}}}
	for i, x := range in.Orders {
		row, err := x.stored(c, j.ID, i+1)
		if err != nil {
			return AsyncOutput{}, fmt.Errorf("encode row %d: %w", i+1, err)
		}
		ch.JobRows = append(ch.JobRows, row)
	}
	out := AsyncOutput{Result: true, AsyncID: j.ID, Total: j.Total, Status: j.Status}
	ch.Answer = out
	err = s.store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		if in.PostbackURL == "" {
			return ch, nil
		}
		e, err := s.webhooks.Postback(v, j.BusinessID, asCustomer(c.Account), in.PostbackURL)
		j.Postback = e.ID
		ch.Jobs, ch.Endpoints = []cloud.Job{j}, []cloud.Endpoint{e}
		return ch, err
	})
	return out, err
}

// stored is a row as it is kept: one that cannot be read has its result already.
func (r BatchRow) stored(c cloud.Caller, job string, n int) (row cloud.JobRow, err error) {
	row = cloud.JobRow{JobID: job, Row: n}
	var e *cloud.Error
	if errors.As(r.unreadable, &e) {
		row.Failed, row.Input = true, []byte{}
		row.Result, err = json.Marshal(jobRow{RowResult: refused(c, n, r.CreateInput, e), Packages: []rowPackage{}})
		return row, err
	}
	row.Input, err = json.Marshal(r.CreateInput)
	return row, err
}

// JobInput asks how far a job has come, with a page of its rows.
type JobInput struct {
	ID string `path:"id" json:"-"`
	check.Keyset
}

// JobOutput is how far a job has come. Results are the rows of the page that
// are made or refused.
type JobOutput struct {
	Result     bool        `json:"result"`
	AsyncID    string      `json:"asyncId"`
	Kind       string      `json:"kind"`   // order_create
	Status     string      `json:"status"` // queued, processing, completed, failed
	Processed  int         `json:"processed"`
	Succeeded  int         `json:"succeeded"`
	Failed     int         `json:"failed"`
	CreatedAt  *string     `json:"created_at"`
	FinishedAt *string     `json:"finished_at"`
	Results    []RowResult `json:"results"`
	check.PageOutput
}

// jobsKept is how long a finished job can be asked for.
const jobsKept = 30 * 24 * time.Hour

// Job says how far a job has come: staff see their business's, customers their
// own. Errors: ASYNC_JOB_NOT_FOUND, VALIDATION_FAILED.
func (s *Service) Job(ctx context.Context, c cloud.Caller, in JobInput) (JobOutput, error) {
	if err := RequireOwners(c); err != nil {
		return JobOutput{}, err
	}
	page, err := in.Part(in, "")
	if err != nil {
		return JobOutput{}, err
	}
	missing := cloud.E(cloud.NotFound, "ASYNC_JOB_NOT_FOUND")
	if !IsSane(in.ID) {
		return JobOutput{}, missing
	}
	j, n, listed, rows, err := s.store.ListJobRows(ctx, c.Account.BusinessID, in.ID, page)
	gone := !j.FinishedAt.IsZero() && s.time().Sub(j.FinishedAt) > jobsKept
	if errors.Is(err, cloud.ErrNotFound) || err == nil && (gone || c.Account.Type == cloud.Customer && j.AccountID != c.Account.ID) {
		return JobOutput{}, missing
	}
	if err != nil {
		return JobOutput{}, err
	}
	out := JobOutput{Result: true, AsyncID: j.ID, Kind: "order_create", Status: j.Status, Processed: n.Processed, Succeeded: n.Processed - n.Failed,
		Failed: n.Failed, Results: []RowResult{}, PageOutput: in.Output(in, listed)}
	for _, row := range rows {
		var r RowResult
		if row.Result == nil {
			continue
		}
		if err := json.Unmarshal(row.Result, &r); err != nil {
			return JobOutput{}, fmt.Errorf("result of row %d of %s: %w", row.Row, j.ID, err)
		}
		out.Results = append(out.Results, r)
	}
	return out, s.store.Look(ctx, func(v cloud.View) error {
		zone, err := s.shower(v, c).zone(j.BusinessID)
		if err == nil {
			out.CreatedAt, out.FinishedAt = cloud.Stamp(j.CreatedAt, zone), cloud.Stamp(j.FinishedAt, zone)
		}
		return err
	})
}
