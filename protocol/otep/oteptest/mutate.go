// Package oteptest makes faulty timelines for tests. It knows JSON and what people get wrong,
// and neither the schema nor the rules of the protocol.
package oteptest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
)

// Full is a timeline with every member that a producer can send.
const Full = `{"otep_version":"0.1","profile":"parcel","subject":{"tracking_number":"SR1","order_id":12345,"package_id":7,"external_tracking_number":"1Z 999","gs1_sscc":"106141412345678908","piece_id":"urn:x:1"},
"current_status":"delivered","current_phase":"delivered","delivered":true,"terminal":true,"last_event_at":"2026-06-10T11:30:00-04:00","estimated_delivery_at":"2026-06-10T12:00:00Z","events":[
{"event_id":"e1","otep_version":"0.1","occurred_at":"2026-06-09T18:20:00-04:00","recorded_at":"2026-06-09T18:20:04.5-04:00","status_code":"arrival_scan","status_uri":"otep:parcel:arrival_scan","status_label":"Arrived","phase":"inbound","phase_uri":"otep:phase:inbound","time_type":"actual",
 "location":{"name":"Hub","address":"1 King St","city":"Toronto","region":"ON","country":"CA","postal_code":"M5V 2T6","latitude":43.6426,"longitude":-79.3871,"unlocode":"CATOR","gln":"0614141123452","facility_id":"f","type":"hub"},
 "source":{"type":"self_delivery","provider":"own","provider_name":"Own","raw_status":"AR","raw_message":"arrived","reference":"r","synthesized":false},
 "telemetry":[{"type":"temperature","value":4.2,"unit":"CEL","time":"2026-06-09T18:20:00Z","device_id":"probe-17"}],"message":"in","extensions":{"a":[1,{"b":null}]}},
{"event_id":"e2","occurred_at":"2026-06-10T09:50:00-04:00","status_code":"delivery_failed","incident_reason":"recipient_unavailable","source":{"type":"carrier"}},
{"event_id":"e3","occurred_at":"2026-06-10T11:30:00-04:00","status_code":"delivered","source":{"type":"carrier"},
 "pod":{"recipient":"J. Smith","signed":true,"signature_url":"https://example.com/s","signed_at":"2026-06-10T11:30:00-04:00","note":"n","files":[{"file_id":1,"type":"photo","url":"u","full_url":"f"}]},"corrects":"e0"}],"withdrawals":[{"event_id":"e9","reason":"did_not_occur"},{"event_id":"e8","reason":"incorrect_data"}]}`

// words are texts that a member may be given in the place of its own.
var words = []string{"", " ", "in_transit", "arrival_scan", "delivery_failed", "out_for_delivery", "x", "x-", "x-new", "X-New", "delivered", "otep:parcel:delivered", "otep:phase:delivered", "otep:moving:x-a", "canceled", "otep:x-p:refused", "label", "own_fleet", "Locker", "hub", "inbound", "exception", "return", "did_not_occur", "incorrect_data",
	"planned", "actual", "guessed", "weather", "x-why", "x-moose", "x-moose", "bad luck", "2026-06-10T11:30:00", "2026-06-10T11:30:00Z", "2027-06-10T11:30:00Z", "2026-06-10t11:30:00.123456789+02:00", "2026-06-10T11:30:60Z", "2026-06-10T24:00:00Z", "2026-02-30T00:00:00Z", "2026-6-1T00:00:00Z", "2026-06-10T11:30:00.1234567890Z",
	"2026-06-10T11:30:00+24:00", "2026-06-10T11:30:00-00:00", "0000-01-01T00:00:00Z", "10000-01-01T00:00:00Z", "0.1", "0.2", "1.0", "0", "00.1", "0.1.0", "0.1.", "parcel", "x-mine", "phase", "universal", "Parcel", "a_b", "a-b", "CA", "ca", "CAN", "0614141123452", "0614141123453", "CEL", "Celsius",
	"106141412345678908", "00106141412345678908", "106141412345678909", "SR 1", " SR-1.a_b ", "SR/1", "包裹", "a\tb", "a\u0085b", "\u00a0", "null", "true", "5"}

// numbers are at the edges of what is stored.
var numbers = []string{`0`, `1`, `-1`, `1.0`, `1e3`, `1.5`, `-0`, `9007199254740993`, `9223372036854775807`, `9223372036854775808`, `1e18`, `1e19`, `1e30`, `1e400`, `-1e400`, `1e-400`, `90`, `90.0000001`, `-180`, `180.5`, `12e1`}

// values are values of other types.
var values = []string{`null`, `null`, `null`, `true`, `false`, `[]`, `{}`, `[null]`, `[1]`, `["a"]`, `[{}]`, `[[]]`, `{"a":1}`, `{"type":null}`, `{"type":"carrier"}`, `{"type":"speed","value":5}`, `[{"type":"speed","value":5}]`, `[{"type":" ","value":5}]`, `[{"type":"speed","value":"5"}]`, `{"latitude":1}`, `{"latitude":1,"longitude":null}`, `{"latitude":null}`}

// Mutate changes one to three places of a document, which must be JSON: a value becomes another
// one, a member is taken out, misspelled or added, an element is doubled or taken out. The result
// is JSON in which no member stands twice.
func Mutate(r *rand.Rand, doc []byte) []byte {
	d := json.NewDecoder(bytes.NewReader(doc))
	d.UseNumber()
	var root any
	if err := d.Decode(&root); err != nil {
		panic(fmt.Sprintf("mutate what is no JSON: %v", err))
	}
	for range 1 + r.IntN(3) {
		places := placesIn(&root, nil)
		places[r.IntN(len(places))].change(r)
	}
	out, err := json.Marshal(root)
	if err != nil {
		panic(fmt.Sprintf("write a mutant: %v", err))
	}
	return out
}

// place is where a value stands: it can be set, and taken out of an object or an array.
type place struct {
	value  any
	set    func(v any)
	object map[string]any // around it, with its name there
	name   string
}

// placesIn lists a value and all values in it.
func placesIn(at *any, out []place) []place {
	out = append(out, place{value: *at, set: func(v any) { *at = v }})
	return within(*at, out)
}

func within(v any, out []place) []place {
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			out = within(v[name], append(out, place{v[name], func(x any) { v[name] = x }, v, name}))
		}
	case []any:
		for i := range v {
			out = within(v[i], append(out, place{value: v[i], set: func(x any) { v[i] = x }}))
		}
	}
	return out
}

// change makes something else of a place.
func (p place) change(r *rand.Rand) {
	if p.object != nil {
		switch r.IntN(12) {
		case 0:
			delete(p.object, p.name)
			return
		case 1:
			p.object[misspelled(r, p.name)] = p.value
			delete(p.object, p.name)
			return
		case 2:
			p.object[words[r.IntN(len(words))]] = p.value
			return
		}
	}
	if list, ok := p.value.([]any); ok && len(list) > 0 && r.IntN(2) == 0 {
		list = slices.Clone(list)
		i := r.IntN(len(list))
		switch r.IntN(3) {
		case 0:
			list = slices.Delete(list, i, i+1)
		case 1:
			list = append(list, list[i])
		default:
			list = append(list, slices.Repeat(list[i:i+1], 101)...)
		}
		p.set(list)
		return
	}
	p.set(altered(r, p.value))
}

// altered is another value, more often than not of the same type.
func altered(r *rand.Rand, was any) any {
	_, isNumber := was.(json.Number)
	s, isText := was.(string)
	switch n := r.IntN(20); {
	case isText && n < 8:
		return words[r.IntN(len(words))]
	case isText && n < 12:
		return misspelled(r, s)
	case isText && n < 14:
		return strings.Repeat("é", []int{64, 65, 500, 501}[r.IntN(4)])
	case isNumber && n < 14:
		return json.Number(numbers[r.IntN(len(numbers))])
	case n == 14:
		return map[string]any{"a": strings.Repeat("x", []int{8184, 8185}[r.IntN(2)])}
	case n < 17:
		return json.RawMessage(values[r.IntN(len(values))])
	case n == 17:
		return json.Number(numbers[r.IntN(len(numbers))])
	}
	return words[r.IntN(len(words))]
}

// misspelled is a text with one letter swapped, doubled, dropped or in capitals.
func misspelled(r *rand.Rand, s string) string {
	letters := []rune(s)
	if len(letters) == 0 {
		return "x"
	}
	i := r.IntN(len(letters))
	switch r.IntN(4) {
	case 0:
		letters[0], letters[i] = letters[i], letters[0]
	case 1:
		letters = slices.Insert(letters, i, letters[i])
	case 2:
		letters = slices.Delete(letters, i, i+1)
	default:
		return string(letters[:i]) + strings.ToUpper(string(letters[i:i+1])) + string(letters[i+1:])
	}
	return string(letters)
}
