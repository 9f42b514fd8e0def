package otep

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
)

func TestDerivedDocumentsAreGolden(t *testing.T) {
	t.Parallel()
	same(t, "codebook.json", string(Codebook()))
	same(t, "schema.json", string(Schema()))
	b := Schema()
	b[0] = 'x'
	require.Equal(t, byte('{'), Schema()[0], "callers own what they get")
}

func TestCodebookHoldsTheVocabulary(t *testing.T) {
	t.Parallel()
	var book struct {
		Version string `json:"otep_version"`
		Phases  []struct {
			Name  string
			Order *int
		}
		StatusCodes []struct {
			Code     Code
			Phase    string
			Terminal bool
			Address  string
			Mappings struct {
				EPCIS     struct{ BizStep, Disposition string }
				OneRecord struct{ EventCode string }
			}
		} `json:"status_codes"`
		Reasons  []any `json:"incident_reasons"`
		Sources  []any `json:"source_types"`
		Profiles []struct {
			Name  string
			Codes []struct{ Code, Parent Code } `json:"status_codes"`
		}
		Transitions map[Code][]Code
	}
	require.NoError(t, json.Unmarshal(Codebook(), &book))
	require.Equal(t, Version, book.Version)
	require.Len(t, book.Phases, 9)
	require.Equal(t, 6, *book.Phases[5].Order)
	require.Nil(t, book.Phases[6].Order)
	require.Len(t, book.StatusCodes, 20)
	for _, row := range book.StatusCodes {
		s, ok := Lookup(row.Code)
		require.True(t, ok)
		require.Equal(t, s.Phase, row.Phase)
		require.Equal(t, s.BizStep, row.Mappings.EPCIS.BizStep)
		require.Equal(t, s.OneRecord, row.Mappings.OneRecord.EventCode)
		c, _, ok := Canonical(row.Address)
		require.True(t, ok, "an address is read as its code")
		require.Equal(t, row.Code, c)
	}
	require.Len(t, book.Reasons, 33)
	require.Len(t, book.Sources, 8)
	own := 0
	for _, p := range book.Profiles {
		own += len(p.Codes)
	}
	require.Equal(t, 12, own)
	moves := 0
	for from, next := range book.Transitions {
		require.NotNil(t, next, from)
		moves += len(next)
	}
	require.Equal(t, 223, moves)
}

func compiled(t *testing.T) func(doc []byte) error {
	t.Helper()
	parsed, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema()))
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	require.NoError(t, c.AddResource("otep.json", parsed))
	s, err := c.Compile("otep.json")
	require.NoError(t, err, "the schema is valid by its meta-schema")
	return func(doc []byte) error {
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(doc))
		require.NoError(t, err)
		return s.Validate(v)
	}
}

func TestSchemaTakesTheSample(t *testing.T) {
	t.Parallel()
	require.NoError(t, compiled(t)(golden(t, "sample.json")))
}

func TestSchemaTakesWhatIsFolded(t *testing.T) {
	t.Parallel()
	valid := compiled(t)
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 4))
		b, err := json.Marshal(walk(r))
		require.NoError(t, err)
		require.NoError(t, valid(b), "seed %d", seed)
		b, err = json.Marshal(Fold("x-mine", Subject{OrderID: 1 << 60}, tangle(r, 40)))
		require.NoError(t, err)
		require.NoError(t, valid(b), "seed %d", seed)
	}
	empty, err := json.Marshal(Fold("", Subject{PieceID: "p"}, nil))
	require.NoError(t, err)
	require.NoError(t, valid(empty))
}

// What one member of a document can be wrong in, schema and rules see alike.
func TestSchemaRefusesWhatTheRulesRefuse(t *testing.T) {
	t.Parallel()
	valid := compiled(t)
	require.NoError(t, valid([]byte(plain)))
	for _, e := range []edit{
		{"$", `[]`}, {"otep_version", ``}, {"otep_version", `"1.0"`}, {"otep_version", `"0"`}, {"profile", `"phase"`}, {"profile", `"A"`}, {"subject", `{}`}, {"subject", ``},
		{"subject.tracking_number", `"a b"`}, {"subject.order_id", `0`}, {"subject.order_id", `"1"`}, {"subject.gs1_sscc", `"123"`}, {"events", ``}, {"events", `{}`},
		{"events.0.occurred_at", ``}, {"events.0.occurred_at", `"2026-06-10T09:50:00"`}, {"events.0.occurred_at", `"2026-02-30T09:50:00Z"`}, {"events.0.recorded_at", `"?"`},
		{"events.0.status_code", ``}, {"events.0.status_code", `"not_a_code"`}, {"events.0.status_code", `"x-"`}, {"events.0.status_code", `"x-new"`}, {"events.0.phase", `"transit"`}, {"events.0.phase", `"nowhere"`},
		{"events.0.source", `{}`}, {"events.0.source.type", `"bogus"`}, {"events.0.location", `"here"`}, {"events.0.location", `{"latitude":1}`}, {"events.0.location", `{"latitude":91,"longitude":0}`},
		{"events.0.incident_reason", `"bad_luck"`}, {"events.0.telemetry", `[{"type":"speed"}]`}, {"events.0.telemetry", `[{"value":1}]`}, {"events.0.time_type", `"guessed"`}, {"events.0", `5`},
		{"delivered", `5`},
	} {
		doc := edited(t, plain, e)
		r, err := Validate(doc, noon)
		require.NoError(t, err)
		require.NotEmpty(t, r.Errors, "%v", e)
		require.Error(t, valid(doc), "%v", e)
	}
	require.Error(t, valid(edited(t, plain, edit{"delivered", `true`}, edit{"current_status", `"delivery_failed"`})))
	require.Error(t, valid(edited(t, plain, edit{"delivered", `false`}, edit{"current_status", `"delivered"`})))
	require.NoError(t, valid(edited(t, plain, edit{"events.0.status_code", `"x-new"`}, edit{"events.0.phase", `"return"`})))
}
