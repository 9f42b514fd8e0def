package cloud

import (
	"context"
	"sync"
	"time"
)

// JobView reads the present of jobs: orders of a batch, verbs over many records, and
// files that are imported.
type JobView interface {
	Job(BusinessID, string) (Job, error)
	// JobRow, in a decision on PostgreSQL, waits for others that decide
	// about the same row.
	JobRow(job string, row int) (JobRow, error)
	JobRows(job string) ([]JobRow, error) // by number
	// JobKey reports whether a row with a key was done in a business.
	JobKey(b BusinessID, key string) (bool, error)
	// JobCount counts the rows of a job.
	JobCount(job string) (JobCount, error)
}

// JobChanges are the changes of jobs.
type JobChanges struct {
	Jobs    []Job
	JobRows []JobRow
	// JobSteps are jobs that have come further, for pages that show how far. They are not
	// stored. The store adds the job of a row that a decision does.
	JobSteps []JobProgress
	// RetryJobs opens the rows of jobs again that failed and hold what is to be done.
	RetryJobs []string
	// UncheckJobs makes all open rows of jobs be checked again.
	UncheckJobs []string
	// DropJobsBefore removes jobs that were finished before it, and those that waited
	// for a decision since then; the zero time removes none.
	DropJobsBefore time.Time
}

func (s *JobChanges) preview(e *effectList) {
	previewEach(e, "Jobs", s.Jobs, func(j Job) {
		if j.Operation == "" {
			b, err := e.view.Business(j.BusinessID)
			if err != nil {
				e.err = err
				return
			}
			e.list = append(e.list, Effect{Type: "order_batch", After: map[string]any{"orders": j.Total, "stop_on_error": j.StopOnError, "postback": j.Postback != 0}, version: versionOf(b.Settings.terms())})
			return
		}
		old, err := e.view.Job(j.BusinessID, j.ID)
		e.showMembers(Effect{Type: "job", ID: j.ID, Name: j.ID, Before: old.members(), After: j.members()}, old, err)
	})
}

// Job is work over many rows in the background. Its rows hold what is to be done and
// what became of it. Each row is done once, whatever happens to the process: what a row
// writes and its result are one transaction.
type Job struct {
	ID          string     `json:"ID"` // bat_…
	BusinessID  BusinessID `json:"BusinessID"`
	AccountID   AccountID  `json:"AccountID"` // who asked, and whose orders they are
	Surface     string     `json:"Surface"`
	Language    string     `json:"Language"`
	BaseURL     string     `json:"BaseURL"`
	Total       int        `json:"Total"`
	StopOnError bool       `json:"StopOnError"`
	Status      string     `json:"Status"` // checking, checked, queued, processing, completed, failed, cancelled
	CreatedAt   time.Time  `json:"CreatedAt"`
	StartedAt   time.Time  `json:"StartedAt"`
	FinishedAt  time.Time  `json:"FinishedAt"`
	// Postback is the endpoint that gets the end of the job in place of the settings' one; 0: none.
	Postback EndpointID `json:"Postback"`

	// Operation of the catalogue that is run for each row, as the account may call it at
	// that time; "" makes the orders of a batch.
	Operation string `json:"Operation,omitempty"`
	Noun      string `json:"Noun,omitempty"`
	Shared    []byte `json:"Shared,omitempty"` // JSON: members of every row's input
	IP        string `json:"IP,omitempty"`     // that the job was asked for from
	Digest    string `json:"Digest,omitempty"` // of what the check of the rows showed
	Reason    string `json:"Reason,omitempty"` // why it ended early, in the language of the job
	// Of a file that is imported: its name, its digest, its columns, and the member of the
	// input that each fills by path, "" for none.
	File     string   `json:"File,omitempty"`
	FileHash string   `json:"FileHash,omitempty"`
	Headers  []string `json:"Headers,omitempty"`
	Columns  []string `json:"Columns,omitempty"`
}

// JobProgress says that rows of a job were checked, done or refused.
type JobProgress struct {
	BusinessID BusinessID
	JobID      string
}

// States of a job. One that is checked waits for its person to start it.
const (
	JobChecking   = "checking"
	JobChecked    = "checked"
	JobQueued     = "queued"
	JobProcessing = "processing"
	JobCompleted  = "completed"
	JobFailed     = "failed"
	JobCancelled  = "cancelled"
)

// JobRow is one order of a batch, one record, or one line of a file.
type JobRow struct {
	JobID  string
	Row    int // from 1
	Input  []byte
	Result []byte // JSON, nil while it is not done
	Failed bool
	// Checked is what the check of the row found, JSON, nil before; a bad row is not run.
	Checked []byte
	Bad     bool
}

// JobCount is how far a job has come: rows that are done or failed, those that failed,
// those that were checked, and those of them that are bad.
type JobCount struct {
	Processed, Failed, Checked, Bad int
}

// JobFilter chooses jobs of a business. Zero fields choose all.
type JobFilter struct {
	BusinessID BusinessID
	AccountID  AccountID
	Status     string
	Page       Page // in the order of ids
}

// JobRowFilter chooses rows of a job.
type JobRowFilter struct {
	JobID string
	State string // open, bad, done, failed; "" all
	Page  Page   // by number
}

// JobStep is a row of a job that a call does. The call's first transaction stores the
// result in the same commit as its changes; it fails with ErrRepeated when the row has
// one, when the job has ended, or when the key was done before. Safe for concurrent use.
type JobStep struct {
	BusinessID BusinessID
	JobID      string
	Row        int
	Key        string // that is done once in a business; "" none
	// Encode is the result of the row by the answer that the decision gives, nil for
	// none. It has no side effects.
	Encode func(answer any) ([]byte, error)

	mu    sync.Mutex
	taken bool
}

// Taken reports whether a transaction stored the row's result.
func (s *JobStep) Taken() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.taken
}

// Take takes down that it did.
func (s *JobStep) Take() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken = true
}

type stepKey struct{}

// WithJobStep is a context whose first transaction does a row of a job.
func WithJobStep(ctx context.Context, s *JobStep) context.Context {
	return context.WithValue(ctx, stepKey{}, s)
}

// JobStepOf is the row of a job that ctx does, nil when there is none.
func JobStepOf(ctx context.Context) *JobStep {
	s, _ := ctx.Value(stepKey{}).(*JobStep)
	return s
}

// FileColumnID names a column of files that a business imports.
type FileColumnID int64

// FileColumnIDs is their sequence.
const FileColumnIDs IDKind = "file_column"

// FileColumn is a column of files that a business imports as people matched it last.
type FileColumn struct {
	Kept[FileColumnID]
	Noun   string // of the records
	Header string // as it is compared: small letters and digits
	Path   string // member that it fills; "" for none
}

// RowKind implements Row.
func (FileColumn) RowKind() IDKind { return FileColumnIDs }

func (j Job) members() map[string]any {
	return map[string]any{"operation": j.Operation, "records": j.Total, "status": j.Status, "file": OrNull(j.File)}
}
