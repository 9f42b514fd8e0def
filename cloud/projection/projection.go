// Package projection turns a timeline into the documents of other systems: one
// file per format, each a pure function of the timeline, and the way back for
// EPCIS.
//
// Nothing here reads a clock, a database or the network, and remote JSON-LD
// contexts are named but never fetched. Documents are values for encoding/json;
// their member order is that of the published examples. Safe for concurrent
// use.
package projection

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/postern-io/postern/protocol/otep"
)

// Format is an output format of a timeline.
type Format struct {
	Name      string // as callers write it, lower case
	Title     string
	MediaType string // of the bare document
	// profile is what an Accept header may name beside Name.
	profile string
	// Coarse formats tell an order's fulfilment and nothing finer.
	Coarse bool

	document func(*Projector, otep.Timeline, time.Time) any
	events   func(*Projector, otep.Timeline) any // nil: one item, the whole document
}

// Native is the name of the protocol's own format, EPCIS that of GS1's.
const (
	Native = "otep"
	EPCIS  = "epcis"
)

const (
	typeJSON   = "application/json"
	typeLDJSON = "application/ld+json"
)

var formats = []Format{
	{Name: Native, Title: "Native OTEP timeline", MediaType: typeJSON, document: nativeDocument, events: nativeEvents},
	{Name: EPCIS, Title: "GS1 EPCIS 2.0 ObjectEvents, JSON-LD", MediaType: typeLDJSON, profile: "https://ref.gs1.org/standards/epcis/", document: epcis, events: epcisEvents},
	{Name: "onerecord", Title: "IATA ONE Record logistics events, JSON-LD", MediaType: typeLDJSON, profile: "https://onerecord.iata.org/ns/cargo", document: oneRecord, events: oneRecordEvents},
	{Name: "uncefact", Title: "UN/CEFACT transport events, JSON-LD", MediaType: typeLDJSON, profile: "https://vocabulary.uncefact.org/", document: uncefact, events: uncefactEvents},
	{Name: "otlp", Title: "OpenTelemetry traces", MediaType: typeJSON, profile: "https://opentelemetry.io/", document: otlp, events: otlpEvents},
	{Name: "sensorthings", Title: "OGC SensorThings", MediaType: typeJSON, profile: "http://www.opengis.net/spec/iot_sensing", document: sensorThings, events: sensorThingsEvents},
	{Name: "aftership", Title: "AfterShip tracking with checkpoints", MediaType: typeJSON, document: afterShip, events: afterShipEvents},
	{Name: "shopify", Title: "Shopify fulfilment events", MediaType: typeJSON, document: shopify, events: shopifyEvents},
	{Name: "amazon", Title: "Amazon Shipping event history", MediaType: typeJSON, document: amazon, events: amazonEvents},
	{Name: "walmart", Title: "Walmart order line status", MediaType: typeJSON, Coarse: true, document: walmart},
	{Name: "bigcommerce", Title: "BigCommerce order status", MediaType: typeJSON, Coarse: true, document: bigCommerce},
	{Name: "magento", Title: "Magento order state", MediaType: typeJSON, Coarse: true, document: magento},
	{Name: "woocommerce", Title: "WooCommerce order status", MediaType: typeJSON, Coarse: true, document: wooCommerce},
	{Name: "etsy", Title: "Etsy receipt status", MediaType: typeJSON, Coarse: true, document: etsy},
}

// Formats lists the formats, the native one first.
func Formats() []Format { return slices.Clone(formats) }

// Names lists the formats' names, the native one first.
func Names() []string {
	out := make([]string, len(formats))
	for i, f := range formats {
		out[i] = f.Name
	}
	return out
}

// Find finds a format by name, in any case.
func Find(name string) (Format, bool) {
	name = strings.ToLower(strings.TrimSpace(name))
	i := slices.IndexFunc(formats, func(f Format) bool { return f.Name == name })
	if i < 0 {
		return Format{}, false
	}
	return formats[i], true
}

// Projector knows what a deployment's documents say of itself.
type Projector struct {
	base  string
	track string
	label func(otep.Code) string
}

// Config is what New needs.
type Config struct {
	BaseURL  string                 // own address without a slash at the end
	TrackURL string                 // template with {number}; "" is {base}/track/{number}
	Label    func(otep.Code) string // English status label
}

// New builds a projector.
func New(c Config) *Projector {
	base := strings.TrimRight(c.BaseURL, "/")
	return &Projector{base: base, track: cmp.Or(c.TrackURL, base+"/track/{number}"), label: c.Label}
}

// Document is a whole timeline in a format. now is the time of the answer.
func (p *Projector) Document(f Format, t otep.Timeline, now time.Time) any {
	if f.Name != Native {
		t = formed(t)
	}
	return f.document(p, t, now)
}

// Events are a timeline's events in a format, a list.
func (p *Projector) Events(f Format, t otep.Timeline, now time.Time) any {
	if f.Name != Native {
		t = formed(t)
	}
	if f.events == nil {
		return []any{f.document(p, t, now)}
	}
	return f.events(p, t)
}

// formed is a timeline without what a standard has codes for and its source gave none of them
// (V27, V38): countries, UN/LOCODEs and GLNs, and readings in units that are none. The native
// format shows all of it.
func formed(t otep.Timeline) otep.Timeline {
	if !slices.ContainsFunc(t.Events, malformed) {
		return t
	}
	t.Events = slices.Clone(t.Events)
	for i := range t.Events {
		t.Events[i] = wellFormed(t.Events[i])
	}
	return t
}

func wellFormed(e otep.Event) otep.Event {
	if !malformed(e) {
		return e
	}
	if e.Location != nil {
		l := *e.Location
		l.Country, l.UNLocode, l.GLN = only(otep.IsCountry, l.Country), only(otep.IsUNLocode, l.UNLocode), only(otep.IsGLN, l.GLN)
		e.Location = &l
	}
	e.Telemetry = slices.DeleteFunc(slices.Clone(e.Telemetry), inNoUnit)
	return e
}

func malformed(e otep.Event) bool {
	l := cmp.Or(e.Location, &otep.Location{})
	return l.Country != only(otep.IsCountry, l.Country) || l.UNLocode != only(otep.IsUNLocode, l.UNLocode) || l.GLN != only(otep.IsGLN, l.GLN) || slices.ContainsFunc(e.Telemetry, inNoUnit)
}

// only is a text that has a form, "" for another one.
func only(form func(string) bool, s string) string {
	if form(s) {
		return s
	}
	return ""
}

func inNoUnit(r otep.Reading) bool { return r.Unit != only(otep.IsUnit, r.Unit) }

func nativeDocument(_ *Projector, t otep.Timeline, _ time.Time) any { return t }

func nativeEvents(_ *Projector, t otep.Timeline) any { return t.Events }

// number is what people call the subject: its tracking number, else its
// identity key.
func number(s otep.Subject) string { return cmp.Or(s.TrackingNumber, s.IdentityKey()) }

// tracking is the address of the subject's timeline.
func (p *Projector) tracking(s otep.Subject) string {
	return p.base + "/api/v1/otep/trackings/" + url.PathEscape(number(s))
}

// page is the address of the page for people.
func (p *Projector) page(s otep.Subject) string {
	return strings.ReplaceAll(p.track, "{number}", url.PathEscape(number(s)))
}

// vocab is the address of one of this protocol's own terms.
func (p *Projector) vocab(term string) string { return p.base + "/api/otep-guide/vocab#" + term }

// actual are the events that happened; planned and estimated ones are left out.
func actual(t otep.Timeline) []otep.Event {
	i := slices.IndexFunc(t.Events, func(e otep.Event) bool { return !happened(e) })
	if i < 0 {
		return t.Events
	}
	out := slices.Clone(t.Events[:i])
	for _, e := range t.Events[i:] {
		if happened(e) {
			out = append(out, e)
		}
	}
	return out
}

func happened(e otep.Event) bool { return e.TimeType == "" || e.TimeType == otep.Actual }

// reason is why something happened, with what the code implies.
func reason(e otep.Event, s otep.Spec) string { return cmp.Or(e.IncidentReason, s.Reason) }

// place is a short name of where it happened, "" when that has none.
func place(l *otep.Location) string {
	if l == nil {
		return ""
	}
	return cmp.Or(l.Name, l.City)
}

func located(l *otep.Location) bool { return l != nil && l.Latitude != nil && l.Longitude != nil }

// sourceName is the carrier, for platforms that want a carrier's name.
func sourceName(e *otep.Event) string {
	if e == nil || e.Source == nil {
		return "other"
	}
	return cmp.Or(e.Source.Provider, strings.ReplaceAll(e.Source.Type, "_", "-"))
}

// last is the latest event, nil when there is none.
func last(events []otep.Event) *otep.Event {
	if len(events) == 0 {
		return nil
	}
	return &events[len(events)-1]
}

// shipped is the first event with which the goods had left their sender.
func shipped(events []otep.Event) *otep.Event {
	for i := range events {
		if otep.Collected(events[i : i+1]) {
			return &events[i]
		}
	}
	return nil
}

// utc is a time as formats without offsets have it.
func utc(t otep.Time) otep.Time { return otep.Time{Time: t.UTC()} }

// digest is the first n bytes of SHA-256 over the parts.
func digest(n int, parts ...string) []byte {
	h := sha256.New()
	for _, s := range parts {
		h.Write([]byte(s))
	}
	return h.Sum(nil)[:n]
}

func hexDigest(n int, parts ...string) string { return hex.EncodeToString(digest(n, parts...)) }

func orNull[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}
