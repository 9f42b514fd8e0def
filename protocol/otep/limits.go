package otep

import (
	"encoding/json"
	"unicode/utf8"
)

// Limits that callers hold requests to.
const (
	MaxBatchNumbers    = 100
	MaxIngestBytes     = 2 << 20
	MaxIngestTimelines = 100
	MaxEvents          = 1000 // in one request, whatever it does
	MaxValidateBytes   = 1 << 20
	MaxMessage         = 500     // characters
	MaxExtensionsBytes = 8 << 10 // of one event, as JSON without white space
	MaxTelemetry       = 100     // of one event

	maxName  = 64
	maxDepth = 64 // of nested JSON, the document's own object included
)

// OverLimit names the first member of e that is larger than it may be, "" when
// none is.
func (e Event) OverLimit() string {
	if utf8.RuneCountInString(e.Message) > MaxMessage {
		return "message"
	}
	if len(e.Telemetry) > MaxTelemetry {
		return "telemetry"
	}
	if len(e.Extensions) == 0 {
		return ""
	}
	if b, err := json.Marshal(e.Extensions); err != nil || len(b) > MaxExtensionsBytes {
		return "extensions"
	}
	return ""
}
