package otep

import (
	"bytes"
	"encoding/json"
	"sync"
)

// Codebook is the vocabulary as a JSON document, the same at every call:
// phases, universal status codes with their external values, incident reasons,
// source and telemetry types, profiles with the codes of their own, accepted
// spellings, and transitions.
func Codebook() []byte { return bytes.Clone(codebook()) }

var codebook = sync.OnceValue(func() []byte {
	book := struct {
		Version     string          `json:"otep_version"`
		Phases      []any           `json:"phases"`
		StatusCodes []any           `json:"status_codes"`
		Spellings   map[string]Code `json:"accepted_spellings"`
		Reasons     []any           `json:"incident_reasons"`
		SourceTypes []any           `json:"source_types"`
		Telemetry   []any           `json:"telemetry_types"`
		Profiles    []any           `json:"profiles"`
		Transitions map[Code][]Code `json:"transitions"`
	}{Version: Version, Spellings: spellings, Transitions: map[Code][]Code{}}
	for i, p := range phases {
		row := object{"name": p, "order": nil, "address": "otep:phase:" + p}
		if i < ordered {
			row["order"] = i + 1
		}
		book.Phases = append(book.Phases, row)
	}
	for _, s := range universal {
		book.StatusCodes = append(book.StatusCodes, codeRow(s))
		book.Transitions[s.Code] = append([]Code{}, moves[s.Code]...)
	}
	for _, r := range incidents {
		mappings := object{"uncefact": object{"typeCode": r.Rec24}}
		for name, v := range map[string][2]string{"epcis": {"disposition", r.Disposition}, "aftership": {"subtag", r.AfterShipSubtag}, "amazon": {"detailCode", r.AmazonDetail}} {
			if v[1] != "" {
				mappings[name] = object{v[0]: v[1]}
			}
		}
		book.Reasons = append(book.Reasons, object{"code": r.Code, "meaning": r.Meaning, "address": "otep:reason:" + r.Code, "mappings": mappings})
	}
	for _, f := range families {
		book.SourceTypes = append(book.SourceTypes, object{"type": f.Type, "meaning": f.Meaning, "accepted_spellings": f.Spellings})
	}
	for _, s := range sensors {
		book.Telemetry = append(book.Telemetry, object{"type": s.Type, "unit": s.Unit, "epcis": s.EPCIS, "qudt": s.QUDT})
	}
	for _, p := range profiles {
		codes := []any{}
		for _, s := range special {
			if s.Profile == p {
				codes = append(codes, codeRow(*byCode[s.Code]))
			}
		}
		book.Profiles = append(book.Profiles, object{"name": p, "default": p == DefaultProfile, "status_codes": codes})
	}
	return written(book)
})

// codeRow is a code's entry.
func codeRow(s Spec) map[string]any {
	aftership := object{"tag": s.AfterShipTag, "subtag": s.AfterShipSubtag}
	if s.AfterShipSigned != "" {
		aftership["subtag_with_proof"] = s.AfterShipSigned
	}
	row := object{
		"code": s.Code, "phase": s.Phase, "terminal": s.Terminal, "pod": s.PoD, "meaning": s.Meaning, "address": s.URI(universalProfile),
		"mappings": object{
			"epcis": object{"bizStep": s.BizStep, "disposition": s.Disposition}, "onerecord": object{"eventCode": s.OneRecord},
			"uncefact": object{"transportStatusCode": s.Transport, "typeCode": s.Rec24}, "aftership": aftership,
			"shopify": object{"status": s.Shopify}, "amazon": object{"eventCode": s.Amazon, "summaryStatus": s.AmazonSummary},
		},
	}
	if s.Parent != "" {
		row["parent"] = s.Parent
		delete(row, "meaning") // the parent's
	}
	if s.Reason != "" {
		row["incident_reason"] = s.Reason
	}
	return row
}

// written writes v with members in a fixed order, one to a line.
func written(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	if err := e.Encode(v); err != nil {
		panic(err) // our own tables
	}
	return b.Bytes()
}

// object is a JSON object; its members are written in alphabetical order.
type object = map[string]any
