package api

import (
	"net/http"

	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/tracking"
)

func (c Config) tracking() []catalog.Operation {
	t := c.Tracking
	desk := tracking.Desk{Service: t}
	return []catalog.Operation{
		catalog.Define(catalog.Operation{
			Name:        "tracking.public",
			Summary:     "Get the public tracking of a tracking number",
			Description: "The public view: status and timeline. The key of the recipient's link in X-Tracking-Key, or the last four digits of the telephone number in verify, shows what the recipient may see.",
			Tag:         "Tracking",
			Method:      http.MethodGet,
			Path:        "/api/v1/tracking/{tracking_number}",
			Tools:       []string{"track_package"},
			Errors:      []string{"TRACKING_NOT_FOUND"},
			GraphQL:     &catalog.GraphQL{Field: "trackingPublic", Type: "TrackingResult", Nullable: true},
			Example:     `{"tracking_number":"SWP100200300"}`,
		}, t.Public, nil),
		catalog.Define(catalog.Operation{
			Name:        "otep.tracking",
			Summary:     "Get the timeline of a tracking number, in any format",
			Description: "The timeline in the Open Tracking Event Protocol, or as another format by format, with labels in the caller's language. It shows the newest 500 events; next, and the Link header, lead to the older ones in the list of events.",
			Tag:         "OTEP",
			Method:      http.MethodGet,
			Path:        "/api/v1/otep/trackings/{tracking_number}",
			Tools:       []string{"otep_tracking", "get_otep_tracking"},
			Tagged:      true,
			Kept:        true,
			Gives:       []string{"application/ld+json"},
			Errors:      []string{"OTEP_TRACKING_NOT_FOUND", "OTEP_UNSUPPORTED_FORMAT"},
			GraphQL:     &catalog.GraphQL{Field: "otepTracking", Pick: "data", JSON: true, Nullable: true},
			Example:     `{"tracking_number":"SWP100200300"}`,
		}, t.Timeline, timelineAnswer),
		catalog.Define(catalog.Operation{
			Name:        "otep.events",
			Summary:     "List the events of a timeline",
			Description: "The newest 500 events alone, oldest first or by order, and the older ones page by page by cursor. A reader of all pages gets each event once that stood when it began and was not withdrawn. Of a page since shows those recorded later. Owners also get those that were withdrawn, by include.",
			Tag:         "OTEP",
			Method:      http.MethodGet,
			Path:        "/api/v1/otep/trackings/{tracking_number}/events",
			Tools:       []string{"otep_tracking"},
			Tagged:      true,
			Errors:      []string{"OTEP_TRACKING_NOT_FOUND", "OTEP_UNSUPPORTED_FORMAT", "OTEP_INVALID_REQUEST", "OTEP_CREDENTIALS_REQUIRED", "OTEP_PROVIDER_FORBIDDEN"},
			Example:     `{"tracking_number":"SWP100200300"}`,
		}, t.Events, func(out tracking.EventsOutput) catalog.Answer {
			return catalog.Answer{Body: out, ETag: true, Headers: readHeaders(out.Private, out.NextURL)}
		}),
		catalog.Define(catalog.Operation{
			Name:        "otep.batch",
			Summary:     "Get up to 100 timelines",
			Description: "Up to 100 numbers at once. An unknown number has an error in its place. Each number counts in the rate limit.",
			Tag:         "OTEP",
			Method:      http.MethodPost,
			Path:        "/api/v1/otep/trackings/batch",
			Harmless:    true,
			Errors:      []string{"OTEP_INVALID_JSON", "OTEP_INVALID_REQUEST", "OTEP_UNSUPPORTED_FORMAT", "OTEP_PAYLOAD_TOO_LARGE"},
			Example:     `{"tracking_numbers":["SWP100200300"]}`,
		}, t.Batch, nil),
		catalog.Define(catalog.Operation{
			Name:        "otep.validate",
			Summary:     "Validate a timeline",
			Description: "Says what is wrong with a timeline and what is only unusual. Nothing is stored.",
			Tag:         "OTEP",
			Method:      http.MethodPost,
			Path:        "/api/v1/otep/validate",
			Tools:       []string{"validate_otep_payload"},
			Harmless:    true,
			Media:       []string{"application/ld+json"},
			Errors:      []string{"OTEP_INVALID_JSON", "OTEP_PAYLOAD_TOO_LARGE"},
			Example:     `{"otep_version":"0.1","profile":"parcel","subject":{"tracking_number":"SWP100200300"},"events":[{"occurred_at":"2026-06-09T18:20:00-04:00","status_code":"arrival_scan","source":{"type":"partner"}}]}`,
		}, t.Validate, nil),
		catalog.Define(catalog.Operation{
			Name:        "otep.ingest",
			Summary:     "Ingest events into timelines",
			Description: "Adds a provider's events to the timelines of their parcels. Events that exist already are reported as duplicates, so that a repeat is harmless; those that are invalid, or whose id is stored with other content, are reported one by one. withdrawals take back events that the provider sent before, and an event with corrects takes the place of one.",
			Tag:         "OTEP",
			Method:      http.MethodPost,
			Path:        "/api/v1/otep/ingest",
			Risk:        catalog.RiskMedium,
			Group:       catalog.Ingest,
			NoTokenCode: "OTEP_CREDENTIALS_REQUIRED",
			Errors:      []string{"OTEP_CREDENTIALS_REQUIRED", "OTEP_PROVIDER_FORBIDDEN", "OTEP_INVALID_JSON", "OTEP_INVALID_REQUEST", "OTEP_PAYLOAD_TOO_LARGE", "OTEP_TRACKING_NOT_FOUND", "OTEP_NOT_CONFORMANT", "OTEP_TIMELINE_FULL", "OTEP_EVENT_CONFLICT"},
			Example:     `{"otep_version":"0.1","profile":"parcel","subject":{"tracking_number":"SWP100200301"},"events":[{"occurred_at":"2026-06-09T18:20:00-04:00","status_code":"arrival_scan","source":{"type":"partner"}}]}`,
		}, t.Ingest, nil),
		catalog.Define(catalog.Operation{
			Name:        "otep.ingest_epcis",
			Summary:     "Ingest an EPCIS 2.0 document",
			Description: "Each ObjectEvent becomes one event for each EPC. An AggregationEvent with the action ADD puts its childEPCs into the container that parentID names, with DELETE it takes them out, all of them without any; its business step is the container's event. An SSCC that is not known becomes a pallet when parcels of the provider are put into it. Other kinds of event are skipped, with the reason.",
			Tag:         "OTEP",
			Method:      http.MethodPost,
			Path:        "/api/v1/otep/ingest/epcis",
			Risk:        catalog.RiskMedium,
			Group:       catalog.Ingest,
			NoTokenCode: "OTEP_CREDENTIALS_REQUIRED",
			Media:       []string{"application/ld+json"},
			Errors:      []string{"OTEP_CREDENTIALS_REQUIRED", "OTEP_PROVIDER_FORBIDDEN", "OTEP_INVALID_JSON", "OTEP_INVALID_REQUEST", "OTEP_PAYLOAD_TOO_LARGE", "OTEP_TRACKING_NOT_FOUND", "OTEP_NOT_CONFORMANT", "OTEP_TIMELINE_FULL", "OTEP_EVENT_CONFLICT"},
			Example:     `{"@context":["https://ref.gs1.org/standards/epcis/2.0.0/epcis-context.jsonld"],"type":"EPCISDocument","schemaVersion":"2.0","creationDate":"2026-06-10T00:00:00Z","epcisBody":{"eventList":[{"type":"ObjectEvent","eventID":"urn:uuid:9f1c2d34-0000-4000-8000-000000000001","action":"OBSERVE","bizStep":"receiving","disposition":"in_progress","eventTime":"2026-06-10T14:00:00Z","eventTimeZoneOffset":"-04:00","epcList":["urn:epc:id:sscc:0614141.1234567890"]}]}}`,
		}, t.IngestEPCIS, nil),
		catalog.Define(catalog.Operation{
			Name:        "otep.epcis_events",
			Summary:     "Query events as EPCIS 2.0",
			Description: "Events of the parcels that the caller may see, oldest first, as an EPCIS query document. The Link header leads to the next page.",
			Tag:         "OTEP",
			Method:      http.MethodGet,
			Path:        "/api/v1/otep/epcis/events",
			Scopes:      []string{"orders:read"},
			NoTokenCode: "OTEP_CREDENTIALS_REQUIRED",
			Gives:       []string{"application/ld+json"},
			Errors:      []string{"OTEP_CREDENTIALS_REQUIRED", "OTEP_PROVIDER_FORBIDDEN", "OTEP_INVALID_REQUEST"},
		}, t.Pull, pullAnswer),
		catalog.Define(catalog.Operation{
			Name:        "otep.dispute",
			Summary:     "Dispute an event",
			Description: "The recipient, by the key of the link or the digits of the telephone number, or an owner of the parcel says that an event is wrong. The event stays; staff decide.",
			Tag:         "OTEP",
			Method:      http.MethodPost,
			Path:        "/api/v1/otep/trackings/{tracking_number}/disputes",
			NoTokenCode: "OTEP_CREDENTIALS_REQUIRED",
			Errors:      []string{"OTEP_TRACKING_NOT_FOUND", "OTEP_CREDENTIALS_REQUIRED", "OTEP_INVALID_REQUEST", "TOO_MANY_REVIEWS"},
			Example:     `{"tracking_number":"SWP100200300","verify":"0123","event_id":"evt_3bb8f382b2d362260118","kind":"not_received","note":"The locker was empty"}`,
		}, t.Dispute, nil),
		catalog.Define(catalog.Operation{
			Name:        "otep.reviews.list",
			Summary:     "List reviews of events",
			Description: "Events that lie far ahead or back, ids that came with other content, cancellations by carriers, disputes, and orders that an event has left behind: staff decide what becomes of each. Newest first.",
			Tag:         "OTEP",
			Method:      http.MethodGet,
			Path:        "/api/v1/otep/reviews",
			Types:       staff,
			Scopes:      []string{"orders:read"},
			Noun: &catalog.Noun{
				Name: "review", Path: "reviews", Area: "delivery", Icon: "eye",
				Begin: "order",
				ID:    "review_id", Title: []string{"tracking_number"}, State: "status", States: "review_status",
				Columns: []string{"tracking_number", "kind", "status", "status_code", "occurred_at", "created_at", "action"},
				Verbs:   []string{"otep.reviews.decide"},
				Parts:   []catalog.Part{{Input: "action", Of: "actions", ID: "action", Title: "action", Only: map[string]string{"occurred_at": "accept_at"}}},
				Links:   []catalog.Link{{Words: "todo.parcel", To: "/track/{tracking_number}"}},
			},
		}, desk.Reviews, nil),
		catalog.Define(catalog.Operation{
			Name:        "otep.reviews.find",
			Summary:     "Get a review of an event",
			Description: "What came, from whom, what may be decided, and what was.",
			Tag:         "OTEP",
			Method:      http.MethodGet,
			Path:        "/api/v1/otep/reviews/{id}",
			Types:       staff,
			Scopes:      []string{"orders:read"},
			Errors:      []string{"REVIEW_NOT_FOUND"},
			Example:     `{"id":1}`,
		}, desk.Review, nil),
		catalog.Define(catalog.Operation{
			Name:        "otep.reviews.decide",
			When:        []string{"open"},
			Summary:     "Decide a review of an event",
			Description: "accept takes the event as it came, accept_at at another time, reject leaves it out; override puts what came in the place of what is stored, or the order where its timeline is; withdraw takes the event back; dismiss leaves all as it is. The order follows.",
			Tag:         "OTEP",
			Method:      http.MethodPost,
			Path:        "/api/v1/otep/reviews/{id}/decide",
			Types:       staff,
			Scopes:      []string{"orders:write"},
			Risk:        catalog.RiskHigh,
			Idempotent:  true,
			Errors:      []string{"REVIEW_NOT_FOUND", "REVIEW_ALREADY_DECIDED", "REVIEW_ACTION_NOT_ALLOWED", "OTEP_TIMELINE_FULL", "ORDER_NOT_FOUND", "ORDER_NOT_CANCELLABLE", "ORDER_STATUS_CONFLICT"},
			Example:     `{"id":1,"action":"dismiss","note":"The parcel was found"}`,
		}, desk.Decide, nil),
		catalog.Define(catalog.Operation{
			Name:        "otep.changes",
			Summary:     "List changes of timelines",
			Description: "The feed of the parcels that the caller owns: each change once, in the order in which it was recorded, from 90 days ago on. next goes on behind the last one, and wait waits for one. With Accept: text/event-stream they come as they are recorded.",
			Tag:         "OTEP",
			Method:      http.MethodGet,
			Path:        "/api/v1/otep/changes",
			Scopes:      []string{"orders:read"},
			NoTokenCode: "OTEP_CREDENTIALS_REQUIRED",
			Live:        true,
			Wait:        tracking.MaxWait,
			Errors:      []string{"OTEP_CREDENTIALS_REQUIRED", "OTEP_PROVIDER_FORBIDDEN", "OTEP_INVALID_REQUEST", "CURSOR_EXPIRED"},
		}, t.Changes, func(out tracking.ChangesOutput) catalog.Answer {
			if out.Live != nil {
				return catalog.Answer{Body: out.Live}
			}
			return catalog.Answer{Body: out}
		}),
	}
}

func timelineAnswer(out tracking.TimelineOutput) catalog.Answer {
	a := catalog.Answer{Body: out, ETag: true, Headers: readHeaders(out.Private, out.NextURL), About: out.About}
	if out.MediaType != "" {
		a.Body, a.Type = out.Data, out.MediaType
	}
	return a
}

func readHeaders(private bool, next string) [][2]string {
	cache := "public, max-age=30"
	if private {
		cache = "private, max-age=30"
	}
	return withNext([][2]string{{"Cache-Control", cache}, {"Vary", "Accept, Accept-Language, Authorization, X-Tracking-Key"}}, next)
}

// withNext are headers with one that leads to the next page, if there is one.
func withNext(headers [][2]string, next string) [][2]string {
	if next == "" {
		return headers
	}
	return append(headers, [2]string{"Link", "<" + next + `>; rel="next"`})
}

func pullAnswer(out tracking.PullOutput) catalog.Answer {
	headers := [][2]string{{"GS1-EPCIS-Version", "2.0.0"}, {"GS1-CBV-Version", "2.0.0"}}
	return catalog.Answer{Body: out.Document, Type: "application/ld+json", Headers: withNext(headers, out.Next)}
}
