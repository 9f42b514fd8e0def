package projection

import (
	"maps"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/protocol/otep"
)

// The terms that documents use are those that are published, format by format.
func TestTermsAreThoseOfTheDocuments(t *testing.T) {
	t.Parallel()
	member := regexp.MustCompile(`"otep:(\w+)":`)
	value := regexp.MustCompile(`"otep:(disp:\w+)"`)
	address := regexp.MustCompile(`/api/otep-guide/vocab#([\w:]+)"`)
	used := map[string]map[string]bool{}
	p := projector()
	lists := map[string]bool{}
	for _, tl := range append(journeys(), everything()) {
		for _, f := range Formats() {
			raw := string(encode(t, p.Document(f, tl, answered)))
			for _, re := range []*regexp.Regexp{member, value, address} {
				for _, m := range re.FindAllStringSubmatch(raw, -1) {
					if used[m[1]] == nil {
						used[m[1]] = map[string]bool{}
					}
					used[m[1]][f.Name] = true
				}
			}
			for _, m := range regexp.MustCompile(`/api/otep-guide/code-lists/OtepEventCode#(\w+)"`).FindAllStringSubmatch(raw, -1) {
				lists[m[1]] = true
			}
		}
	}
	told := map[string]map[string]bool{}
	for _, term := range Terms() {
		told[term.Name] = map[string]bool{}
		for _, f := range term.Formats {
			told[term.Name][f] = true
		}
	}
	require.Equal(t, used, told)
	require.Equal(t, slices.Sorted(maps.Keys(lists)), OwnEventCodes())
}

// Two sensors, or one sensor in two units, were one stream whose numbers could
// not be compared.
func TestStreamsAreOfOneUnitAndOneSensor(t *testing.T) {
	t.Parallel()
	at := otep.Time{Time: time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)}
	reading := func(value float64, unit, device string) otep.Reading {
		return otep.Reading{Type: "temperature", Value: value, Unit: unit, DeviceID: device}
	}
	list := measurements("SR1", []otep.Event{{EventID: "a", OccurredAt: at, RecordedAt: at,
		Telemetry: []otep.Reading{reading(4, "CEL", "one"), reading(39.2, "FAH", "one"), reading(20, "", "two"), reading(5, "", "one")}}})
	var ids []string
	for _, d := range list {
		ids = append(ids, d.ID)
	}
	require.Equal(t, []string{"SR1:temperature", "SR1:temperature:FAH:one", "SR1:temperature:CEL:two"}, ids, "without a unit it is the usual one")
	require.Len(t, list[0].Observations, 2)
	require.Equal(t, "Device two", list[2].Sensor.Description)
}
