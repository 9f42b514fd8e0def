package projection

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/protocol/otep"
)

// What each official example says here: per event and EPC the subject, the
// status of an empty timeline, or why there is none.
func TestOfficialEPCISExamples(t *testing.T) {
	type said struct {
		Index   int      `json:"index"`
		Subject string   `json:"subject,omitempty"`
		Event   string   `json:"event_id,omitempty"`
		At      string   `json:"occurred_at,omitempty"`
		Status  string   `json:"status,omitempty"`
		Reason  string   `json:"reason,omitempty"`
		Place   string   `json:"place,omitempty"`
		Read    []string `json:"telemetry,omitempty"`
		Takes   bool     `json:"withdraws,omitempty"`
		Skipped string   `json:"skipped,omitempty"`
		Fault   *Fault   `json:"fault,omitempty"`
		Notes   []string `json:"notes,omitempty"`
	}
	got := map[string][]said{}
	for _, name := range []string{"EPCISQueryDocument", "ErrorDeclarationAndCorrectiveEvent", "Example_9.6.1-ObjectEvent", "Example_9.6.1-ObjectEventWithDigitalLink",
		"Example_9.6.2-ObjectEvent", "PersistentDisposition-example", "SensorDataExample1", "object_event_all_possible_fields"} {
		captured, _, err := ReadEPCIS(reference(t, "epcis", "examples", name+".jsonld"))
		require.NoError(t, err, name)
		for _, c := range captured {
			s := said{Index: c.Index, Skipped: c.Skipped, Fault: c.Fault, Subject: c.Subject.IdentityKey(), Event: c.Event.EventID, Takes: c.Withdraws, Notes: c.Notes, Reason: c.Event.IncidentReason}
			if c.Skipped == "" && c.Fault == nil {
				s.At, s.Place = c.Event.OccurredAt.String(), readPoint(c.Event.Location)
				code, ok := Status(c.Step, c.Disposition, false, false)
				s.Status = string(code)
				if !ok {
					s.Skipped = "no status"
				}
				for _, r := range c.Event.Telemetry {
					s.Read = append(s.Read, r.Type+" "+r.Unit)
				}
			}
			got[name] = append(got[name], s)
		}
	}
	equalGolden(t, "official-epcis.json", got)
}

func TestEPCs(t *testing.T) {
	f := func(epc string, want otep.Subject) {
		t.Helper()
		require.Equal(t, want, readEPC(epc), epc)
	}
	f("urn:epc:id:sscc:0614141.1234567890", otep.Subject{SSCC: "106141412345678908"})
	f("https://id.gs1.org/00/106141412345678908", otep.Subject{SSCC: "106141412345678908"})
	f("https://example.org/some/path/00/106141412345678908", otep.Subject{SSCC: "106141412345678908"})
	f("https://api.example.com/api/v1/otep/trackings/SR%2E1", otep.Subject{TrackingNumber: "SR.1"})
	f("otep:subject:1Z%20999", otep.Subject{ExternalTrackingNumber: "1Z 999"})
	f("otep:subject:PACKAGE:77", otep.Subject{PackageID: 77})
	f("urn:epc:id:sgtin:0614141.107346.2017", otep.Subject{ExternalTrackingNumber: "0614141.107346.2017"})
	f("https://id.gs1.org/01/70614141123451/21/2018", otep.Subject{ExternalTrackingNumber: "2018"})
	f("urn:epc:id:sscc:061414.1", otep.Subject{ExternalTrackingNumber: "061414.1"})
	f("https://example.org/", otep.Subject{})
	f("", otep.Subject{})
}

func TestPlaces(t *testing.T) {
	f := func(id, want string) {
		t.Helper()
		require.Equal(t, want, readPoint(readPlace(id)))
	}
	f("geo:43.6426,-79.3871", "geo:43.6426,-79.3871")
	f("geo:43.5,-79.25,12;crs=wgs84", "geo:43.5,-79.25")
	f("urn:epc:id:sgln:0614141.00777.0", "https://id.gs1.org/414/0614141007776")
	f("https://id.gs1.org/414/4012345000009", "https://id.gs1.org/414/4012345000009")
	f("otep:location:Toronto%20Hub", "otep:location:Toronto%20Hub")
	f("geo:400,1", "otep:location:geo:400%2C1")
	require.Equal(t, &otep.Location{FacilityID: "urn:x:dock"}, readPlace("urn:x:dock"))
}

// Every row of the table of business steps, in order: the first match counts.
func TestBizSteps(t *testing.T) {
	const fresh, reached, outFor = 0, 1, 3 // out for delivery has been reached as well
	f := func(step, disp string, state int, want otep.Code) {
		t.Helper()
		got, ok := Status(Word(step), Word(disp), state&1 > 0, state&2 > 0)
		require.Equal(t, want != "", ok)
		require.Equal(t, want, got, step+" "+disp)
	}
	f("void_shipping", "returned", fresh, otep.Cancelled)
	f("decommissioning", "", fresh, otep.Cancelled)
	f("holding", "returned", fresh, otep.RejectedByRecipient)
	f("", "returned", fresh, otep.ReturnToSender)
	f("receiving", "urn:epcglobal:cbv:disp:returned", fresh, otep.ReturnToSender)
	f("commissioning", "active", fresh, otep.InformationSubmitted)
	f("receiving", "otep:disp:received", fresh, otep.Delivered)
	f("accepting", "https://ref.gs1.org/cbv/Disp-retail_sold", fresh, otep.Delivered)
	f("accepting", "", outFor, otep.Delivered)
	f("accepting", "", reached, otep.PickedUp)
	f("retail_selling", "", fresh, otep.Delivered)
	f("dispensing", "", fresh, otep.Delivered)
	f("receiving", "in_progress", reached, otep.Received)
	f("receiving", "in_progress", fresh, otep.PickedUp)
	f("collecting", "", fresh, otep.PickedUp)
	f("picking", "", fresh, otep.PickedUp)
	f("staging_outbound", "in_transit", fresh, otep.PackageOutbound)
	f("staging_outbound", "in_progress", fresh, otep.AwaitingPickup)
	f("departing", "in_progress", fresh, otep.OutForPickup)
	f("departing", "in_progress", reached, otep.InTransit)
	f("https://ref.gs1.org/cbv/BizStep-shipping", "", fresh, otep.InTransit)
	f("cbv:BizStep-transporting", "", fresh, otep.InTransit)
	f("https://ns.gs1.org/cbv/BizStep-loading", "", fresh, otep.InTransit)
	f("urn:epcglobal:cbv:bizstep:arriving", "", fresh, otep.ArrivalScan)
	f("unloading", "", fresh, otep.ArrivalScan)
	f("storing", "", fresh, otep.Received)
	f("stocking", "", fresh, otep.Received)
	f("unpacking", "", fresh, otep.Received)
	f("holding", "", outFor, otep.DeliveryFailed)
	f("holding", "", fresh, otep.RemovedFromRoute)
	f("inspecting", "conformant", fresh, "")
	f("", "", fresh, "")
}

func TestBadEPCIS(t *testing.T) {
	_, _, err := ReadEPCIS([]byte(`{"type":`))
	require.ErrorIs(t, err, otep.ErrJSON)
	_, _, err = ReadEPCIS([]byte(`{"type":"\u0000"}`))
	require.ErrorIs(t, err, otep.ErrJSON)
	for _, body := range []string{`null`, `1`, `{}`, `{"epcisBody":{}}`, `{"epcisBody":[]}`, `{"epcisBody":{"queryResults":{}}}`} {
		_, _, err := ReadEPCIS([]byte(body))
		require.ErrorIs(t, err, ErrNoEvents, body)
	}
	f := func(event, fault, skipped string) {
		t.Helper()
		got, n, err := ReadEPCIS([]byte("[" + event + "]"))
		require.NoError(t, err)
		require.Equal(t, 1, n)
		if fault == "" {
			require.Contains(t, got[0].Skipped, skipped)
			return
		}
		require.Equal(t, fault, got[0].Fault.Path)
	}
	f(`7`, "", "")
	f(`{"type":"AggregationEvent"}`, "", "AggregationEvent")
	f(`{"type":"TransformationEvent"}`, "", "TransformationEvent")
	f(`{"type":"\u0001\u2028strange"}`, "", "not an EPCIS event type")
	f(`{"type":"ObjectEvent","eventTime":"2026-06-10T10:00:00Z"}`, "", "epcList")
	f(`{"type":"ObjectEvent","epcList":["urn:x:1"]}`, "eventTime", "")
	f(`{"type":"ObjectEvent","epcList":["urn:x:1"],"eventTime":"yesterday"}`, "eventTime", "")
	f(`{"type":"ObjectEvent","epcList":"urn:x:1"}`, "epcList", "")
	f(`{"type":"ObjectEvent","epcList":[""],"eventTime":"2026-06-10T10:00:00Z"}`, "epcList[0]", "")
}

// An event in UTC gets the offset that stands beside it.
func TestOffsets(t *testing.T) {
	f := func(at, offset, want string) {
		t.Helper()
		got, err := readTime(at, offset)
		require.NoError(t, err)
		require.Equal(t, want, got.String())
	}
	f("2026-06-10T12:00:00Z", "-04:00", "2026-06-10T08:00:00-04:00")
	f("2026-06-10T12:00:00+02:00", "-04:00", "2026-06-10T12:00:00+02:00")
	f("2026-06-10T12:00:00Z", "+00:00", "2026-06-10T12:00:00Z")
	f("2026-06-10T12:00:00Z", "", "2026-06-10T12:00:00Z")
	f("2026-06-10T12:00:00Z", "nonsense", "2026-06-10T12:00:00Z")
}

func FuzzEPCIS(f *testing.F) {
	names, _ := filepath.Glob("testdata/*epcis.json")
	for _, n := range names {
		b, err := os.ReadFile(n)
		require.NoError(f, err)
		f.Add(b)
	}
	f.Add([]byte(`{"type":"ObjectEvent","epcList":["urn:epc:id:sscc:0614141.1234567890"],"eventTime":"2026-06-10T10:00:00Z","readPoint":{"id":"geo:1,2"},"sensorElementList":[{"sensorReport":[{"type":"gs1:Temperature","value":1e400}]}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		got, count, err := ReadEPCIS(b)
		if err != nil {
			return
		}
		require.GreaterOrEqual(t, len(got), min(count, 1))
		for _, c := range got {
			if c.Fault == nil && c.Skipped == "" {
				require.NotEmpty(t, c.Subject.IdentityKey())
			}
		}
	})
}
