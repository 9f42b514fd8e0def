package order

import (
	"embed"
	"fmt"
	"strings"

	"github.com/postern-io/postern/cloud"
)

// settingsOf are the settings whose receivers hear of an event.
func settingsOf(event string) []string {
	switch event {
	case eventCreated:
		return []string{cloud.HookOrderCreate}
	case eventStatus:
		return []string{cloud.HookStatusChange}
	case eventDeleted:
		return []string{cloud.HookOrderDeleted}
	case eventRefused:
		return []string{cloud.HookCancelFailed}
	case eventBatch:
		return []string{cloud.HookPostback}
	case eventTracking:
		return []string{cloud.HookTrackingEvent}
	case eventProof:
		return []string{cloud.HookProofFiles, cloud.HookTrackingEvent}
	}
	if strings.HasPrefix(event, eventStop) {
		return []string{cloud.HookIntercept}
	}
	return []string{cloud.HookOrderLifecycle}
}

// bodies are those that tests hold against what is sent; times and random ids
// are left blank in them.
//
//go:embed events/*.json
var bodies embed.FS

var blanks = strings.NewReplacer("<time>", "2026-11-20T18:12:00-05:00", "<date>", "2026-11-27", `"<n>"`, "810234", "<n>", "810234", "<id>", "0f2d6c1e8d0e4c399d0a6f1b2a3c4d5e")

// Events are those that businesses and customers may be told of, by name.
func Events() []cloud.HookEvent {
	files, err := bodies.ReadDir("events")
	if err != nil {
		panic(fmt.Sprint("order: embedded events: ", err))
	}
	var out []cloud.HookEvent
	for _, f := range files {
		raw, err := bodies.ReadFile("events/" + f.Name())
		if err != nil {
			panic(fmt.Sprint("order: embedded events: ", err))
		}
		name := strings.TrimSuffix(f.Name(), ".json")
		if text := string(raw); strings.Contains(text, `"event": "`+name+`"`) { // others are variants of one
			out = append(out, cloud.HookEvent{Name: name, Settings: settingsOf(name), Sample: []byte(blanks.Replace(text))})
		}
	}
	return out
}
