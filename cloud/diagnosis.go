package cloud

import (
	"time"

	"github.com/postern-io/postern/protocol/wire"
)

// DiagnosisID names a diagnosis.
type DiagnosisID int64

// DiagnosisIDs is their sequence.
const DiagnosisIDs IDKind = "diagnosis"

// Diagnosis is a file that a cabinet is asked for: how its boards answer, how a channel behaves,
// or a support bundle.
type Diagnosis struct {
	Kept[DiagnosisID]
	DeviceID  DeviceID         `row:",fixed"`
	Kind      wire.CommandKind `row:",fixed"`
	GridID    GridID           `row:",fixed"` // of a channel test; 0: none
	CommandID string           `row:",fixed,unique"`
	// TokenHash is the SHA-256, hexadecimal, of the token of the address that takes the file.
	TokenHash   string         `row:",fixed,unique,secret"`
	RequestedBy string         `row:",fixed"` // by name
	Reason      string         `row:",fixed"`
	Until       time.Time      `row:",fixed"` // after which no file is taken
	State       DiagnosisState // "waiting" until the command's outcome
	Note        string         // reason of the outcome
	// The file that has come; Path is "" before. It counts once the outcome names its digest.
	Path      string `row:",secret"`
	SizeBytes int64
	Digest    string // SHA-256, hexadecimal
	EndedAt   time.Time
}

// RowKind implements Row.
func (Diagnosis) RowKind() IDKind { return DiagnosisIDs }

// DiagnosisState is where a diagnosis stands.
type DiagnosisState string

// States of a diagnosis.
const (
	DiagnosisWaiting     DiagnosisState = "waiting" // for the cabinet to fetch the command
	DiagnosisRunning     DiagnosisState = "running" // it was sent, and has no outcome
	DiagnosisDone        DiagnosisState = "done"    // the answer is there
	DiagnosisFailed      DiagnosisState = "failed"
	DiagnosisRefused     DiagnosisState = "refused" // by the cabinet
	DiagnosisExpired     DiagnosisState = "expired" // not carried out in time
	DiagnosisInterrupted DiagnosisState = "interrupted"
)
