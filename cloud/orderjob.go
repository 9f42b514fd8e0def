package cloud

import "time"

// OrderJobView reads the present of jobs that make many orders.
type OrderJobView interface {
	OrderJob(BusinessID, string) (OrderJob, error)
	// OrderJobRow, in a decision on PostgreSQL, waits for others that decide
	// about the same row.
	OrderJobRow(job string, row int) (OrderJobRow, error)
	OrderJobRows(job string) ([]OrderJobRow, error) // by number
}

// OrderJobChanges are the changes of jobs that make many orders.
type OrderJobChanges struct {
	OrderJobs    []OrderJob
	OrderJobRows []OrderJobRow
	// DropJobsBefore removes jobs that were finished before it; the zero time
	// removes none.
	DropJobsBefore time.Time
}

// OrderJob is a batch of orders that is made in the background. Its rows hold
// what is to be made and what became of it.
type OrderJob struct {
	ID          string     `json:"ID"` // bat_…
	BusinessID  BusinessID `json:"BusinessID"`
	AccountID   AccountID  `json:"AccountID"` // who asked, and whose orders they are
	Surface     string     `json:"Surface"`
	Language    string     `json:"Language"`
	BaseURL     string     `json:"BaseURL"`
	Total       int        `json:"Total"`
	StopOnError bool       `json:"StopOnError"`
	Status      string     `json:"Status"` // queued, processing, completed, failed
	CreatedAt   time.Time  `json:"CreatedAt"`
	StartedAt   time.Time  `json:"StartedAt"`
	FinishedAt  time.Time  `json:"FinishedAt"`
	// Postback is told when the job has ended in place of who is set; 0: none.
	Postback EndpointID `json:"Postback"`
}

// States of a job.
const (
	JobQueued     = "queued"
	JobProcessing = "processing"
	JobCompleted  = "completed"
	JobFailed     = "failed"
)

// OrderJobRow is one order of a job.
type OrderJobRow struct {
	JobID  string
	Row    int // from 1
	Input  []byte
	Result []byte // JSON, nil while it is not made
	Failed bool
}

// JobCount is how far a job has come.
type JobCount struct {
	Processed, Failed int
}
