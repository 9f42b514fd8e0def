package otep

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
