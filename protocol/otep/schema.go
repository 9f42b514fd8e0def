package otep

import (
	"bytes"
	"sync"
)

// Schema is the JSON Schema (2020-12) of a timeline, the same at every call. It
// asks for canonical values; what else is accepted on input, moves and the
// order of events are beyond it and reported by Validate. The result that Fold makes of
// conformant events is valid.
func Schema() []byte { return bytes.Clone(schema()) }

var schema = sync.OnceValue(func() []byte {
	return written(object{
		"$schema":     "https://json-schema.org/draft/2020-12/schema",
		"title":       "OTEP timeline",
		"description": "Open Tracking Event Protocol " + Version + ". Unknown members are ignored.",
		"type":        "object",
		"required":    []string{"otep_version", "subject", "events"},
		"properties": object{
			"otep_version":          versionSchema,
			"profile":               object{"type": "string", "pattern": namePattern, "maxLength": maxName, "not": object{"enum": reserved}, "default": DefaultProfile, "examples": profiles},
			"subject":               object{"$ref": "#/$defs/subject"},
			"current_status":        object{"anyOf": []any{object{"$ref": "#/$defs/status_code"}, object{"type": "null"}}},
			"current_phase":         object{"enum": append(anys(phases), nil)},
			"delivered":             object{"type": "boolean"},
			"terminal":              object{"type": "boolean"},
			"last_event_at":         object{"anyOf": []any{object{"$ref": "#/$defs/date_time"}, object{"type": "null"}}},
			"estimated_delivery_at": object{"$ref": "#/$defs/date_time"},
			"events":                object{"type": "array", "items": object{"$ref": "#/$defs/event"}},
		},
		"if":   object{"required": []string{"current_status"}, "properties": object{"current_status": object{"const": Delivered}}},
		"then": object{"properties": object{"delivered": object{"const": true}}},
		"else": object{"if": object{"required": []string{"current_status"}}, "then": object{"properties": object{"delivered": object{"const": false}}}},
		"$defs": object{
			"date_time":   object{"type": "string", "format": "date-time", "pattern": `^\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:\d{2}(\.\d{1,9})?([Zz]|[+-]\d{2}:\d{2})$`},
			"status_code": object{"anyOf": []any{object{"enum": codesWhere(func(Spec) bool { return true })}, object{"type": "string", "pattern": "^x-[a-z][a-z0-9_]*$", "maxLength": maxName}}},
			"subject":     subjectSchema(),
			"event":       eventSchema(),
			"location":    locationSchema(),
			"source":      sourceSchema(),
			"pod":         proofSchema(),
			"reading":     readingSchema(),
		},
	})
})

const namePattern = "^(x-)?[a-z][a-z0-9_]*$"

var (
	versionSchema = object{"type": "string", "pattern": `^0+\.\d+(\.\d+)?$`, "examples": []string{Version}}
	textSchema    = object{"type": "string"}
)

func anys[T any](list []T) []any {
	out := make([]any, len(list))
	for i, v := range list {
		out[i] = v
	}
	return out
}

// codesWhere lists registered codes.
func codesWhere(ok func(Spec) bool) []Code {
	out := []Code{}
	for _, s := range Vocabulary() {
		if ok(s) {
			out = append(out, s.Code)
		}
	}
	return out
}

func subjectSchema() object {
	var one []any
	for _, name := range identifiers {
		one = append(one, object{"required": []string{name}})
	}
	positive := object{"type": "integer", "minimum": 1}
	return object{
		"type": "object", "anyOf": one,
		"properties": object{
			"tracking_number":          object{"type": "string", "pattern": `^[A-Za-z0-9._-]{1,64}$`},
			"order_id":                 positive,
			"package_id":               positive,
			"external_tracking_number": object{"type": "string", "minLength": 1, "maxLength": maxName},
			"gs1_sscc":                 object{"type": "string", "pattern": `^(00)?\d{18}$`, "description": "18 digits, the last one a GS1 check digit; the application identifier 00 may stand before them"},
			"piece_id":                 object{"type": "string", "minLength": 1, "description": "an absolute IRI, or a local id"},
		},
	}
}

func eventSchema() object {
	// A registered code decides the phase; another one must bring it.
	rules := []any{}
	for _, p := range phases {
		rules = append(rules, object{
			"if":   object{"properties": object{"status_code": object{"enum": codesWhere(func(s Spec) bool { return s.Phase == p })}}},
			"then": object{"properties": object{"phase": object{"const": p}}},
		})
	}
	rules = append(rules, object{
		"if":   object{"properties": object{"status_code": object{"not": object{"enum": codesWhere(func(Spec) bool { return true })}}}},
		"then": object{"required": []string{"phase"}},
	})
	reasons := []string{}
	for _, r := range incidents {
		reasons = append(reasons, r.Code)
	}
	return object{
		"type": "object", "required": []string{"occurred_at", "status_code"}, "allOf": rules,
		"properties": object{
			"event_id":        object{"type": "string", "minLength": 1, "maxLength": maxName},
			"otep_version":    versionSchema,
			"occurred_at":     object{"$ref": "#/$defs/date_time"},
			"recorded_at":     object{"$ref": "#/$defs/date_time"},
			"status_code":     object{"$ref": "#/$defs/status_code"},
			"status_uri":      object{"type": "string", "pattern": "^otep:(x-)?[a-z][a-z0-9_]*:(x-)?[a-z][a-z0-9_]*$"},
			"status_label":    textSchema,
			"phase":           object{"enum": phases},
			"phase_uri":       object{"type": "string", "pattern": "^otep:phase:[a-z_]+$"},
			"time_type":       object{"enum": timeTypes, "default": Actual},
			"location":        object{"$ref": "#/$defs/location"},
			"incident_reason": object{"anyOf": []any{object{"enum": reasons}, object{"type": "string", "pattern": "^x-[a-z][a-z0-9_]*$", "maxLength": maxName}}},
			"source":          object{"$ref": "#/$defs/source"},
			"pod":             object{"$ref": "#/$defs/pod"},
			"telemetry":       object{"type": "array", "items": object{"$ref": "#/$defs/reading"}, "maxItems": MaxTelemetry},
			"message":         object{"type": "string", "maxLength": MaxMessage},
			"extensions":      object{"type": "object", "description": "members of the producer, kept untouched"},
		},
	}
}

func locationSchema() object {
	properties := object{
		"latitude": object{"type": "number", "minimum": -90, "maximum": 90}, "longitude": object{"type": "number", "minimum": -180, "maximum": 180},
		"type":    object{"enum": places},
		"country": object{"type": "string", "description": "ISO 3166-1 alpha-2"}, "unlocode": object{"type": "string", "description": "UN/LOCODE, 5 characters"},
		"gln": object{"type": "string", "description": "GS1 Global Location Number, 13 digits"},
	}
	for _, name := range []string{"name", "address", "city", "region", "postal_code", "facility_id"} {
		properties[name] = textSchema
	}
	return object{"type": "object", "properties": properties, "dependentRequired": object{"latitude": []string{"longitude"}, "longitude": []string{"latitude"}}}
}

func sourceSchema() object {
	types := []string{}
	for _, f := range families {
		types = append(types, f.Type)
	}
	properties := object{"type": object{"enum": types}, "synthesized": object{"type": "boolean"}}
	for _, name := range []string{"provider", "provider_name", "raw_status", "raw_message", "reference"} {
		properties[name] = textSchema
	}
	return object{"type": "object", "required": []string{"type"}, "properties": properties}
}

func proofSchema() object {
	file := object{"type": "object", "properties": object{"file_id": object{"type": "integer"}, "type": textSchema, "url": textSchema, "full_url": textSchema}}
	return object{"type": "object", "properties": object{
		"recipient": textSchema, "signed": object{"type": "boolean"}, "signature_url": textSchema, "signed_at": object{"$ref": "#/$defs/date_time"},
		"note": textSchema, "files": object{"type": "array", "items": file},
	}}
}

func readingSchema() object {
	kinds := []string{}
	for _, s := range sensors {
		kinds = append(kinds, s.Type)
	}
	return object{"type": "object", "required": []string{"type", "value"}, "properties": object{
		"type": object{"type": "string", "minLength": 1, "examples": kinds}, "value": object{"type": "number"},
		"unit": object{"type": "string", "description": "UN/CEFACT Recommendation 20 code"}, "time": object{"$ref": "#/$defs/date_time"}, "device_id": textSchema,
	}}
}
