package projection

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/postern-io/postern/protocol/gs1"
	"github.com/postern-io/postern/protocol/otep"
)

// Reading EPCIS. Nothing is fetched: a document's contexts are not looked at,
// words are understood in every spelling that the standard has had.

// Captured is what one event of an EPCIS document says of one EPC, or why
// nothing could be made of the event.
type Captured struct {
	Index   int    // place of the event in the document
	Skipped string // why the event says nothing; "" otherwise
	Fault   *Fault // what is wrong with it

	Subject otep.Subject
	// EPC is the address of a thing that its subject does not name for sure, "" otherwise.
	EPC string
	// Event has no status code yet unless the document gave one: Status finds
	// it when the parcel's timeline is known.
	Event otep.Event
	// Code is the status code as the document wrote it, "" when Step and
	// Disposition have to tell.
	Code              string
	Step, Disposition string
	// Withdraws says that the event takes back an earlier one of the same id;
	// EventID is the address that EPCIS knows it by.
	Withdraws bool
	Reason    string // of that: otep.DidNotOccur, otep.IncorrectData or ""
	EventID   string
	Notes     []string // what was left out
	// Binding is what an AggregationEvent does with the things in Subject, its parent; nil for none.
	Binding *Binding
}

// Binding puts things into a container, or takes them out.
type Binding struct {
	Inside bool // from then on
	// All says that it is about all that is inside.
	All      bool
	Children []otep.Subject
}

// Fault is one thing that is wrong with an event.
type Fault struct {
	Path    string // below the event
	Message string
}

// ErrNoEvents is returned for JSON that is no EPCIS document, event or list of
// events.
var ErrNoEvents = errors.New("the body is no EPCISDocument, event or list of events")

// ReadEPCIS reads a document, one event or a list of events. The error is
// ErrNoEvents or otep.ErrJSON; what is wrong with a single event is its
// own Fault. count is the number of events.
func ReadEPCIS(body []byte) (out []Captured, count int, err error) {
	list, err := eventList(body)
	if err != nil {
		return nil, 0, err
	}
	for i, raw := range list {
		out = append(out, capture(i, raw)...)
	}
	return out, len(list), nil
}

func eventList(body []byte) ([]json.RawMessage, error) {
	if err := otep.CheckJSON(body); err != nil {
		return nil, err
	}
	body = bytes.TrimSpace(body)
	var list []json.RawMessage
	if len(body) > 0 && body[0] == '[' {
		return list, json.Unmarshal(body, &list)
	}
	var d struct {
		Type string `json:"type"`
		Body *struct {
			List    *[]json.RawMessage `json:"eventList"`
			Results *struct {
				Body struct {
					List *[]json.RawMessage `json:"eventList"`
				} `json:"resultsBody"`
			} `json:"queryResults"`
		} `json:"epcisBody"`
	}
	if err := json.Unmarshal(body, &d); err != nil {
		return nil, ErrNoEvents
	}
	switch {
	case d.Body != nil && d.Body.List != nil:
		return *d.Body.List, nil
	case d.Body != nil && d.Body.Results != nil && d.Body.Results.Body.List != nil:
		return *d.Body.Results.Body.List, nil
	case d.Body == nil && d.Type != "":
		return []json.RawMessage{body}, nil
	}
	return nil, ErrNoEvents
}

// epcisIn is an event as it comes. Members of which only some spellings are
// understood stay raw.
type epcisIn struct {
	Type        string          `json:"type"`
	EventID     string          `json:"eventID"`
	EventTime   string          `json:"eventTime"`
	Offset      string          `json:"eventTimeZoneOffset"`
	RecordTime  string          `json:"recordTime"`
	EPCs        []string        `json:"epcList"`
	Action      string          `json:"action"`
	Parent      string          `json:"parentID"`
	Children    []string        `json:"childEPCs"`
	Quantities  json.RawMessage `json:"childQuantityList"`
	BizStep     string          `json:"bizStep"`
	Disposition string          `json:"disposition"`
	ReadPoint   epcisPlace      `json:"readPoint"`
	BizLocation epcisPlace      `json:"bizLocation"`
	Sensors     []sensorIn      `json:"sensorElementList"`
	Error       json.RawMessage `json:"errorDeclaration"`

	OTEPEventID  string `json:"otep:event_id"`
	OTEPStatus   string `json:"otep:status_code"`
	OTEPIncident string `json:"otep:incident_reason"`
	OTEPPhase    string `json:"otep:phase"`
}

type sensorIn struct {
	Metadata struct {
		Time     string `json:"time"`
		DeviceID string `json:"deviceID"`
	} `json:"sensorMetadata"`
	Reports []struct {
		Type      string   `json:"type"`
		Value     *float64 `json:"value"`
		Unit      string   `json:"uom"`
		Time      string   `json:"time"`
		DeviceID  string   `json:"deviceID"`
		Telemetry string   `json:"otep:telemetry_type"`
	} `json:"sensorReport"`
}

// eventTypes of EPCIS 2.0. ObjectEvents speak of one thing at one place, AggregationEvents of what is in another.
var eventTypes = map[string]bool{"ObjectEvent": true, "AggregationEvent": true, "TransactionEvent": true, "TransformationEvent": true, "AssociationEvent": true}

func capture(i int, raw json.RawMessage) []Captured {
	var in epcisIn
	fail := func(path, message string) []Captured {
		return []Captured{{Index: i, EventID: in.EventID, Fault: &Fault{path, message}}}
	}
	skip := func(why string) []Captured { return []Captured{{Index: i, EventID: in.EventID, Skipped: why}} }
	if err := json.Unmarshal(raw, &in); err != nil {
		var wrong *json.UnmarshalTypeError
		if errors.As(err, &wrong) && wrong.Field != "" {
			return fail(wrong.Field, wrong.Field+" has the wrong type")
		}
		return fail("", "event must be an object")
	}
	kind := localName(in.Type)
	switch {
	case !eventTypes[kind]:
		return skip("not an EPCIS event type: " + displayText(in.Type))
	case kind == "AggregationEvent" && in.Parent == "" && in.Action != "ADD" && in.Action != "DELETE":
		return skip("AggregationEvent without a parentID names no container")
	case kind == "AggregationEvent" && in.Parent == "":
		return fail("parentID", "parentID is required where things are put into a container or taken out")
	case kind == "AggregationEvent" && in.Action != "ADD" && in.Action != "DELETE" && in.Action != "OBSERVE":
		return fail("action", "action must be one of ADD, DELETE, OBSERVE")
	case kind != "ObjectEvent" && kind != "AggregationEvent":
		return skip(kind + " says nothing about a single parcel; only ObjectEvents and AggregationEvents are taken")
	case kind == "ObjectEvent" && len(in.EPCs) == 0:
		return skip("epcList is empty: the event names no parcel")
	case in.EventTime == "":
		return fail("eventTime", "eventTime is required")
	}
	at, err := readTime(in.EventTime, in.Offset)
	if err != nil {
		return fail("eventTime", "eventTime must be ISO-8601 with offset")
	}
	c := Captured{Index: i, EventID: in.EventID, Code: in.OTEPStatus, Step: Word(in.BizStep), Disposition: Word(in.Disposition), Withdraws: declared(in.Error), Reason: errorReason(in.Error)}
	c.Event = otep.Event{EventID: readEventID(in), OccurredAt: at, Phase: in.OTEPPhase, IncidentReason: cmp.Or(in.OTEPIncident, reasons[c.Disposition]),
		Location: readPlace(cmp.Or(in.ReadPoint.ID, in.BizLocation.ID))}
	if in.RecordTime != "" {
		c.Event.Extensions = otep.Extensions{RecordTime: in.RecordTime}
	}
	c.Event.Telemetry, c.Notes = readSensors(in.Sensors, at)
	if kind == "AggregationEvent" {
		if c.Subject = readThing(in.Parent); c.Subject == (otep.Subject{}) {
			return skip("parentID names no container: " + displayText(in.Parent))
		}
		c.Event.EventID = cmp.Or(c.Event.EventID, contentID(raw))
		c.bind(in)
		return []Captured{c}
	}
	out := make([]Captured, len(in.EPCs))
	for n, epc := range in.EPCs {
		out[n] = c
		out[n].Subject = readEPC(epc)
		if readThing(epc) == (otep.Subject{}) {
			out[n].EPC = epc
		}
		if out[n].Subject == (otep.Subject{}) {
			out[n] = Captured{Index: i, EventID: in.EventID, Fault: &Fault{fmt.Sprintf("epcList[%d]", n), "the EPC names no parcel"}}
		}
	}
	return out
}

// bind reads what an AggregationEvent does with its children. Goods that are no parcels are often among them.
func (c *Captured) bind(in epcisIn) {
	if in.Action == "OBSERVE" {
		return
	}
	quantities := bytes.TrimSpace(in.Quantities)
	isNone := len(quantities) == 0 || bytes.Equal(quantities, []byte("null")) || bytes.Equal(quantities, []byte("[]"))
	b := &Binding{Inside: in.Action == "ADD", All: in.Action == "DELETE" && len(in.Children) == 0 && isNone}
	for _, epc := range in.Children {
		if sub := readThing(epc); sub != (otep.Subject{}) {
			b.Children = append(b.Children, sub)
		}
	}
	if n := len(in.Children) - len(b.Children); n > 0 {
		c.Notes = append(c.Notes, fmt.Sprintf("%d of childEPCs are left out: they are no SSCC, GRAI, GIAI, tracking address or otep:subject", n))
	}
	if b.All || len(b.Children) > 0 {
		c.Binding = b
	}
}

// contentID is the id of an event that came without one: the same content gives the same id, whenever it was
// recorded, and whether it is declared wrong.
func contentID(raw json.RawMessage) string {
	var d map[string]any
	if json.Unmarshal(raw, &d) != nil {
		return ""
	}
	for _, name := range []string{"recordTime", "errorDeclaration", "@context"} {
		delete(d, name)
	}
	if list, ok := d["childEPCs"].([]any); ok {
		slices.SortFunc(list, func(a, b any) int { return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	}
	text, err := json.Marshal(d)
	if err != nil {
		return ""
	}
	return "evt_" + hexDigest(10, string(text))
}

// readThing is the subject of an EPC that names one thing by what it is: an SSCC, a GRAI, a GIAI, an own tracking
// address or a subject; zero for any other.
func readThing(epc string) otep.Subject {
	rest, isURN := strings.CutPrefix(epc, "urn:epc:id:")
	scheme, rest, _ := strings.Cut(rest, ":")
	asset := ""
	switch {
	case isURN && scheme == "sscc":
		return otep.Subject{SSCC: fromPureIdentity(rest)}
	case isURN && scheme == "grai":
		asset = returnableAsset(rest)
	case isURN && scheme == "giai":
		if prefix, name, ok := strings.Cut(rest, "."); ok && digits(prefix) {
			asset = prefix + unescaped(name)
		}
	case strings.HasPrefix(epc, "otep:subject:"):
		return readEPC(epc)
	case strings.HasPrefix(epc, "https://") || strings.HasPrefix(epc, "http://"):
		link, err := gs1.Read([]byte(epc))
		if err == nil && link.Kind == gs1.DigitalLink {
			switch first := link.Elements[0]; {
			case first.AI == "00":
				return otep.Subject{SSCC: first.Value}
			case first.AI == "8003" && len(first.Value) > len("00614141123452"), first.AI == "8004": // a GRAI without a serial is a class
				asset = first.Value
			}
			break
		}
		if sub := readEPC(epc); sub.ExternalTrackingNumber == "" && sub.SSCC == "" {
			return sub
		}
	}
	if len(asset) > 64 || !utf8.ValidString(asset) {
		asset = ""
	}
	return otep.Subject{ExternalTrackingNumber: asset}
}

// returnableAsset is a GRAI as labels have it, of company prefix, asset type and serial; "" for one without a serial.
func returnableAsset(s string) string {
	parts := strings.SplitN(s, ".", 3)
	if len(parts) < 3 || !digits(parts[0]) || parts[1] != "" && !digits(parts[1]) || len(parts[0])+len(parts[1]) != 12 || parts[2] == "" {
		return ""
	}
	body := parts[0] + parts[1]
	return "0" + body + strconv.Itoa(gs1.CheckDigit(body)) + unescaped(parts[2])
}

// declared reports whether an event declares an earlier one wrong.
func declared(raw json.RawMessage) bool {
	raw = bytes.TrimSpace(raw)
	return len(raw) > 0 && !bytes.Equal(raw, []byte("null"))
}

// errorReason is why an event is declared wrong, as a word of the Core Business Vocabulary that
// an event can be withdrawn for here, "" for another one.
func errorReason(raw json.RawMessage) string {
	var d struct {
		Reason string `json:"reason"`
	}
	if json.Unmarshal(raw, &d) != nil {
		return ""
	}
	switch word := strings.TrimPrefix(localName(d.Reason), "ER-"); word {
	case otep.DidNotOccur, otep.IncorrectData:
		return word
	}
	return ""
}

// readTime gives a time in UTC the offset that stands beside it.
func readTime(text, offset string) (otep.Time, error) {
	t, err := otep.ParseTime(text)
	if err != nil || offset == "" {
		return t, err
	}
	if _, own := t.Zone(); own != 0 {
		return t, nil
	}
	like, err := otep.ParseTime("2000-01-01T00:00:00" + offset)
	if err != nil {
		return t, nil
	}
	return otep.Time{Time: t.In(like.Location())}, nil
}

// RecordTime is the extension of an event that holds when another EPCIS system recorded it.
const RecordTime = "epcis_record_time"

// readEventID is the event's id here: its own where it fits.
func readEventID(in epcisIn) string {
	switch {
	case in.OTEPEventID != "":
		return in.OTEPEventID
	case len(in.EventID) > 64:
		return "evt_" + hexDigest(10, in.EventID)
	}
	return in.EventID
}

// IsEventID reports whether an address that EPCIS knows an event by is that of
// the stored event id.
func IsEventID(address, id string) bool {
	return address != "" && (address == id || address == epcisEventID(id) || id == "evt_"+hexDigest(10, address))
}

// localName is a term without its prefix or address.
func localName(s string) string { return s[strings.LastIndexAny(s, ":/#")+1:] }

// Word is a word of the Core Business Vocabulary in any of its spellings.
func Word(s string) string {
	s = localName(s)
	for _, p := range []string{"BizStep-", "Disp-"} {
		s = strings.TrimPrefix(s, p)
	}
	return s
}

// displayText is text of a sender in a message: short and printable.
func displayText(s string) string {
	if !utf8.ValidString(s) || len(s) > 64 {
		return strconv.QuoteToASCII(s[:min(len(s), 64)])
	}
	return strconv.Quote(s)
}

// readEPC is the subject that an EPC names; zero for one that names none.
func readEPC(epc string) otep.Subject {
	if rest, ok := strings.CutPrefix(epc, "urn:epc:id:sscc:"); ok {
		if sscc := fromPureIdentity(rest); sscc != "" {
			return otep.Subject{SSCC: sscc}
		}
	}
	if key, ok := strings.CutPrefix(epc, "otep:subject:"); ok {
		return fromIdentityKey(unescaped(key))
	}
	path, own := epc, false
	if u, err := url.Parse(epc); err == nil && u.Scheme == "https" || err == nil && u.Scheme == "http" {
		path = u.EscapedPath()
		if _, after, ok := strings.Cut(path, "/00/"); ok && len(after) >= 18 && digits(after[:18]) && (len(after) == 18 || after[18] == '/') {
			return otep.Subject{SSCC: after[:18]}
		}
		_, own = cutLast(path, "/api/v1/otep/trackings/")
	}
	name := unescaped(localName(strings.TrimRight(path, "/")))
	if name == "" || len(name) > 64 || !utf8.ValidString(name) {
		return otep.Subject{}
	}
	if own {
		return otep.Subject{TrackingNumber: name}
	}
	return otep.Subject{ExternalTrackingNumber: name}
}

// SubjectOfEPC is the subject that an EPC names; zero for one that names none.
func SubjectOfEPC(epc string) otep.Subject { return readEPC(epc) }

func cutLast(s, sep string) (string, bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 || strings.Contains(s[i+len(sep):], "/") {
		return "", false
	}
	return s[i+len(sep):], true
}

// fromIdentityKey reads what Subject.IdentityKey wrote.
func fromIdentityKey(key string) otep.Subject {
	kind, id, found := strings.Cut(key, ":")
	n, err := strconv.ParseInt(id, 10, 64)
	switch {
	case found && kind == "PACKAGE" && err == nil && n > 0:
		return otep.Subject{PackageID: n}
	case found && kind == "ORDER" && err == nil && n > 0:
		return otep.Subject{OrderID: n}
	case found && kind == "PIECE":
		return otep.Subject{PieceID: id}
	case found && kind == "SSCC":
		return otep.Subject{SSCC: id}
	case key == "" || len(key) > 64:
		return otep.Subject{}
	}
	return otep.Subject{ExternalTrackingNumber: key}
}

// fromPureIdentity makes the 18 digits of an SSCC of company prefix and serial
// reference, whose first digit is the extension digit.
func fromPureIdentity(s string) string {
	prefix, serial, ok := strings.Cut(s, ".")
	if !ok || len(prefix)+len(serial) != 17 || serial == "" || !digits(prefix) || !digits(serial) {
		return ""
	}
	body := serial[:1] + prefix + serial[1:]
	return body + strconv.Itoa(gs1.CheckDigit(body))
}

func digits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

// unescaped leaves what would be no text as it is.
func unescaped(s string) string {
	if u, err := url.PathUnescape(s); err == nil && utf8.ValidString(u) && !strings.ContainsRune(u, 0) {
		return u
	}
	return s
}

// readPlace reads a read point or business location.
func readPlace(id string) *otep.Location {
	if id == "" {
		return nil
	}
	if rest, ok := strings.CutPrefix(id, "geo:"); ok {
		rest, _, _ = strings.Cut(rest, ";") // parameters (RFC 5870)
		parts := strings.Split(rest, ",")
		if len(parts) >= 2 {
			lat, err1 := strconv.ParseFloat(parts[0], 64)
			lon, err2 := strconv.ParseFloat(parts[1], 64)
			if err1 == nil && err2 == nil && lat >= -90 && lat <= 90 && lon >= -180 && lon <= 180 {
				return &otep.Location{Latitude: &lat, Longitude: &lon}
			}
		}
	}
	if rest, ok := strings.CutPrefix(id, "urn:epc:id:sgln:"); ok {
		if parts := strings.Split(rest, "."); len(parts) >= 2 && len(parts[0])+len(parts[1]) == 12 && digits(parts[0]+parts[1]) {
			return &otep.Location{GLN: parts[0] + parts[1] + strconv.Itoa(gs1.CheckDigit(parts[0]+parts[1]))}
		}
	}
	if _, after, ok := strings.Cut(id, "/414/"); ok && len(after) >= 13 && digits(after[:13]) {
		return &otep.Location{GLN: after[:13]}
	}
	if name, ok := strings.CutPrefix(id, "otep:location:"); ok {
		return &otep.Location{Name: unescaped(name)}
	}
	return &otep.Location{FacilityID: id}
}

func readSensors(in []sensorIn, at otep.Time) (out []otep.Reading, notes []string) {
	for i, s := range in {
		for j, r := range s.Reports {
			if r.Value == nil || r.Type == "" {
				notes = append(notes, fmt.Sprintf("sensorElementList[%d].sensorReport[%d] has no type and numeric value and is left out", i, j))
				continue
			}
			reading := otep.Reading{Type: sensorType(r.Type, r.Telemetry), Value: *r.Value, Unit: r.Unit,
				DeviceID: unescaped(strings.TrimPrefix(cmp.Or(r.DeviceID, s.Metadata.DeviceID), "otep:device:"))}
			if t, err := otep.ParseTime(cmp.Or(r.Time, s.Metadata.Time)); err == nil && t.String() != at.String() {
				reading.Time = &t
			}
			out = append(out, reading)
		}
	}
	return out, notes
}

// sensorType is our name of a type of measurement.
func sensorType(epcis, own string) string {
	epcis = localName(epcis)
	if own != "" {
		return own
	}
	for _, s := range otep.Sensors() {
		if s.EPCIS == epcis && epcis != dimensionless {
			return s.Type
		}
	}
	var b strings.Builder
	for i, c := range epcis {
		if c >= 'A' && c <= 'Z' {
			if i > 0 {
				b.WriteByte('_')
			}
			c += 'a' - 'A'
		}
		b.WriteRune(c)
	}
	return b.String()
}

// reasons are the dispositions that say why.
var reasons = map[string]string{
	"damaged": "damaged", "stolen": "stolen", "unknown": "lost", "destroyed": "damaged", "expired": "other", "recalled": "other", "non_conformant": "prohibited_item",
}

// Status is the status code that a business step and disposition mean. reached
// says that the timeline has an event of phase pickup or later, out that it has
// out_for_delivery. ok is false when they mean none.
func Status(step, disposition string, reached, out bool) (code otep.Code, ok bool) {
	either := func(yes bool, a, b otep.Code) (otep.Code, bool) {
		if yes {
			return a, true
		}
		return b, true
	}
	switch step {
	case "void_shipping", "decommissioning":
		return otep.Cancelled, true
	case "holding":
		if disposition == "returned" {
			return otep.RejectedByRecipient, true
		}
	}
	if disposition == "returned" {
		return otep.ReturnToSender, true
	}
	handed := disposition == "received" || disposition == "retail_sold" || disposition == "dispensed"
	switch step {
	case "commissioning":
		return otep.InformationSubmitted, true
	case "receiving":
		if handed {
			return otep.Delivered, true
		}
		return either(reached, otep.Received, otep.PickedUp)
	case "accepting":
		return either(handed || out, otep.Delivered, otep.PickedUp)
	case "retail_selling", "dispensing":
		return otep.Delivered, true
	case "collecting", "picking":
		return otep.PickedUp, true
	case "staging_outbound":
		return either(disposition == "in_transit", otep.PackageOutbound, otep.AwaitingPickup)
	case "departing":
		return either(disposition == "in_progress" && !reached, otep.OutForPickup, otep.InTransit)
	case "shipping", "transporting", "loading":
		return otep.InTransit, true
	case "arriving", "unloading":
		return otep.ArrivalScan, true
	case "storing", "stocking", "unpacking":
		return otep.Received, true
	case "holding":
		return either(out, otep.DeliveryFailed, otep.RemovedFromRoute)
	}
	return "", false
}
