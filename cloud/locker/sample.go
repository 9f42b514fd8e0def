package locker

import (
	_ "embed"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/postern-io/postern/cloud"
)

// samples are events as the tests saw them go out, by name.
//
//go:embed samples.json
var samples []byte

func readSamples() map[string]struct {
	Data json.RawMessage `json:"data"`
} {
	var all map[string]struct {
		Data json.RawMessage `json:"data"`
	}
	_ = json.Unmarshal(samples, &all) // embedded, and read by tests
	return all
}

// Sample is an event of a locker delivery as it may be told. ok is false when
// there is no such event.
func Sample(event string, _ time.Time) (s cloud.HookSample, ok bool) {
	body, ok := readSamples()[event]
	return cloud.HookSample{Event: event, ReferenceType: "locker_delivery", Data: body.Data}, ok
}

// SampleEvents are the events that there is a sample of.
func SampleEvents() []string { return slices.Sorted(maps.Keys(readSamples())) }
