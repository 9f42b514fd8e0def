package projection

import (
	"maps"
	"slices"
)

// Term is a word of this protocol's own in JSON-LD documents. It stands there as
// otep:Name, or under an address that ends in #Name.
type Term struct {
	Name    string
	Formats []string // that use it
}

var terms = []Term{
	{"status_code", []string{"epcis", "onerecord", "sensorthings"}},
	{"event_id", []string{"epcis"}},
	{"incident_reason", []string{"epcis"}},
	{"phase", []string{"epcis"}},
	{"telemetry_type", []string{"epcis"}},
	{"disp:received", []string{"epcis"}},
	{"eventRemark", []string{"onerecord"}},
	{"transportStatusCode", []string{"uncefact"}},
	{"statusReasonCode", []string{"uncefact"}},
}

// Terms lists them.
func Terms() []Term { return slices.Clone(terms) }

// OwnEventCodes lists the ONE Record event codes that are in our code list,
// because IATA's does not have them.
func OwnEventCodes() []string { return slices.Sorted(maps.Keys(unlisted)) }
