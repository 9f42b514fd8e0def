package server

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/rest"
	"github.com/postern-io/postern/protocol/signature"
)

// description is the document as it is served.
func description(t *testing.T) map[string]any {
	t.Helper()
	raw := served(t)
	var doc map[string]any
	require.NoError(t, json.Unmarshal(raw, &doc))
	return doc
}

func served(t *testing.T) []byte {
	t.Helper()
	d, err := asyncAPI("https://api.example.com", "1.0.0").Document(rest.DocumentQuery{})
	require.NoError(t, err)
	return d.Body
}

// payloads compiles the schema of each event's body.
func payloads(t *testing.T) map[string]*jsonschema.Schema {
	t.Helper()
	doc := description(t)
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft7)
	c.AssertFormat()
	require.NoError(t, c.AddResource("urn:doc", doc))
	out := map[string]*jsonschema.Schema{}
	for name := range doc["components"].(map[string]any)["messages"].(map[string]any) {
		s, err := c.Compile("urn:doc#/components/messages/" + name + "/payload")
		require.NoError(t, err)
		out[name] = s
	}
	return out
}

func TestAsyncAPIIsServed(t *testing.T) {
	t.Parallel()
	w := newHookWorld(t, "")
	get := func(tag string) *http.Response {
		req, err := http.NewRequestWithContext(t.Context(), "GET", w.base+"/api/asyncapi-webhooks.json", nil)
		require.NoError(t, err)
		req.Header.Set("If-None-Match", tag)
		r, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		require.NoError(t, r.Body.Close())
		return r
	}
	r := get("")
	require.Equal(t, []any{200, "application/json", "*", "public, max-age=300"}, []any{r.StatusCode, r.Header.Get("Content-Type"), r.Header.Get("Access-Control-Allow-Origin"), r.Header.Get("Cache-Control")})
	require.Equal(t, 304, get(r.Header.Get("ETag")).StatusCode)
}

// The document and the table of events are the same events; samples fit their
// schemas, are for the event, and carry signatures that verify.
func TestAsyncAPIHasEveryEventOnce(t *testing.T) {
	t.Parallel()
	doc, schemas := description(t), payloads(t)
	require.Equal(t, "3.0.0", doc["asyncapi"])
	seen := map[string]int{}
	for _, ch := range doc["channels"].(map[string]any) {
		c := ch.(map[string]any)
		require.Contains(t, c, "address")
		require.Nil(t, c["address"])
		for name := range c["messages"].(map[string]any) {
			seen[name]++
		}
	}
	operations := doc["operations"].(map[string]any)
	require.Len(t, operations, len(HookEvents()))
	messages := doc["components"].(map[string]any)["messages"].(map[string]any)
	require.Len(t, messages, len(HookEvents()))
	for _, e := range HookEvents() {
		require.Equal(t, 1, seen[e.Name], e.Name)
		m := messages[e.Name].(map[string]any)
		require.Equal(t, e.ReferenceType, m["x-reference-type"])
		headers := doc["components"].(map[string]any)["schemas"].(map[string]any)[strings.TrimPrefix(m["headers"].(map[string]any)["$ref"].(string), "#/components/schemas/")].(map[string]any)["properties"].(map[string]any)
		require.Equal(t, e.Channel == cloud.ChannelLocker, headers["ce-livemode"] != nil, e.Name)
		require.Equal(t, e.Channel != "", headers[signature.HeaderProvider] != nil, e.Name)
		require.EqualValues(t, map[string]int{"": 5, cloud.ChannelLocker: 7, cloud.ChannelThirdParty: 7}[e.Channel], m["x-retries"], e.Name)
		example := m["examples"].([]any)[0].(map[string]any)
		require.NoError(t, schemas[e.Name].Validate(example["payload"]), e.Name)
		body := example["payload"].(map[string]any)
		require.Equal(t, e.Name, body["event"])
		require.True(t, strings.HasPrefix(body["event_id"].(string), e.Prefix), e.Name)
		var raw bytes.Buffer
		require.NoError(t, json.Compact(&raw, e.Sample))
		get := func(name string) string { s, _ := example["headers"].(map[string]any)[name].(string); return s }
		_, err := signature.Verify(get, raw.Bytes(), time.Unix(1795216320, 0), "0123456789abcdef0123456789abcdef")
		require.NoError(t, err, e.Name)
		broken := map[string]any{}
		for k, v := range body {
			if k != "data" {
				broken[k] = v
			}
		}
		require.Error(t, schemas[e.Name].Validate(broken), "the schema says something")
	}
}

// Every body of the interface description whose event there is fits its schema.
func TestPublishedBodiesFitTheirSchemas(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../../docs/interface/webhook-examples.json")
	require.NoError(t, err)
	var doc struct {
		Events []struct {
			Event, Setting string
			ReferenceType  string `json:"reference_type"`
			Body           any
		}
	}
	require.NoError(t, json.Unmarshal(raw, &doc))
	schemas := payloads(t)
	fits := 0
	for _, e := range doc.Events {
		i := slices.IndexFunc(HookEvents(), func(h cloud.HookEvent) bool { return h.Name == e.Event })
		if i < 0 {
			continue
		}
		h := HookEvents()[i]
		require.Equal(t, e.ReferenceType, h.ReferenceType, e.Event)
		require.ElementsMatch(t, regexp.MustCompile(`\w+_(?:webhook|postback)_url\b`).FindAllString(e.Setting, -1), h.Settings, e.Event)
		require.NoError(t, schemas[e.Event].Validate(e.Body), e.Event)
		fits++
	}
	require.Equal(t, len(HookEvents())-2, fits, "tracking.event is there twice; order.tracking_number_changed, tracking.event_withdrawn and tracking.disputed are our own")
}

// Bodies that tests of orders hold against what is really sent.
func TestSentBodiesFitTheirSchemas(t *testing.T) {
	t.Parallel()
	schemas := payloads(t)
	files, err := filepath.Glob("../order/testdata/events/*.json")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	blank := strings.NewReplacer("<time>", "2026-11-20T18:12:00-05:00", "<date>", "2026-11-27", `"<n>"`, "810234", "<n>", "810234", "<ms>", "1795216320000", "<id>", "0f2d6c1e8d0e4c399d0a6f1b2a3c4d5e")
	for _, f := range files {
		raw, err := os.ReadFile(f)
		require.NoError(t, err)
		body, err := jsonschema.UnmarshalJSON(strings.NewReader(blank.Replace(string(raw))))
		require.NoError(t, err)
		name := body.(map[string]any)["event"].(string)
		require.NoError(t, schemas[name].Validate(body), f)
	}
}
