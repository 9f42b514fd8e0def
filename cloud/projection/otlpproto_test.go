package projection

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// What a collector reads from the JSON document and from the protobuf message
// is one and the same.
func TestTraceIsTheDocument(t *testing.T) {
	t.Parallel()
	f, _ := Find("otlp")
	var fromJSON ptrace.JSONUnmarshaler
	var fromProto ptrace.ProtoUnmarshaler
	spans := 0
	for _, tl := range append(journeys(), everything()) {
		pulled, err := fromJSON.UnmarshalTraces(encode(t, projector().Document(f, tl, answered)))
		require.NoError(t, err)
		raw, err := proto.Marshal(&tracepb.TracesData{ResourceSpans: []*tracepb.ResourceSpans{Trace(tl)}})
		require.NoError(t, err)
		pushed, err := fromProto.UnmarshalTraces(raw)
		require.NoError(t, err)
		require.Equal(t, pulled, pushed)
		spans += pushed.SpanCount()
	}
	require.Greater(t, spans, 100)
}
