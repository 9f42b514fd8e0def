package projection

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/postern-io/postern/protocol/otep"
)

// OGC SensorThings 1.1: one Thing with nested Datastreams and Observations, fit
// for a deep insert. Times are in UTC, positions GeoJSON, longitude first.
const (
	observationTypes = "http://www.opengis.net/def/observationType/OGC-OM/2.0/"
	qudtUnit         = "http://www.qudt.org/vocab/unit/"
	qudtQuantity     = "http://www.qudt.org/vocab/quantitykind/"
	geoJSON          = "application/geo+json"
)

// qudt is how the units of our telemetry are written.
var qudt = map[string]struct{ name, symbol string }{
	"DEG_C": {"degree Celsius", "°C"}, "PERCENT": {"percent", "%"}, "PA": {"pascal", "Pa"}, "M-PER-SEC2": {"metre per square second", "m/s²"},
	"LUX": {"lux", "lx"}, "DEG": {"degree", "°"}, "KiloM-PER-HR": {"kilometre per hour", "km/h"}, "KiloGM": {"kilogram", "kg"},
}

type (
	thing struct {
		ID          string          `json:"@iot.id"`
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Properties  thingProperties `json:"properties"`
		Locations   []thingLocation `json:"Locations,omitempty"`
		Datastreams []datastream    `json:"Datastreams"`
	}
	thingProperties struct {
		Version string     `json:"otep_version"`
		Profile string     `json:"profile"`
		Current *otep.Code `json:"current_status"`
		OrderID int64      `json:"order_id,omitempty"`
	}
	thingLocation struct {
		Name        string `json:"name"`
		Description string `json:"description"`
		Encoding    string `json:"encodingType"`
		Location    point  `json:"location"`
	}
	point struct {
		Type        string     `json:"type"`
		Coordinates [2]float64 `json:"coordinates"`
	}
	datastream struct {
		ID           string        `json:"@iot.id"`
		Name         string        `json:"name"`
		Description  string        `json:"description"`
		Type         string        `json:"observationType"`
		Unit         unit          `json:"unitOfMeasurement"`
		Property     described     `json:"ObservedProperty"`
		Sensor       sensor        `json:"Sensor"`
		Observations []observation `json:"Observations"`
	}
	unit struct {
		Name       *string `json:"name"`
		Symbol     *string `json:"symbol"`
		Definition *string `json:"definition"`
	}
	described struct {
		Name        string `json:"name"`
		Definition  string `json:"definition"`
		Description string `json:"description"`
	}
	sensor struct {
		Name        string `json:"name"`
		Description string `json:"description"`
		Encoding    string `json:"encodingType"`
		Metadata    string `json:"metadata"`
	}
	observation struct {
		ID         string         `json:"@iot.id"`
		Phenomenon otep.Time      `json:"phenomenonTime"`
		ResultTime otep.Time      `json:"resultTime"`
		Result     any            `json:"result"`
		Parameters *obsParameters `json:"parameters,omitempty"`
		Feature    *feature       `json:"FeatureOfInterest,omitempty"`
	}
	obsParameters struct {
		Code   otep.Code `json:"status_code"`
		Phase  string    `json:"phase"`
		Source string    `json:"source_type,omitempty"`
		Reason string    `json:"incident_reason,omitempty"`
	}
	feature struct {
		Name        string `json:"name"`
		Description string `json:"description"`
		Encoding    string `json:"encodingType"`
		Feature     point  `json:"feature"`
	}
)

func sensorThings(p *Projector, t otep.Timeline, _ time.Time) any {
	n := number(t.Subject)
	out := thing{ID: n, Name: "Shipment " + n, Description: "OTEP subject " + n,
		Properties: thingProperties{t.Version, t.Profile, t.Current, t.Subject.OrderID}}
	events := actual(t)
	for _, e := range slices.Backward(events) {
		if located(e.Location) {
			out.Locations = []thingLocation{{placeOr(e.Location, "Last known position"), "Last known position", geoJSON, at(e.Location)}}
			break
		}
	}
	status := datastream{ID: n + ":status", Name: "OTEP status", Description: "One category observation per OTEP event",
		Type:         observationTypes + "OM_CategoryObservation",
		Property:     described{"OTEP status code", p.vocab("status_code"), "Canonical status of the subject"},
		Sensor:       sensor{"OTEP timeline", "Tracking timeline", typeJSON, p.tracking(t.Subject)},
		Observations: statusObservations(events)}
	out.Datastreams = append([]datastream{status}, measurements(n, events)...)
	return out
}

func sensorThingsEvents(_ *Projector, t otep.Timeline) any { return statusObservations(actual(t)) }

func statusObservations(events []otep.Event) []observation {
	out := make([]observation, len(events))
	for i, e := range events {
		o := observation{ID: e.EventID, Phenomenon: utc(e.OccurredAt), ResultTime: utc(e.RecordedAt), Result: e.StatusURI,
			Parameters: &obsParameters{Code: e.StatusCode, Phase: e.Phase, Reason: reason(e, otep.Project(e.StatusCode, e.Phase))}}
		if e.Source != nil {
			o.Parameters.Source = e.Source.Type
		}
		if located(e.Location) {
			o.Feature = &feature{placeOr(e.Location, "Event location"), "Event location", geoJSON, at(e.Location)}
		}
		out[i] = o
	}
	return out
}

// stream is what one datastream measures: with one unit, by one sensor.
type stream struct{ kind, unit, device string }

// measurements has one datastream per type, unit and sensor, in the order in
// which they first appear.
func measurements(number string, events []otep.Event) []datastream {
	var out []datastream
	place := map[stream]int{}
	for _, e := range events {
		for j, r := range e.Telemetry {
			key := streamOf(r)
			i, ok := place[key]
			if !ok {
				i = len(out)
				place[key] = i
				first := !slices.ContainsFunc(out, func(d datastream) bool { return d.Name == r.Type })
				out = append(out, measurement(key.id(number, first), r))
			}
			when := e.OccurredAt
			if r.Time != nil {
				when = *r.Time
			}
			out[i].Observations = append(out[i].Observations,
				observation{ID: fmt.Sprintf("%s:%d", e.EventID, j), Phenomenon: utc(when), ResultTime: utc(e.RecordedAt), Result: r.Value})
		}
	}
	return out
}

// streamOf is the stream of a reading; one without a unit has that of its type.
func streamOf(r otep.Reading) stream {
	kind, _ := otep.Telemetry(r.Type)
	return stream{r.Type, cmp.Or(r.Unit, kind.Unit), r.DeviceID}
}

// id is short for the first stream of a type, as it was when a type had one.
func (s stream) id(number string, first bool) string {
	if first {
		return number + ":" + s.kind
	}
	return number + ":" + s.kind + ":" + s.unit + ":" + s.device
}

func measurement(id string, r otep.Reading) datastream {
	kind, _ := otep.Telemetry(r.Type)
	d := datastream{ID: id, Name: r.Type, Description: "Telemetry of type " + r.Type, Type: observationTypes + "OM_Measurement",
		Property: described{r.Type, qudtQuantity + kind.EPCIS, strings.ReplaceAll(r.Type, "_", " ")},
		Sensor:   sensor{"unknown", "A sensor without a name", typeJSON, "otep:device:unknown"}}
	if u, ok := qudt[kind.QUDT]; ok && (r.Unit == "" || r.Unit == kind.Unit) {
		definition := qudtUnit + kind.QUDT
		d.Unit = unit{&u.name, &u.symbol, &definition}
	} else if r.Unit != "" {
		d.Unit = unit{Name: &r.Unit, Symbol: &r.Unit}
	}
	if r.DeviceID != "" {
		d.Sensor = sensor{r.DeviceID, "Device " + r.DeviceID, typeJSON, "otep:device:" + r.DeviceID}
	}
	return d
}

func at(l *otep.Location) point { return point{"Point", [2]float64{*l.Longitude, *l.Latitude}} }

func placeOr(l *otep.Location, otherwise string) string {
	if n := place(l); n != "" {
		return n
	}
	return otherwise
}
