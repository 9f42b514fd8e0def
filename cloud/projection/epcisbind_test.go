package projection

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/protocol/otep"
)

// Only what names one thing by what it is can be a container, or in one: no class, no lot, no last part of an address.
func TestThings(t *testing.T) {
	f := func(epc string, want otep.Subject) {
		t.Helper()
		require.Equal(t, want, readThing(epc), epc)
	}
	f("urn:epc:id:sscc:0614141.1234567890", otep.Subject{SSCC: "106141412345678908"})
	f("https://id.gs1.org/00/106141412345678908", otep.Subject{SSCC: "106141412345678908"})
	f("https://example.org/some/path/00/106141412345678908", otep.Subject{SSCC: "106141412345678908"})
	f("urn:epc:id:grai:0614141.12345.400", otep.Subject{ExternalTrackingNumber: "00614141123452400"})
	f("https://id.gs1.org/8003/00614141123452400", otep.Subject{ExternalTrackingNumber: "00614141123452400"})
	f("urn:epc:id:giai:0614141.12345400", otep.Subject{ExternalTrackingNumber: "061414112345400"})
	f("https://id.gs1.org/8004/061414112345400", otep.Subject{ExternalTrackingNumber: "061414112345400"})
	f("https://api.example.com/api/v1/otep/trackings/SR%2E1", otep.Subject{TrackingNumber: "SR.1"})
	f("otep:subject:1Z%20999", otep.Subject{ExternalTrackingNumber: "1Z 999"})
	f("otep:subject:PACKAGE:77", otep.Subject{PackageID: 77})
	for _, epc := range []string{"", "urn:epc:id:sgtin:0614141.107346.2017", "urn:epc:class:lgtin:0614141.107346.A1", "urn:epc:idpat:sgtin:0614141.107346.*", "urn:epc:id:grai:0614141.12345.",
		"https://id.gs1.org/01/70614141123451/21/2018", "https://id.gs1.org/01/70614141123451/10/LOT", "https://id.gs1.org/8003/00614141123452", "https://id.gs1.org/01/70614141123451/21/1?00=106141412345678908",
		"https://example.org/things/SR1", "https://example.org/", "urn:uuid:9f1c2d34-0000-4000-8000-000000000001", "SR1", "urn:epc:id:sscc:061414.1", "urn:epc:id:grai:1.2", "urn:epc:id:giai:x.1"} {
		f(epc, otep.Subject{})
	}
}

func TestAggregationEvents(t *testing.T) {
	read := func(members string) Captured {
		t.Helper()
		got, _, err := ReadEPCIS([]byte(`{"type":"AggregationEvent","eventTime":"2026-06-10T10:00:00Z",` + members + `}`))
		require.NoError(t, err)
		require.Len(t, got, 1)
		return got[0]
	}
	const parent = `"parentID":"urn:epc:id:sscc:0614141.1234567890",`
	child := otep.Subject{SSCC: "306141410000000006"}
	c := read(parent + `"action":"ADD","eventID":"e-1","bizStep":"loading","childEPCs":["urn:epc:id:sscc:0614141.3000000000","urn:epc:id:sgtin:0614141.107346.2017"]`)
	require.Equal(t, &Binding{Inside: true, Children: []otep.Subject{child}}, c.Binding)
	require.Equal(t, otep.Subject{SSCC: "106141412345678908"}, c.Subject)
	require.Equal(t, "loading", c.Step)
	require.Len(t, c.Notes, 1)
	require.Equal(t, &Binding{All: true}, read(parent+`"action":"DELETE"`).Binding)
	require.Nil(t, read(parent+`"action":"DELETE","childEPCs":["urn:epc:id:sgtin:0614141.107346.2017"]`).Binding, "not all that is inside")
	require.Nil(t, read(parent+`"action":"DELETE","childQuantityList":[{"epcClass":"urn:epc:class:lgtin:4012345.012345.998877","quantity":10}]`).Binding)
	require.Nil(t, read(parent+`"action":"ADD"`).Binding)
	require.Nil(t, read(parent+`"action":"OBSERVE","childEPCs":["urn:epc:id:sscc:0614141.3000000000"]`).Binding)
	require.Equal(t, "parentID", read(`"action":"ADD"`).Fault.Path)
	require.Equal(t, "action", read(parent+`"action":"MOVE"`).Fault.Path)
	require.Contains(t, read(`"action":"OBSERVE"`).Skipped, "parentID")
	require.Contains(t, read(`"action":"ADD","parentID":"urn:epc:id:sgtin:0614141.107346.2017"`).Skipped, "parentID")
	// Without an id the content is the id: in another order of children, recorded later, or declared wrong.
	ids := map[string]bool{}
	for i, more := range []string{`"childEPCs":["otep:subject:A","otep:subject:B"]`, `"childEPCs":["otep:subject:B","otep:subject:A"],"recordTime":"2026-06-11T10:00:00Z"`,
		`"childEPCs":["otep:subject:B","otep:subject:A"],"errorDeclaration":{"declarationTime":"2026-06-12T10:00:00Z"}`, `"childEPCs":["otep:subject:B"]`} {
		ids[read(parent+`"action":"ADD",`+more).Event.EventID] = true
		require.Len(t, ids, map[int]int{0: 1, 1: 1, 2: 1, 3: 2}[i])
	}
}

func FuzzThings(f *testing.F) {
	for _, epc := range []string{"urn:epc:id:grai:0614141.12345.400", "https://id.gs1.org/8003/00614141123452400", "urn:epc:id:giai:0614141.%zz", "otep:subject:%00"} {
		f.Add(epc)
	}
	f.Fuzz(func(t *testing.T, epc string) {
		text, err := json.Marshal(epc)
		require.NoError(t, err)
		_, _, _ = ReadEPCIS(fmt.Appendf(nil, `{"type":"AggregationEvent","action":"DELETE","eventTime":"2026-06-10T10:00:00Z","parentID":%s,"childEPCs":[%s]}`, text, text))
	})
}
