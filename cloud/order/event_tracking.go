package order

import (
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/locale"
	"github.com/postern-io/postern/protocol/otep"
)

// hookTracking is the data of tracking.event.
type hookTracking struct {
	Order   hookOrder   `json:"order"`
	Package *hookParcel `json:"package"`
	trackingData
}

// trackingData is what it says about the event.
type trackingData struct {
	ID         int64       `json:"tracking_event_id"`
	StatusID   int         `json:"tracking_event_status_id"`
	Key        otep.Code   `json:"tracking_event_key"`
	Phase      string      `json:"phase"`
	Label      string      `json:"description"`
	OccurredAt *string     `json:"event_occurred_at"`
	RecordedAt *string     `json:"event_recorded_at"`
	Location   *hookPlace  `json:"location"`
	Reason     *string     `json:"incident_reason"`
	Service    *int        `json:"service_type"`
	Result     *int        `json:"service_status"`
	Recipient  *string     `json:"recipient_name"` // is not kept
	Signature  *string     `json:"signature"`
	Files      []string    `json:"proof_files"`
	Detail     []hookFile  `json:"proof_files_detail"`
	Source     eventSource `json:"source"`
}

// hookParcel names the package that something happened to.
type hookParcel struct {
	PackageID cloud.PackageID `json:"package_id"`
	Ref       *string         `json:"package_ref"`
	Number    string          `json:"tracking_number"`
}

// parcel is a package of the order, or with 0 its only one; nil where it has several.
func (t *eventWriter) parcel(id cloud.PackageID) *hookParcel {
	for _, p := range t.d.Order.Packages {
		if p.ID == id || id == 0 && len(t.d.Order.Packages) == 1 {
			return &hookParcel{p.ID, cloud.OrNull(p.Ref), p.Number}
		}
	}
	return nil
}

// hookPlace is where something happened, as far as its source says.
type hookPlace struct {
	Name      *string  `json:"name"`
	City      *string  `json:"city"`
	Province  *string  `json:"province"`
	Country   *string  `json:"country"`
	Latitude  *float64 `json:"latitude"`
	Longitude *float64 `json:"longitude"`
}

func place(l *otep.Location) *hookPlace {
	if l == nil {
		return nil
	}
	return &hookPlace{Name: cloud.OrNull(l.Name), City: cloud.OrNull(l.City), Province: cloud.OrNull(l.Region), Country: cloud.OrNull(l.Country), Latitude: l.Latitude,
		Longitude: l.Longitude}
}

type eventSource struct {
	Type string `json:"type"`
	Name string `json:"name"`
}

// hookWithdrawn is the data of tracking.event_withdrawn.
type hookWithdrawn struct {
	hookTracking
	Withdrawn withdrawal `json:"withdrawn"`
}

// withdrawal says how an event was taken back.
type withdrawal struct {
	EventID     string  `json:"event_id"` // in the timeline
	At          *string `json:"at"`
	Reason      *string `json:"reason"`       // did_not_occur or incorrect_data
	By          *string `json:"by"`           // code of the provider
	CorrectedBy *string `json:"corrected_by"` // id of the event that took its place
}

func withdrawalOf(w cloud.WithdrawnEvent, l *time.Location) withdrawal {
	return withdrawal{w.EventID, cloud.Stamp(w.At, l), cloud.OrNull(w.Reason), cloud.OrNull(w.By), cloud.OrNull(w.CorrectedBy)}
}

func (t *eventWriter) withdrawn(w cloud.WithdrawnEvent) (any, error) {
	return hookWithdrawn{t.tracking(cloud.TimelineEvent{Package: w.Package, Event: w.Event}), withdrawalOf(w, t.zone)}, nil
}

// trackingOf is what is said about an event, without its proof.
func trackingOf(b cloud.Business, e otep.Event, number int64) trackingData {
	zone := b.Location()
	h := trackingData{ID: number, StatusID: cloud.TrackingEventID(e), Key: e.StatusCode, Phase: e.Phase, Label: locale.Description(b.Settings.Locale(), e.StatusCode),
		OccurredAt: cloud.Stamp(e.OccurredAt.Time, zone), RecordedAt: cloud.Stamp(e.RecordedAt.Time, zone), Location: place(e.Location), Reason: cloud.OrNull(e.IncidentReason),
		Files: []string{}, Detail: []hookFile{}, Source: eventSource{Name: b.Name}}
	if e.Source != nil {
		h.Source.Type = e.Source.Type
	}
	for kind, status := range proven {
		if status.State().Code == e.StatusCode {
			h.Service, h.Result = &kind[0], &kind[1]
		}
	}
	return h
}

func (t *eventWriter) tracking(row cloud.TimelineEvent) hookTracking {
	e := row.Event
	h := hookTracking{t.order(), t.parcel(row.Package), trackingOf(t.business, e, t.number)}
	h.Detail = t.files(func(f cloud.ProofFile) bool { return f.Event == e.StatusCode && h.Service != nil })
	for i, f := range h.Detail {
		h.Detail[i].EventID = &h.ID
		if f.FullURL == nil {
			continue
		}
		if f.Type == "signature" {
			h.Signature = f.FullURL
		} else {
			h.Files = append(h.Files, *f.FullURL)
		}
	}
	return h
}

// hookFile is a proof file; those of a file that was removed have no address.
type hookFile struct {
	FileID     int64              `json:"file_id"`
	Type       string             `json:"type"`
	URL        *string            `json:"url"`
	FullURL    *string            `json:"full_url"`
	EventID    *int64             `json:"tracking_event_id"`
	StatusID   *cloud.OrderStatus `json:"tracking_event_status_id"`
	Key        *otep.Code         `json:"tracking_event_key"`
	Service    *int               `json:"service_type"`
	Result     *int               `json:"service_status"`
	MIME       *string            `json:"mime_type"`
	Size       *int64             `json:"size"`
	CapturedAt *string            `json:"captured_at"`
	Latitude   *float64           `json:"latitude"`
	Longitude  *float64           `json:"longitude"`
}

func (t *eventWriter) file(f cloud.ProofFile) hookFile {
	b := t.show.file(f, t.zone)
	return hookFile{FileID: b.FileID, Type: b.Type, URL: &b.URL, FullURL: b.FullURL, EventID: b.EventID, StatusID: b.StatusID, Key: b.EventKey, Service: b.Service,
		Result: b.Result, MIME: b.MIME, Size: b.Size, CapturedAt: b.CapturedAt, Latitude: b.Latitude, Longitude: b.Longitude}
}

func (t *eventWriter) files(keep func(cloud.ProofFile) bool) []hookFile {
	out := []hookFile{}
	for _, f := range t.d.Order.Files {
		if keep(f) {
			out = append(out, t.file(f))
		}
	}
	return out
}

// hookProof is the data of pod.files_updated.
type hookProof struct {
	Action  string      `json:"action"` // added, updated, removed
	Order   hookOrder   `json:"order"`
	Package *hookParcel `json:"package"` // of an order with one
	File    hookFile    `json:"file"`
	Files   []string    `json:"proof_files"` // all there are now
	Detail  []hookFile  `json:"proof_files_detail"`
}

func (t *eventWriter) proof(action string, f cloud.ProofFile) (any, error) {
	h := hookProof{Action: action, Order: t.order(), Package: t.parcel(0), File: t.file(f), Files: []string{}, Detail: t.files(func(cloud.ProofFile) bool { return true })}
	if action == "removed" {
		h.File.URL, h.File.FullURL = nil, nil
	}
	for _, d := range h.Detail {
		if d.FullURL != nil {
			h.Files = append(h.Files, *d.FullURL)
		}
	}
	return h, nil
}
