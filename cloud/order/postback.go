package order

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/postern-io/postern/cloud"
)

// jobRow is the result of a job's row as it is kept and sent.
type jobRow struct {
	RowResult
	Packages []rowPackage `json:"packages"`
}

type rowPackage struct {
	Ref    *string `json:"package_ref"`
	Number string  `json:"tracking_number"`
}

// hookBatch is the data of order.batch_processed.
type hookBatch struct {
	AsyncID    string  `json:"asyncId"`
	Status     string  `json:"status"` // completed, failed
	Total      int     `json:"total"`
	Succeeded  int     `json:"succeeded"`
	Failed     int     `json:"failed"`
	StartedAt  *string `json:"started_at"`
	FinishedAt *string `json:"finished_at"`
	// Part of Parts, from 1: the results of a large batch come in several bodies, each
	// with rows of its own.
	Part    int      `json:"part"`
	Parts   int      `json:"parts"`
	Results []jobRow `json:"results"`
	// ResultsURL is where all results are, when they come in several parts.
	ResultsURL string `json:"results_url,omitempty"`
}

// maxResults is how large the results in a body may be, in bytes: a body has at
// most 256 KiB.
const maxResults = 200 << 10

// asCustomer is the account when it is a customer, 0 for everybody else.
func asCustomer(a cloud.Account) cloud.AccountID {
	if a.Type == cloud.Customer {
		return a.ID
	}
	return 0
}

// endings are the events of a job's end, one for each part of its results.
func (s jobRunner) endings(v cloud.View, j cloud.Job) ([]cloud.AccountEvent, error) {
	first, err := s.ending(v, j)
	if err != nil {
		return nil, err
	}
	rows, err := v.JobRows(j.ID)
	if err != nil {
		return nil, err
	}
	parts, err := partsOf(j, rows)
	if err != nil {
		return nil, err
	}
	out := make([]cloud.AccountEvent, len(parts))
	for i := range out {
		out[i] = first
		if len(out) > 1 {
			out[i].ID = fmt.Sprintf("%s-%d", first.ID, i+1)
		}
		out[i].Data = func(int64, bool) (any, error) { return batchEnded(v, j, rows, i+1, len(parts), parts[i]) }
	}
	return out, nil
}

// partsOf divides the results of a job, in the order of its rows, so that each part
// fits a body. There is one part at least.
func partsOf(j cloud.Job, rows []cloud.JobRow) (out [][]jobRow, err error) {
	part, size := []jobRow{}, 0
	for _, row := range rows {
		if row.Result == nil {
			continue
		}
		r, n := jobRow{}, len(row.Result)
		if err := json.Unmarshal(row.Result, &r); err != nil {
			return nil, fmt.Errorf("result of row %d of %s: %w", row.Row, j.ID, err)
		}
		if n > maxResults { // its errors are with the job
			r.Errors, n = nil, maxMessage
		}
		if size += n; size > maxResults && len(part) > 0 {
			out, part, size = append(out, part), []jobRow{}, n
		}
		part = append(part, r)
	}
	return append(out, part), nil
}

// maxMessage is what a row takes at most without its errors and packages, in bytes.
const maxMessage = 4 << 10

// ending is the event of a job's end: at the address that it was given, else
// where the settings of its level say.
func (s jobRunner) ending(v cloud.View, j cloud.Job) (cloud.AccountEvent, error) {
	a, err := v.Account(j.AccountID)
	if err != nil && !errors.Is(err, cloud.ErrNotFound) {
		return cloud.AccountEvent{}, err
	}
	return cloud.AccountEvent{BusinessID: j.BusinessID, CustomerID: asCustomer(a), Settings: settingsOf(eventBatch), Endpoint: j.Postback, Event: eventBatch,
		ID: "OBP-" + j.ID, ReferenceType: "batch", ReferenceID: j.ID, OccurredAt: j.FinishedAt}, nil
}

// batchEnded is what a job came to, with a part of its results.
func batchEnded(v cloud.View, j cloud.Job, rows []cloud.JobRow, part, parts int, results []jobRow) (hookBatch, error) {
	b, err := v.Business(j.BusinessID)
	if err != nil {
		return hookBatch{}, err
	}
	h := hookBatch{AsyncID: j.ID, Status: j.Status, Total: j.Total, StartedAt: cloud.Stamp(j.StartedAt, b.Location()), FinishedAt: cloud.Stamp(j.FinishedAt, b.Location()),
		Part: part, Parts: parts, Results: results}
	if parts > 1 {
		h.ResultsURL = j.BaseURL + "/api/v1/client/async/" + j.ID
	}
	for _, row := range rows {
		switch {
		case row.Result == nil:
		case row.Failed:
			h.Failed++
		default:
			h.Succeeded++
		}
	}
	return h, nil
}
