package order

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/postern-io/postern/cloud"
)

// jobRow is the result of a job's row as it is kept and told.
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
	AsyncID    string   `json:"asyncId"`
	Status     string   `json:"status"` // completed, failed
	Total      int      `json:"total"`
	Succeeded  int      `json:"succeeded"`
	Failed     int      `json:"failed"`
	StartedAt  *string  `json:"started_at"`
	FinishedAt *string  `json:"finished_at"`
	Results    []jobRow `json:"results"`
	// ResultsURL is where the results are when they are too many for a body.
	ResultsURL string `json:"results_url,omitempty"`
}

// maxResults is how large the results in a body may be, in bytes: a body has at
// most 256 KiB.
const maxResults = 240 << 10

// asCustomer is the account when it is a customer, 0 for everybody else.
func asCustomer(a cloud.Account) cloud.AccountID {
	if a.Type == cloud.Customer {
		return a.ID
	}
	return 0
}

// ending is the event of a job's end: at the address that it was given, else
// where the settings of its level say.
func (s jobRunner) ending(v cloud.View, j cloud.OrderJob) (cloud.AccountEvent, error) {
	a, err := v.Account(j.AccountID)
	if err != nil && !errors.Is(err, cloud.ErrNotFound) {
		return cloud.AccountEvent{}, err
	}
	return cloud.AccountEvent{BusinessID: j.BusinessID, CustomerID: asCustomer(a), Settings: settingsOf(eventBatch), Endpoint: j.Postback, Event: eventBatch,
		ID: "OBP-" + j.ID, ReferenceType: "batch", ReferenceID: j.ID, OccurredAt: j.FinishedAt,
		Data: func(int64, bool) (any, error) { return batchEnded(v, j) }}, nil
}

// batchEnded is what a job came to.
func batchEnded(v cloud.View, j cloud.OrderJob) (hookBatch, error) {
	b, err := v.Business(j.BusinessID)
	if err != nil {
		return hookBatch{}, err
	}
	rows, err := v.OrderJobRows(j.ID)
	if err != nil {
		return hookBatch{}, err
	}
	h := hookBatch{AsyncID: j.ID, Status: j.Status, Total: j.Total, StartedAt: cloud.Stamp(j.StartedAt, b.Location()), FinishedAt: cloud.Stamp(j.FinishedAt, b.Location()),
		Results: []jobRow{}}
	size := 0
	for _, row := range rows {
		if row.Result == nil {
			continue
		}
		r := jobRow{}
		if err := json.Unmarshal(row.Result, &r); err != nil {
			return hookBatch{}, fmt.Errorf("result of row %d of %s: %w", row.Row, j.ID, err)
		}
		if row.Failed {
			h.Failed++
		} else {
			h.Succeeded++
		}
		h.Results = append(h.Results, r)
		size += len(row.Result)
	}
	if size > maxResults {
		h.Results, h.ResultsURL = []jobRow{}, j.BaseURL+"/api/v1/client/async/"+j.ID
	}
	return h, nil
}
