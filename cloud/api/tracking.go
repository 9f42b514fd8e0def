package api

import (
	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/tracking"
)

func (c Config) tracking() []catalog.Operation {
	t := c.Tracking
	const base = "/api/v1/otep"
	ld := []string{"application/ld+json"}
	row := func(name, summary, method, path string) catalog.Operation {
		return catalog.Operation{Name: "otep." + name, Summary: summary, Tag: "OTEP", Method: method, Path: base + path}
	}
	reads := []string{"OTEP_TRACKING_NOT_FOUND", "OTEP_UNSUPPORTED_FORMAT"}
	takes := func(o catalog.Operation) catalog.Operation {
		o.Group, o.NoTokenCode, o.Risk = catalog.Ingest, "OTEP_CREDENTIALS_REQUIRED", catalog.RiskMedium
		o.Errors = []string{"OTEP_CREDENTIALS_REQUIRED", "OTEP_PROVIDER_FORBIDDEN", "OTEP_INVALID_JSON", "OTEP_INVALID_REQUEST", "OTEP_PAYLOAD_TOO_LARGE", "OTEP_TRACKING_NOT_FOUND", "OTEP_NOT_CONFORMANT", "OTEP_TIMELINE_FULL"}
		return o
	}
	with := func(o catalog.Operation, errors []string, media ...string) catalog.Operation {
		o.Errors, o.Media = errors, media
		return o
	}
	timeline := with(row("tracking", "Get the timeline of a tracking number, in any format", "GET", "/trackings/{tracking_number}"), reads)
	timeline.Gives, timeline.Kept, timeline.Tagged, timeline.Tools = ld, true, true, []string{"otep_tracking", "get_otep_tracking"}
	timeline.GraphQL = &catalog.GraphQL{Field: "otepTracking", Pick: "data", JSON: true, Nullable: true}
	epcis := takes(row("ingest_epcis", "Ingest an EPCIS 2.0 document", "POST", "/ingest/epcis"))
	epcis.Media = ld
	events := tools(with(row("events", "List the events of a timeline", "GET", "/trackings/{tracking_number}/events"), append(reads, "OTEP_INVALID_REQUEST")), "otep_tracking")
	events.Tagged = true
	pull := with(row("epcis_events", "Query events as EPCIS 2.0", "GET", "/epcis/events"), []string{"OTEP_CREDENTIALS_REQUIRED", "OTEP_PROVIDER_FORBIDDEN", "OTEP_INVALID_REQUEST"})
	pull.Scopes, pull.NoTokenCode, pull.Gives = []string{"orders:read"}, "OTEP_CREDENTIALS_REQUIRED", ld
	return []catalog.Operation{
		catalog.Define(catalog.Operation{Name: "tracking.public", Summary: "Get the public tracking of a tracking number", Tag: "Tracking", Method: "GET", Path: "/api/v1/tracking/{tracking_number}",
			Errors: []string{"TRACKING_NOT_FOUND"}, Tools: []string{"track_package"}, GraphQL: &catalog.GraphQL{Field: "trackingPublic", Type: "TrackingResult", Nullable: true}}, t.Public, nil),
		catalog.Define(timeline, t.Timeline, timelineAnswer),
		catalog.Define(events, t.Events, func(out tracking.EventsOutput) catalog.Answer {
			return catalog.Answer{Body: out, ETag: true, Headers: readHeaders(out.Private)}
		}),
		catalog.Define(with(row("batch", "Get up to 100 timelines", "POST", "/trackings/batch"), []string{"OTEP_INVALID_JSON", "OTEP_INVALID_REQUEST", "OTEP_UNSUPPORTED_FORMAT", "OTEP_PAYLOAD_TOO_LARGE"}), t.Batch, nil),
		catalog.Define(tools(with(row("validate", "Validate a timeline", "POST", "/validate"), []string{"OTEP_INVALID_JSON", "OTEP_PAYLOAD_TOO_LARGE"}, ld...), "validate_otep_payload"), t.Validate, nil),
		catalog.Define(takes(row("ingest", "Ingest events into timelines", "POST", "/ingest")), t.Ingest, nil),
		catalog.Define(epcis, t.IngestEPCIS, nil),
		catalog.Define(pull, t.Pull, pullAnswer),
	}
}

func timelineAnswer(out tracking.TimelineOutput) catalog.Answer {
	a := catalog.Answer{Body: out, ETag: true, Headers: readHeaders(out.Private), About: out.About}
	if out.MediaType != "" {
		a.Body, a.Type = out.Data, out.MediaType
	}
	return a
}

func readHeaders(private bool) [][2]string {
	cache := "public, max-age=30"
	if private {
		cache = "private, max-age=30"
	}
	return [][2]string{{"Cache-Control", cache}, {"Vary", "Accept, Accept-Language, Authorization, X-Tracking-Key"}}
}

func pullAnswer(out tracking.PullOutput) catalog.Answer {
	a := catalog.Answer{Body: out.Document, Type: "application/ld+json", Headers: [][2]string{{"GS1-EPCIS-Version", "2.0.0"}, {"GS1-CBV-Version", "2.0.0"}}}
	if out.Next != "" {
		a.Headers = append(a.Headers, [2]string{"Link", "<" + out.Next + `>; rel="next"`})
	}
	return a
}
