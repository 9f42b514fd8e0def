package otep

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// walk makes a random valid timeline, folded.
func walk(r *rand.Rand) Timeline {
	when := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	code := universal[r.IntN(len(universal))].Code
	var events []Event
	subject := Subject{TrackingNumber: "SR1"}
	for range 1 + r.IntN(12) {
		when = when.Add(time.Duration(1+r.IntN(5000)) * time.Second)
		zone := time.FixedZone("", 1800*(r.IntN(20)-40))
		e := Event{OccurredAt: Time{when.In(zone)}, RecordedAt: Time{when.Add(time.Second)}, StatusCode: code, Source: &Source{Type: families[r.IntN(len(families))].Type}}
		s := byCode[code]
		if s.PoD && r.IntN(2) == 0 {
			e.PoD = &Proof{Recipient: "J. Smith", Signed: true}
		}
		if s.Phase == PhaseException {
			e.IncidentReason = incidents[r.IntN(len(incidents))].Code
		}
		if r.IntN(3) == 0 {
			e.Location = &Location{City: "Köln", Country: "DE", Latitude: ptr(r.Float64()*180 - 90), Longitude: ptr(r.Float64()*360 - 180), Type: "hub"}
			e.Telemetry = []Reading{{Type: "speed", Value: r.NormFloat64(), Unit: "KMH"}}
			e.Extensions = Extensions{"n": json.Number("12345678901234567890")}
		}
		e.EventID = ID(subject, e)
		events = append(events, e)
		next := Next(code)
		if len(next) == 0 {
			break
		}
		code = next[r.IntN(len(next))]
	}
	return Fold(DefaultProfile, subject, events)
}

func TestWhatIsFoldedConforms(t *testing.T) {
	t.Parallel()
	type mutation struct{ rule, path, json string }
	mutations := []mutation{
		{"V01", "$", `[]`}, {"V04", "otep_version", `"0.3"`}, {"V40", "events", `[]`},
		{"V02", "otep_version", ``}, {"V03", "otep_version", `"2.0"`}, {"V05", "profile", ``}, {"V06", "profile", `"?"`}, {"V07", "profile", `"x-a"`}, {"V08", "subject", `{}`},
		{"V09", "subject.tracking_number", `"?"`}, {"V10", "events", `5`}, {"V11", "events.#.occurred_at", ``}, {"V12", "events.#.occurred_at", `"?"`}, {"V13", "events.#.occurred_at", `"2030-01-01T00:00:00Z"`},
		{"V14", "events.#.recorded_at", `"?"`}, {"V15", "events.#.recorded_at", `"2020-01-01T00:00:00Z"`}, {"V16", "events.#.otep_version", `"0.2"`}, {"V17", "events.#.status_code", ``},
		{"V18", "events.#.status_code", `"?"`}, {"V21", "events.#.phase", `"?"`}, {"V23", "events.#.source", ``}, {"V24", "events.#.source.type", `"?"`}, {"V25", "events.#.source.type", `"label"`},
		{"V26", "events.#.location.latitude", `91`}, {"V27", "events.#.location.country", `"?"`}, {"V28", "events.#.incident_reason", `"?"`}, {"V29", "events.#.incident_reason", `"x-a"`},
		{"V32", "events.#.telemetry", `[{}]`}, {"V33", "events.#.time_type", `"?"`}, {"V35", "events.#", `5`}, {"V44", "current_status", `"x-a"`}, {"V36", "delivered", `5`}, {"V37", "events.#.message", `"` + strings.Repeat("e", 501) + `"`}, {"V38", "events.#.location.gln", `"?"`}, {"V39", "events.#.stauts", `1`},
	}
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 3))
		tl := walk(r)
		b, err := json.Marshal(tl)
		require.NoError(t, err)
		back, report, err := Read(b, noon)
		require.NoError(t, err)
		require.Empty(t, lines(report.Errors), "seed %d", seed)
		require.Empty(t, lines(report.Warnings), "seed %d", seed)
		require.Equal(t, tl, Fold(back.Profile, back.Subject, back.Events), "what is written is read")
		i := r.IntN(len(tl.Events))
		event, last := tl.Events[i], tl.Events[len(tl.Events)-1]
		again := func(e Event, id, when string) string {
			e.EventID, e.OccurredAt, e.RecordedAt = id, at(t, when), at(t, when)
			b, err := json.Marshal(e)
			require.NoError(t, err)
			return string(b)
		}
		end := "events." + strconv.Itoa(len(tl.Events))
		start := Event{StatusCode: InformationSubmitted, Source: &Source{Type: System}}.Fill("parcel")
		own := slices.Concat(mutations, []mutation{
			{"V19", "events." + strconv.Itoa(i) + ".status_code", `"otep:parcel:` + string(event.StatusCode) + `"`}, {"V20", "events.#.status_code", `"x-ready"`}, {"V22", "events.#", `{"status_code":"x-new"}`},
			{"V34", end, again(last, event.EventID, "2026-06-09T00:00:00Z")}, {"V41", end, again(last, "new", "2020-01-01T00:00:00Z")},
		})
		own = append(own, mutation{"V45", "delivered", strconv.FormatBool(!tl.Delivered)})
		if last.StatusCode != InformationSubmitted {
			rule := "V42"
			if byCode[last.StatusCode].Terminal {
				rule = "V43"
			}
			own = append(own, mutation{rule, end, again(start, "new", "2026-06-09T00:00:00Z")})
		}
		if !byCode[event.StatusCode].PoD {
			own = append(own, mutation{"V31", "events." + strconv.Itoa(i) + ".pod", `{}`})
		}
		if n, _ := PhaseOrder(event.Phase); n > 0 {
			own = append(own, mutation{"V30", "events." + strconv.Itoa(i) + ".incident_reason", `"weather"`})
		}
		for _, m := range own {
			path := strings.Replace(m.path, "#", strconv.Itoa(r.IntN(len(tl.Events))), 1)
			report, err := Validate(edited(t, string(b), edit{path, m.json}), noon)
			require.NoError(t, err)
			found := report.Errors
			if ruleByID[m.rule].Warning {
				found = report.Warnings
			}
			require.True(t, slices.ContainsFunc(found, func(e Entry) bool { return e.Rule == m.rule }), "seed %d: %s at %s", seed, m.rule, path)
		}
	}
}
