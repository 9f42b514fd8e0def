package page_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud/api"
	"github.com/postern-io/postern/internal/ring"
	"github.com/postern-io/postern/internal/verdict"
)

// The tools that other people use agree with what is served: a validator and a
// linter of OpenAPI documents, a validator of JSON Schemas with the worked
// examples, the reference implementation of GraphQL, and the audits of GraphQL
// over HTTP, of which we leave out what a server may do: GET.
func TestInterfaceBeforeOtherPeoplesTools(t *testing.T) {
	ring.SkipUnlessFull(t, "the documents are checked by cloud/api and cloud/graphql")
	_, s, _ := server(t, nil)
	schema, err := filepath.Abs("../graphql/testdata/schema.graphql")
	require.NoError(t, err)
	var f struct {
		OpenAPI struct {
			Fault      string
			Operations int
			Schemas    int
			Examples   []string
			Wrong      []string // examples that are not what their schema says
			Lint       []string
			Linted     []string // of a document with a fault
		}
		Schema struct {
			Status            int
			Faults            []string
			Served, Published string
		}
		Audits []struct{ ID, Name, Status, Reason string }
	}
	require.NoError(t, json.Unmarshal(node(t, s, []string{"SCHEMA=" + schema}, "checks.mjs"), &f))
	record := func(suite, subject string, faults, all int) { verdict.Record(t, suite, subject, all-faults, all) }
	operations := len(api.New(api.Config{}).Operations())
	record("@apidevtools/swagger-parser", "operations of the OpenAPI document", operations-f.OpenAPI.Operations, operations)
	record("@redocly/openapi-core", "operations of the OpenAPI document, by the rules recommended-strict and three more", min(len(f.OpenAPI.Lint), operations), operations)
	record("ajv", "examples of the OpenAPI document by its schemas", len(f.OpenAPI.Wrong), len(f.OpenAPI.Examples))
	wrong := 0
	for _, a := range f.Audits {
		if a.Status != "ok" {
			wrong++
		}
	}
	record("graphql-http", "audits of GraphQL over HTTP (those left out are of requests by GET, which a server may take)", wrong, len(f.Audits))
	require.Empty(t, f.OpenAPI.Fault)
	require.Equal(t, operations, f.OpenAPI.Operations)
	require.Positive(t, f.OpenAPI.Schemas)
	require.NotEmpty(t, f.OpenAPI.Examples)
	require.Empty(t, f.OpenAPI.Wrong)
	require.Empty(t, f.OpenAPI.Lint)
	require.Contains(t, strings.Join(f.OpenAPI.Linted, "\n"), "tag-description", "the linter looks")
	require.Equal(t, 200, f.Schema.Status, f.Schema.Faults)
	require.Empty(t, f.Schema.Faults)
	require.NotEmpty(t, f.Schema.Served)
	require.Equal(t, f.Schema.Published, f.Schema.Served, "introspection gives the published schema")
	require.Greater(t, len(f.Audits), 50)
	for _, a := range f.Audits {
		if !strings.HasPrefix(a.Name, "MAY") {
			require.Equal(t, "ok", a.Status, "%s %s: %s", a.ID, a.Name, a.Reason)
		}
	}
}
