package order

import (
	"embed"
	"encoding/json"
	"strings"
	"time"

	"github.com/postern-io/postern/cloud"
)

// samples are events as the tests saw them go out. What differs from run to run
// stands in angle brackets.
//
//go:embed samples/*.json
var samples embed.FS

// Sample is an event of this package as it may be told. ok is false when there
// is no such event.
func Sample(event string, at time.Time) (s cloud.HookSample, ok bool) {
	raw, err := samples.ReadFile("samples/" + event + ".json")
	if err != nil {
		return s, false
	}
	text := strings.NewReplacer("<time>", at.Format(time.RFC3339), "until=<date>", "until="+at.AddDate(0, 0, 7).Format(time.DateOnly),
		"bat_<id>", "bat_0123456789abcdef0123456789abcdef", "<n>", "1").Replace(string(raw))
	var body struct {
		Event string          `json:"event"`
		Data  json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal([]byte(text), &body); err != nil || body.Event != event {
		return s, false
	}
	s = cloud.HookSample{Event: event, ReferenceType: "order", Data: body.Data}
	if event == eventBatch {
		s.ReferenceType = "batch"
	}
	return s, true
}

// SampleEvents are the events that there is a sample of.
func SampleEvents() (names []string) {
	files, _ := samples.ReadDir("samples") // embedded
	for _, f := range files {
		name := strings.TrimSuffix(f.Name(), ".json")
		if _, ok := Sample(name, time.Time{}); ok {
			names = append(names, name)
		}
	}
	return names
}
