package projection

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/protocol/otep"
)

// brands are the commerce formats with the schemas of what their platforms accept
// today. testdata/brand holds those that are ours, with the sources of their facts.
var brands = []struct {
	format string
	// list points to what the list of events holds, "" where that is one document.
	list string
	// kept are members of older versions, or our own, that are in no list of today.
	kept []string
}{
	{format: "aftership", list: "#/$defs/checkpoints", kept: []string{"expected_delivery", "zip", "country_iso3"}},
	{format: "shopify", list: "#/$defs/list"},
	{format: "amazon", list: "#/definitions/GetTrackingResult/properties/eventHistory"},
	{format: "walmart", kept: []string{"approximate"}},
	{format: "bigcommerce", kept: []string{"approximate"}},
	{format: "magento", kept: []string{"approximate"}},
	{format: "woocommerce", kept: []string{"approximate"}},
	{format: "etsy", kept: []string{"approximate"}},
}

// brandSchema is the schema of a commerce format or of a part of it. Its objects
// have no members but those that it names.
func brandSchema(t testing.TB, format, pointer string) *jsonschema.Schema {
	t.Helper()
	var raw []byte
	if format == "amazon" {
		raw = reference(t, "amazon-shipping", "shippingV2.json")
		if pointer == "" {
			pointer = "#/definitions/GetTrackingResult"
		}
	} else {
		var err error
		raw, err = os.ReadFile(filepath.Join("testdata", "brand", format+".json"))
		require.NoError(t, err)
	}
	var schema any
	require.NoError(t, json.Unmarshal(raw, &schema))
	closeObjects(schema)
	raw, err := json.Marshal(schema)
	require.NoError(t, err)
	return schemaOf(t, raw, pointer)
}

// closeObjects refuses other members in every object that is described. The
// branches of a choice describe objects that are closed around them.
func closeObjects(schema any) {
	switch s := schema.(type) {
	case map[string]any:
		if _, ok := s["properties"]; ok && s["type"] != nil {
			s["additionalProperties"] = false
		}
		for _, v := range s {
			closeObjects(v)
		}
	case []any:
		for _, v := range s {
			closeObjects(v)
		}
	}
}

// dropMembers takes the named members out of every object and counts them.
func dropMembers(v any, names []string, seen map[string]int) {
	switch o := v.(type) {
	case map[string]any:
		for _, name := range names {
			if _, ok := o[name]; ok {
				delete(o, name)
				seen[name]++
			}
		}
		for _, m := range o {
			dropMembers(m, names, seen)
		}
	case []any:
		for _, m := range o {
			dropMembers(m, names, seen)
		}
	}
}

// single is a timeline of one event of a code, after others that came an hour apart.
func single(t testing.TB, code otep.Code, change func(*otep.Event), before ...otep.Code) otep.Timeline {
	t.Helper()
	s := otep.Subject{TrackingNumber: "SR1"}
	var events []otep.Event
	for i, c := range append(slices.Clone(before), code) {
		at := otep.Time{Time: answered.Add(time.Duration(i-48) * time.Hour)}
		e := otep.Event{OccurredAt: at, RecordedAt: at, StatusCode: c, Source: &otep.Source{Type: otep.Carrier}}.Fill("parcel")
		if c == code && change != nil {
			change(&e)
		}
		events = append(events, e)
	}
	return otep.Fold("parcel", s, withIDs(s, events))
}

func estimatedTimelines(t testing.TB) []otep.Timeline {
	own, foreseen := single(t, otep.InTransit, nil), single(t, otep.Delivered, func(e *otep.Event) { e.TimeType = otep.Estimated }, otep.InTransit)
	own.EstimatedDeliveryAt = &otep.Time{Time: answered.Add(48 * time.Hour)}
	return []otep.Timeline{own, foreseen}
}

func TestBrandDocumentsAreOfTodaysInterfaces(t *testing.T) {
	t.Parallel()
	p := projector()
	for _, b := range brands {
		t.Run(b.format, func(t *testing.T) {
			t.Parallel()
			f, ok := Find(b.format)
			require.True(t, ok)
			schema := brandSchema(t, b.format, "")
			var list *jsonschema.Schema
			if b.list != "" {
				list = brandSchema(t, b.format, b.list)
			}
			seen := map[string]int{}
			var last any
			for _, tl := range append(journeys(), estimatedTimelines(t)...) {
				last = instance(t, p.Document(f, tl, answered))
				dropMembers(last, b.kept, seen)
				require.NoError(t, schema.Validate(last), tl.Subject)
				if list != nil {
					events := instance(t, p.Events(f, tl, answered))
					dropMembers(events, b.kept, seen)
					require.NoError(t, list.Validate(events), tl.Subject)
				}
			}
			for _, name := range b.kept {
				require.NotZero(t, seen[name], "%s stands in no document", name)
			}
			last.(map[string]any)["status_text"] = "x"
			require.Error(t, schema.Validate(last), "an unknown member is refused")
		})
	}
}

// afterShipSubtags are that platform's subtags and their texts, as far as we know both
// (aftership.com/docs/tracking/2026-07/enum/delivery-sub-statuses, and its answers in
// public test data).
var afterShipSubtags = map[string]string{
	"Pending_001": "Pending", "InfoReceived_001": "Info Received",
	"InTransit_001": "In Transit", "InTransit_002": "Acceptance scan", "InTransit_003": "Arrival scan", "InTransit_005": "Customs clearance completed",
	"InTransit_006": "Customs clearance started", "InTransit_007": "Departure Scan", "InTransit_008": "Problem resolved", "InTransit_009": "Forwarded to a different delivery address",
	"OutForDelivery_001": "Out for Delivery", "OutForDelivery_003": "Customer contacted", "OutForDelivery_004": "Delivery appointment scheduled",
	"AttemptFail_001": "Failed Attempt", "AttemptFail_002": "Addressee not available", "AttemptFail_003": "Business Closed",
	"AvailableForPickup_001": "Available for pickup",
	"Delivered_001":          "Delivered", "Delivered_002": "Picked up by the customer", "Delivered_003": "Sign by customer",
	"Delivered_004": "Delivered and received cash on delivery", "Delivered_005": "Delivered to neighbor",
	"Exception_001": "Exception", "Exception_002": "Customer moved", "Exception_003": "Customer refused delivery", "Exception_004": "Delayed (Customs clearance)",
	"Exception_005": "Delayed (External factors)", "Exception_006": "Held for payment", "Exception_007": "Incorrect Address", "Exception_008": "Pick up missed",
	"Exception_009": "Rejected by carrier", "Exception_010": "Returning to sender", "Exception_011": "Returned to sender", "Exception_012": "Shipment damage", "Exception_013": "Shipment lost",
	"Exception_016": "Delayed (Processing issue)", "Exception_017": "Delayed (Extreme weather)", "Exception_018": "Incorrect / missing documents", "Exception_019": "Delayed (Late flight)",
	"Exception_020": "Shipment cancelled", "Exception_021": "Shipment disposed",
	"Expired_001": "Expired",
}

type afterShipStatus struct {
	Tag     string `json:"tag"`
	Subtag  string `json:"subtag"`
	Message string `json:"subtag_message"`
}

// Whatever the code, the reason and the proof, the subtag is one of the platform's, with its
// own text, and begins with its tag.
func TestAfterShipSubtagsAreOfTheirList(t *testing.T) {
	t.Parallel()
	check := func(tl otep.Timeline) {
		t.Helper()
		var d struct {
			afterShipStatus
			Checkpoints []afterShipStatus `json:"checkpoints"`
		}
		decodeDocument(t, "aftership", tl, &d)
		for _, s := range append(d.Checkpoints, d.afterShipStatus) {
			require.Contains(t, afterShipSubtags, s.Subtag)
			require.Equal(t, afterShipSubtags[s.Subtag], s.Message, s.Subtag)
			require.Equal(t, s.Tag, s.Subtag[:strings.Index(s.Subtag, "_")])
		}
	}
	check(otep.Fold("", otep.Subject{TrackingNumber: "SR0"}, nil))
	for _, c := range otep.Vocabulary() {
		check(single(t, c.Code, nil))
		check(single(t, c.Code, func(e *otep.Event) { e.PoD = &otep.Proof{Recipient: "J. Smith"} }))
		for _, r := range otep.Reasons() {
			check(single(t, c.Code, func(e *otep.Event) { e.IncidentReason = r.Code }))
		}
	}
}

func decodeDocument(t testing.TB, format string, tl otep.Timeline, into any) {
	t.Helper()
	f, ok := Find(format)
	require.True(t, ok)
	require.NoError(t, json.Unmarshal(encode(t, projector().Document(f, tl, answered)), into))
}

// The estimate of a timeline is AfterShip's courier estimate and its latest; estimated
// deliveries say how it began. An estimate that is not known is null.
func TestAfterShipEstimates(t *testing.T) {
	t.Parallel()
	type estimate struct{ Type, Source, Datetime string }
	var d struct {
		Old     *string `json:"expected_delivery"`
		Courier *struct {
			At string `json:"estimated_delivery_date"`
		} `json:"courier_estimated_delivery_date"`
		First  *estimate `json:"first_estimated_delivery"`
		Latest *estimate `json:"latest_estimated_delivery"`
	}
	decode := func(tl otep.Timeline) {
		t.Helper()
		d.Old, d.Courier, d.First, d.Latest = nil, nil, nil, nil
		decodeDocument(t, "aftership", tl, &d)
	}
	stamp := func(days int) string {
		return otep.Time{Time: answered.Add(time.Duration(days) * 24 * time.Hour)}.String()
	}
	carrier := func(days int) *estimate { return &estimate{"specific", "Carrier EDD", stamp(days)} }

	decode(single(t, otep.InTransit, nil))
	require.Nil(t, d.Old)
	require.Nil(t, d.Courier)
	require.Nil(t, d.First)
	require.Nil(t, d.Latest)

	own := single(t, otep.InTransit, nil)
	own.EstimatedDeliveryAt = &otep.Time{Time: answered.Add(72 * time.Hour)}
	decode(own)
	require.Equal(t, stamp(3), *d.Old)
	require.Equal(t, stamp(3), d.Courier.At)
	require.Equal(t, carrier(3), d.Latest)
	require.Nil(t, d.First, "the timeline may have had another one before")

	// Two estimates, recorded in the other order than they foresee; a planned delivery and an
	// estimated departure are none.
	s := otep.Subject{TrackingNumber: "SR1"}
	event := func(code otep.Code, timeType string, day, recorded int) otep.Event {
		return otep.Event{OccurredAt: otep.Time{Time: answered.Add(time.Duration(day) * 24 * time.Hour)}, RecordedAt: otep.Time{Time: answered.Add(time.Duration(recorded) * time.Minute)},
			StatusCode: code, TimeType: timeType, Source: &otep.Source{Type: otep.Carrier}}
	}
	foreseen := otep.Fold("parcel", s, withIDs(s, []otep.Event{event(otep.InTransit, "", -1, -100), event(otep.Delivered, otep.Estimated, 5, -90),
		event(otep.Delivered, otep.Estimated, 2, -10), event(otep.Delivered, otep.Planned, 1, -95), event(otep.OutForDelivery, otep.Estimated, 1, -5)}))
	decode(foreseen)
	require.Nil(t, d.Old)
	require.Equal(t, stamp(2), d.Courier.At)
	require.Equal(t, carrier(5), d.First)
	require.Equal(t, carrier(2), d.Latest)

	foreseen.EstimatedDeliveryAt = own.EstimatedDeliveryAt
	decode(foreseen)
	require.Equal(t, carrier(5), d.First)
	require.Equal(t, carrier(3), d.Latest, "the timeline's own is the latest")
}

// A checkpoint keeps its hash, and no two have the same: receivers drop repeats by it.
func TestAfterShipHashesAreOfEvents(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, tl := range journeys() {
		var first, again struct{ Checkpoints []struct{ Hash string } }
		decodeDocument(t, "aftership", tl, &first)
		decodeDocument(t, "aftership", tl, &again)
		require.Equal(t, first, again)
		for i, e := range actual(tl) {
			require.False(t, seen[first.Checkpoints[i].Hash], e.EventID)
			seen[first.Checkpoints[i].Hash] = true
		}
	}
}

// The two lists of Shopify's document are the same events.
func TestShopifyListsAgree(t *testing.T) {
	t.Parallel()
	for _, tl := range append(journeys(), estimatedTimelines(t)...) {
		var d struct {
			Old []struct {
				ID         json.Number
				Status     string
				Message    string
				HappenedAt time.Time  `json:"happened_at"`
				CreatedAt  time.Time  `json:"created_at"`
				Estimated  *time.Time `json:"estimated_delivery_at"`
				Address1   *string
				City, Zip  *string
				Country    *string
				Province   *string
				Latitude   *float64
				Longitude  *float64
			} `json:"fulfillment_events"`
			Fulfillment struct {
				Events struct {
					Nodes []struct {
						ID         string
						Status     string
						Message    string
						HappenedAt time.Time  `json:"happenedAt"`
						CreatedAt  time.Time  `json:"createdAt"`
						Estimated  *time.Time `json:"estimatedDeliveryAt"`
						Address1   *string
						City, Zip  *string
						Country    *string
						Province   *string
						Latitude   *float64
						Longitude  *float64
					}
				}
			}
		}
		decodeDocument(t, "shopify", tl, &d)
		require.Len(t, d.Fulfillment.Events.Nodes, len(d.Old))
		for i, n := range d.Fulfillment.Events.Nodes {
			o := d.Old[i]
			require.Equal(t, "gid://shopify/FulfillmentEvent/"+o.ID.String(), n.ID)
			require.Equal(t, o.Status, strings.ToLower(n.Status))
			require.True(t, o.HappenedAt.Equal(n.HappenedAt) && o.CreatedAt.Equal(n.CreatedAt))
			if o.Estimated != nil || n.Estimated != nil {
				require.True(t, o.Estimated.Equal(*n.Estimated))
			}
			require.Equal(t, []any{o.Message, o.Address1, o.City, o.Zip, o.Country, o.Province, o.Latitude, o.Longitude},
				[]any{n.Message, n.Address1, n.City, n.Zip, n.Country, n.Province, n.Latitude, n.Longitude})
		}
	}
}

// Amazon's summary is of the latest event: one that is lost is not on its way.
func TestAmazonSummaryOfLostParcels(t *testing.T) {
	t.Parallel()
	var d struct {
		History []struct{ EventCode string } `json:"eventHistory"`
		Summary struct{ Status string }
	}
	for _, reason := range []string{"lost", "stolen"} {
		decodeDocument(t, "amazon", single(t, otep.RemovedFromRoute, func(e *otep.Event) { e.IncidentReason = reason }, otep.InTransit), &d)
		require.Equal(t, "Lost", d.History[1].EventCode, reason)
		require.Equal(t, "Lost", d.Summary.Status, reason)
	}
	found := single(t, otep.ArrivalScan, nil, otep.InTransit)
	found.Events[0].IncidentReason = "lost"
	decodeDocument(t, "amazon", found, &d)
	require.Equal(t, "Lost", d.History[0].EventCode)
	require.Equal(t, "InTransit", d.Summary.Status, "it was found again")
}

// A carrier is called as each platform's list spells it, and one that is in no list by its
// own code.
func TestCarriersAreNamedAsEachPlatformNamesThem(t *testing.T) {
	t.Parallel()
	type names struct{ walmart, other, bigCommerce, display, magento, title, woo, etsy string }
	f := func(provider string, want names) {
		t.Helper()
		tl := single(t, otep.InTransit, func(e *otep.Event) { e.Source.Provider = provider })
		var w struct {
			S struct {
				L []struct {
					T struct {
						C struct{ Carrier, OtherCarrier string } `json:"carrierName"`
					} `json:"trackingInfo"`
				} `json:"orderLineStatus"`
			} `json:"orderLineStatuses"`
		}
		var b struct {
			S struct {
				Provider string `json:"shipping_provider"`
				Carrier  string `json:"tracking_carrier"`
				Display  string `json:"shipping_provider_display_name"`
			} `json:"shipment"`
		}
		var m struct {
			S struct {
				T []struct {
					Title string
					Code  string `json:"carrier_code"`
				} `json:"tracks"`
			} `json:"shipment"`
		}
		var woo struct {
			T []struct {
				Provider string `json:"tracking_provider"`
			} `json:"shipment_tracking"`
		}
		var e struct {
			S []struct {
				Carrier string `json:"carrier_name"`
			} `json:"shipments"`
		}
		decodeDocument(t, "walmart", tl, &w)
		decodeDocument(t, "bigcommerce", tl, &b)
		decodeDocument(t, "magento", tl, &m)
		decodeDocument(t, "woocommerce", tl, &woo)
		decodeDocument(t, "etsy", tl, &e)
		c := w.S.L[0].T.C
		require.Equal(t, want, names{c.Carrier, c.OtherCarrier, b.S.Provider, b.S.Display, m.S.T[0].Code, m.S.T[0].Title, woo.T[0].Provider, e.S[0].Carrier}, provider)
	}
	f("ups", names{"UPS", "", "ups", "UPS", "ups", "UPS", "UPS", "ups"})
	f("usps", names{"USPS", "", "usps", "USPS", "usps", "USPS", "USPS", "usps"})
	f("fedex", names{"FedEx", "", "fedex", "FedEx", "fedex", "FedEx", "FedEx", "fedex"})
	f("dhl", names{"DHL", "", "", "DHL", "dhl", "DHL", "DHL", "dhl"})
	f("ontrac", names{"OnTrac", "", "", "OnTrac", "custom", "OnTrac", "OnTrac", "ontrac"})
	f("canadapost", names{"Canada Post", "", "canadapost", "Canada Post", "custom", "Canada Post", "Canada Post", "canadapost"})
	f("royalmail", names{"Royal Mail", "", "royalmail", "Royal Mail", "custom", "Royal Mail", "Royal Mail", "royalmail"})
	f("auspost", names{"", "Australia Post", "auspost", "Australia Post", "custom", "Australia Post", "Australia Post", "auspost"})
	f("quick-box", names{"", "quick-box", "", "quick-box", "custom", "quick-box", "quick-box", "quick-box"})
	f("", names{"", "carrier", "", "carrier", "custom", "carrier", "carrier", "carrier"})
	for _, k := range carriers { // none that a list does not have
		tl := single(t, otep.InTransit, func(e *otep.Event) { e.Source.Provider = k.code })
		for _, b := range brands {
			f, _ := Find(b.format)
			doc := instance(t, projector().Document(f, tl, answered))
			dropMembers(doc, b.kept, map[string]int{})
			require.NoError(t, brandSchema(t, b.format, "").Validate(doc), k.code)
		}
	}
}

// coarseLine is what the coarse platforms say of an order.
type coarseLine struct {
	walmart       string
	bigCommerceID int
	bigCommerce   string
	state, status string // Magento's
	woo           string
	etsy          string
	etsyShipped   bool
}

var (
	created      = coarseLine{"Created", 11, "Awaiting Fulfillment", "new", "pending", "processing", "paid", false}
	acknowledged = coarseLine{"Acknowledged", 11, "Awaiting Fulfillment", "processing", "processing", "processing", "paid", false}
	waiting      = coarseLine{"Acknowledged", 9, "Awaiting Shipment", "processing", "processing", "processing", "paid", false}
	underWay     = coarseLine{"Shipped", 2, "Shipped", "processing", "processing", "processing", "completed", true}
	arrived      = coarseLine{"Delivered", 10, "Completed", "complete", "complete", "completed", "completed", true}
	held         = coarseLine{"Shipped", 12, "Manual Verification Required", "holded", "holded", "on-hold", "completed", true}
	void         = coarseLine{"Cancelled", 5, "Cancelled", "canceled", "canceled", "cancelled", "canceled", false}
)

// Each code's status on each platform: alone, and where that is another one for the coarse
// platforms, after a pickup.
func TestBrandStatusOfEveryCode(t *testing.T) {
	t.Parallel()
	type row struct {
		tag, subtag     string
		shopify         string
		amazon, summary string
		alone, later    coarseLine
	}
	want := map[otep.Code]row{
		otep.InformationSubmitted: {"InfoReceived", "InfoReceived_001", "confirmed", "ReadyForReceive", "PreTransit", created, created},
		otep.BookingConfirmed:     {"InfoReceived", "InfoReceived_001", "confirmed", "ReadyForReceive", "PreTransit", acknowledged, acknowledged},
		otep.AwaitingPickup:       {"InfoReceived", "InfoReceived_001", "confirmed", "ReadyForReceive", "PreTransit", waiting, waiting},
		otep.OutForPickup:         {"InfoReceived", "InfoReceived_001", "confirmed", "ReadyForReceive", "PreTransit", waiting, waiting},
		otep.PickedUp:             {"InTransit", "InTransit_002", "carrier_picked_up", "PickupDone", "InTransit", underWay, underWay},
		otep.PickupFailed:         {"Exception", "Exception_001", "delayed", "ReadyForReceive", "PreTransit", waiting, waiting},
		otep.PickupRescheduled:    {"InfoReceived", "InfoReceived_001", "delayed", "ReadyForReceive", "PreTransit", waiting, waiting},
		otep.Received:             {"InTransit", "InTransit_002", "in_transit", "ArrivedAtCarrierFacility", "InTransit", underWay, underWay},
		otep.ArrivalScan:          {"InTransit", "InTransit_003", "in_transit", "ArrivedAtCarrierFacility", "InTransit", underWay, underWay},
		otep.InTransit:            {"InTransit", "InTransit_001", "in_transit", "Departed", "InTransit", underWay, underWay},
		otep.PackageOutbound:      {"InTransit", "InTransit_007", "in_transit", "Departed", "InTransit", underWay, underWay},
		otep.RemovedFromRoute:     {"InTransit", "InTransit_001", "delayed", "ArrivedAtCarrierFacility", "InTransit", waiting, underWay},
		otep.RouteCancelled:       {"InTransit", "InTransit_001", "delayed", "ArrivedAtCarrierFacility", "InTransit", waiting, underWay},
		otep.OutForDelivery:       {"OutForDelivery", "OutForDelivery_001", "out_for_delivery", "OutForDelivery", "OutForDelivery", underWay, underWay},
		otep.Delivered:            {"Delivered", "Delivered_001", "delivered", "Delivered", "Delivered", arrived, arrived},
		otep.DeliveryFailed:       {"AttemptFail", "AttemptFail_001", "attempted_delivery", "DeliveryAttempted", "DeliveryAttempted", held, held},
		otep.DeliveryRescheduled:  {"Exception", "Exception_005", "delayed", "RecipientRequestedAlternateDeliveryTiming", "InTransit", waiting, underWay},
		otep.ReturnToSender:       {"Exception", "Exception_011", "failure", "ReturnInitiated", "Undeliverable", held, held},
		otep.RejectedByRecipient:  {"Exception", "Exception_003", "failure", "Rejected", "Rejected", held, held},
		otep.Cancelled:            {"Exception", "Exception_001", "failure", "PickupCancelled", "PickupCancelled", void, void},
		// Of single profiles.
		otep.AvailableForPickup: {"AvailableForPickup", "AvailableForPickup_001", "ready_for_pickup", "AvailableForPickup", "AwaitingCustomerPickup", underWay, underWay},
		otep.PickupOverdue:      {"Exception", "Exception_008", "attempted_delivery", "DeliveryAttempted", "DeliveryAttempted", held, held},
		otep.RemovedFromDevice:  {"InTransit", "InTransit_001", "delayed", "ArrivedAtCarrierFacility", "InTransit", waiting, underWay},
		otep.Stored:             {"InTransit", "InTransit_002", "in_transit", "ArrivedAtCarrierFacility", "InTransit", underWay, underWay},
		otep.ShipoutRequested:   {"InfoReceived", "InfoReceived_001", "confirmed", "ReadyForReceive", "PreTransit", acknowledged, acknowledged},
		otep.ShipoutReleased:    {"InTransit", "InTransit_007", "in_transit", "Departed", "InTransit", underWay, underWay},
		otep.Loading:            {"InTransit", "InTransit_002", "carrier_picked_up", "PickupDone", "InTransit", underWay, underWay},
		otep.Unloading:          {"OutForDelivery", "OutForDelivery_001", "out_for_delivery", "OutForDelivery", "OutForDelivery", underWay, underWay},
		otep.Preparing:          {"InfoReceived", "InfoReceived_001", "confirmed", "ReadyForReceive", "PreTransit", acknowledged, acknowledged},
		otep.Ready:              {"InfoReceived", "InfoReceived_001", "confirmed", "ReadyForReceive", "PreTransit", waiting, waiting},
		otep.Intercepted:        {"InTransit", "InTransit_001", "delayed", "ArrivedAtCarrierFacility", "InTransit", waiting, underWay},
		otep.CustomsHold:        {"Exception", "Exception_004", "delayed", "ArrivedAtCarrierFacility", "InTransit", waiting, underWay},
	}
	require.Len(t, otep.Vocabulary(), len(want), "a row for every code")
	for _, c := range otep.Vocabulary() {
		require.Contains(t, want, c.Code)
		tl := single(t, c.Code, nil)
		var a afterShipStatus
		var s struct {
			Events []struct{ Status string } `json:"fulfillment_events"`
		}
		var z struct {
			History []struct{ EventCode string } `json:"eventHistory"`
			Summary struct{ Status string }
		}
		decodeDocument(t, "aftership", tl, &a)
		decodeDocument(t, "shopify", tl, &s)
		decodeDocument(t, "amazon", tl, &z)
		got := row{a.Tag, a.Subtag, s.Events[0].Status, z.History[0].EventCode, z.Summary.Status, coarseDocuments(t, tl), coarseDocuments(t, single(t, c.Code, nil, otep.PickedUp))}
		require.Equal(t, want[c.Code], got, c.Code)
	}
}

// coarseDocuments reads what the five coarse documents say.
func coarseDocuments(t testing.TB, tl otep.Timeline) coarseLine {
	t.Helper()
	var w struct {
		S struct {
			L []struct{ Status string } `json:"orderLineStatus"`
		} `json:"orderLineStatuses"`
	}
	var b struct {
		ID     int `json:"status_id"`
		Status string
	}
	var m struct {
		Order struct{ State, Status string }
	}
	var woo struct{ Status string }
	var e struct {
		Status  string
		Shipped bool `json:"is_shipped"`
	}
	decodeDocument(t, "walmart", tl, &w)
	decodeDocument(t, "bigcommerce", tl, &b)
	decodeDocument(t, "magento", tl, &m)
	decodeDocument(t, "woocommerce", tl, &woo)
	decodeDocument(t, "etsy", tl, &e)
	return coarseLine{w.S.L[0].Status, b.ID, b.Status, m.Order.State, m.Order.Status, woo.Status, e.Status, e.Shipped}
}
