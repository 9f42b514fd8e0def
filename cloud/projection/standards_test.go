package projection

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dlclark/regexp2"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/postern-io/postern/internal/verdict"
	"github.com/postern-io/postern/protocol/otep"
)

// reference is a file of the official material; testdata/reference/NOTICE.md has
// its origin and terms.
func reference(t testing.TB, path ...string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(append([]string{"testdata", "reference"}, path...)...))
	require.NoError(t, err)
	return b
}

// lookAround is a regular expression of GS1's schema, which looks ahead.
type lookAround struct{ *regexp2.Regexp }

func (r lookAround) MatchString(s string) bool {
	ok, err := r.Regexp.MatchString(s)
	return err == nil && ok
}

func compiler(t testing.TB) *jsonschema.Compiler {
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	c.UseRegexpEngine(func(s string) (jsonschema.Regexp, error) {
		r, err := regexp2.Compile(s, regexp2.ECMAScript)
		return lookAround{r}, err
	})
	c.UseLoader(nowhere{t})
	return c
}

// nowhere fails a test that would fetch a document.
type nowhere struct{ t testing.TB }

func (n nowhere) Load(url string) (any, error) {
	n.t.Errorf("the validator wants to load %s", url)
	return nil, os.ErrNotExist
}

func schemaOf(t testing.TB, raw []byte, pointer string) *jsonschema.Schema {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(string(raw)))
	require.NoError(t, err)
	c := compiler(t)
	require.NoError(t, c.AddResource("mem:///schema.json", v))
	s, err := c.Compile("mem:///schema.json" + pointer)
	require.NoError(t, err)
	return s
}

func instance(t testing.TB, v any) any {
	t.Helper()
	got, err := jsonschema.UnmarshalJSON(strings.NewReader(string(encode(t, v))))
	require.NoError(t, err)
	return got
}

// journeys are timelines of every kind, and a hundred drawn ones.
func journeys() []otep.Timeline {
	r := rand.New(rand.NewPCG(7, 8))
	out := []otep.Timeline{everything(), otep.Fold("", otep.Subject{TrackingNumber: "SR0"}, nil)}
	for range 100 {
		out = append(out, randomTimeline(r))
	}
	return out
}

func randomTimeline(r *rand.Rand) otep.Timeline {
	s := otep.Subject{TrackingNumber: "SR.1-x_9"}
	switch r.IntN(5) {
	case 0:
		s = otep.Subject{SSCC: "106141412345678908"}
	case 1:
		s = otep.Subject{ExternalTrackingNumber: "1Z/9 9Ä"}
	case 2:
		s = otep.Subject{PackageID: 77}
	case 3:
		s = otep.Subject{PieceID: "PIECE-7"}
	}
	var events []otep.Event
	for range r.IntN(12) {
		zone := time.FixedZone("", (r.IntN(27)-13)*3600+r.IntN(2)*1800)
		e := randomEvent(r, time.Date(2026, 6, 1+r.IntN(20), r.IntN(24), r.IntN(60), r.IntN(60), r.IntN(2)*r.IntN(1e9), zone))
		if r.IntN(10) == 0 {
			e.StatusCode, e.Phase = "x-odd", otep.PhaseTransit
		}
		events = append(events, e)
	}
	return otep.Fold("parcel", s, withIDs(s, events))
}

func TestEPCISIsValidByItsOfficialSchema(t *testing.T) {
	verdict.RecordTest(t, "EPCIS-JSON-Schema.json", "EPCIS 2.0 documents and query answers of every journey")
	schema := schemaOf(t, reference(t, "epcis", "EPCIS-JSON-Schema.json"), "")
	p := projector()
	f, _ := Find("epcis")
	for _, tl := range journeys() {
		require.NoError(t, schema.Validate(instance(t, p.Document(f, tl, answered))), tl.Subject)
		require.NoError(t, schema.Validate(instance(t, p.EPCISQuery(p.objectEvents(tl), answered))), tl.Subject)
	}
	r := rand.New(rand.NewPCG(11, 12))
	for range 200 {
		tl := randomTimeline(r)
		events := p.objectEvents(tl)
		for i, e := range tl.Events {
			d := p.ErrorDeclaration(tl.Subject, e, Retraction{At: answered, Reason: []string{"", otep.DidNotOccur, otep.IncorrectData}[i%3], CorrectedBy: []string{"", "another"}[i%2]})
			original := events[i]
			require.NotNil(t, d.Error)
			require.Equal(t, i%2 == 1, d.Error.Corrective != nil)
			require.NotContains(t, d.Error.Corrective, original.EventID)
			events = append(events, d)
			d.Error, d.RecordTime, original.RecordTime = nil, nil, nil
			require.Equal(t, original, d, "a declaration is the original and what was wrong with it (EPCIS 2.0, 7.4.1.2)")
		}
		require.NoError(t, schema.Validate(instance(t, p.EPCISQuery(events, answered))), tl.Subject)
		back, _, err := ReadEPCIS(encode(t, events))
		require.NoError(t, err)
		for i, c := range back {
			n := i % max(1, len(tl.Events))
			require.Equal(t, i >= len(tl.Events), c.Withdraws)
			require.Equal(t, tl.Events[n].EventID, c.Event.EventID)
			if c.Withdraws {
				require.Equal(t, []string{"", otep.DidNotOccur, otep.IncorrectData}[n%3], c.Reason)
			}
		}
	}
	bad := p.Document(f, sample(t), answered).(epcisDocument)
	bad.Body.Events[0].BizStep = "urn:epcglobal:cbv:bizstep:arriving"
	require.Error(t, schema.Validate(instance(t, bad)), "the schema finds what is wrong")
}

func TestAmazonIsValidByItsDescription(t *testing.T) {
	verdict.RecordTest(t, "shippingV2.json", "Amazon Shipping tracking of every journey")
	schema := schemaOf(t, reference(t, "amazon-shipping", "shippingV2.json"), "#/definitions/GetTrackingResult")
	p := projector()
	f, _ := Find("amazon")
	for _, tl := range journeys() {
		require.NoError(t, schema.Validate(instance(t, p.Document(f, tl, answered))), tl.Subject)
	}
	require.Error(t, schema.Validate(instance(t, map[string]any{"trackingId": "x"})))
}

func TestOneRecordCodesAreListed(t *testing.T) {
	verdict.RecordTest(t, "status-codes.json", "ONE Record status codes of every event")
	var list struct {
		Prefix string   `json:"iri_prefix"`
		Codes  []string `json:"codes"`
		Times  []string `json:"event_time_types"`
	}
	require.NoError(t, json.Unmarshal(reference(t, "one-record", "status-codes.json"), &list))
	p := projector()
	for _, e := range p.logisticsEvents(everything()) {
		require.Contains(t, list.Times, strings.TrimPrefix(e.TimeType.ID, "cargo:"))
		if code, ok := strings.CutPrefix(e.EventCode.ID, list.Prefix); ok {
			require.Contains(t, list.Codes, code)
			continue
		}
		require.NotContains(t, list.Codes, e.EventCode.Code, "a listed code stands in its list")
		require.Equal(t, "https://api.example.com/api/otep-guide/code-lists/OtepEventCode#"+e.EventCode.Code, e.EventCode.ID)
	}
}

// OpenTelemetry's own decoder reads the same trace out of the document.
func TestOTLPIsReadByItsOwnDecoder(t *testing.T) {
	verdict.RecordTest(t, "go.opentelemetry.io/collector/pdata", "OpenTelemetry traces of every journey")
	p := projector()
	f, _ := Find("otlp")
	for _, tl := range journeys() {
		var d ptrace.JSONUnmarshaler
		traces, err := d.UnmarshalTraces(encode(t, p.Document(f, tl, answered)))
		require.NoError(t, err)
		happened := actual(tl)
		require.Equal(t, len(happened), traces.SpanCount())
		if len(happened) == 0 {
			continue
		}
		spans := traces.ResourceSpans().At(0).ScopeSpans().At(0).Spans()
		seen := map[string]bool{}
		for i, e := range happened {
			s := spans.At(i)
			require.Equal(t, string(e.StatusCode), s.Name())
			require.Equal(t, TraceID(tl.Subject), [16]byte(s.TraceID()))
			require.Equal(t, SpanID(tl.Subject, e.EventID), [8]byte(s.SpanID()))
			require.False(t, seen[s.SpanID().String()])
			seen[s.SpanID().String()] = true
			require.Equal(t, i == 0, s.ParentSpanID().IsEmpty())
			require.Equal(t, ptrace.SpanKindInternal, s.Kind())
			require.Equal(t, e.OccurredAt.UnixNano(), s.StartTimestamp().AsTime().UnixNano())
			require.GreaterOrEqual(t, s.EndTimestamp(), s.StartTimestamp())
			require.Equal(t, len(e.Telemetry), s.Events().Len())
			switch e.Phase {
			case otep.PhaseException, otep.PhaseReturn:
				require.Equal(t, ptrace.StatusCodeError, s.Status().Code())
			case otep.PhaseDelivered:
				require.Equal(t, ptrace.StatusCodeOk, s.Status().Code())
			default:
				require.Equal(t, ptrace.StatusCodeUnset, s.Status().Code())
			}
		}
	}
}

// What is written as EPCIS and read back is the same, as far as it says.
func TestEPCISThereAndBack(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	p := projector()
	f, _ := Find("epcis")
	for range 500 {
		tl := randomTimeline(r)
		back, count, err := ReadEPCIS(encode(t, p.Document(f, tl, answered)))
		require.NoError(t, err)
		require.Equal(t, len(tl.Events), count)
		for i, e := range tl.Events {
			c := back[i]
			require.Nil(t, c.Fault)
			require.Empty(t, c.Skipped)
			require.Empty(t, c.Notes)
			require.Equal(t, tl.Subject.IdentityKey(), c.Subject.IdentityKey())
			require.Equal(t, e.EventID, c.Event.EventID)
			require.True(t, IsEventID(c.EventID, e.EventID))
			require.Equal(t, e.OccurredAt.String(), c.Event.OccurredAt.String())
			code, _, ok := otep.Canonical(c.Code)
			require.True(t, ok)
			require.Equal(t, e.StatusCode, code)
			c.Event.StatusCode = code
			require.Equal(t, e.Phase, c.Event.Fill("parcel").Phase)
			require.Equal(t, e.IncidentReason, c.Event.IncidentReason)
			require.Equal(t, string(encode(t, e.Telemetry)), string(encode(t, c.Event.Telemetry)))
			require.Equal(t, readPoint(e.Location), readPoint(c.Event.Location))
		}
	}
}
