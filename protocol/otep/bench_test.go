package otep

import (
	"encoding/json"
	"testing"
	"time"
)

// twelve is a parcel's usual life.
func twelve(b *testing.B) (Timeline, []byte) {
	when := time.Date(2026, 6, 1, 12, 0, 0, 0, time.FixedZone("", -4*3600))
	var events []Event
	for _, c := range []Code{InformationSubmitted, BookingConfirmed, AwaitingPickup, OutForPickup, PickedUp, Received, InTransit, ArrivalScan, OutForDelivery, DeliveryFailed, OutForDelivery, Delivered} {
		when = when.Add(3 * time.Hour)
		e := Event{OccurredAt: Time{when}, RecordedAt: Time{when.Add(time.Second)}, StatusCode: c, Source: &Source{Type: Carrier, Provider: "ups"}, Location: &Location{Name: "Toronto Hub", City: "Toronto", Country: "CA"}}
		e.EventID = ID(Subject{TrackingNumber: "SR1"}, e)
		events = append(events, e)
	}
	tl := Fold(DefaultProfile, Subject{TrackingNumber: "SR1"}, events)
	doc, err := json.Marshal(tl)
	if err != nil {
		b.Fatal(err)
	}
	return tl, doc
}

func BenchmarkValidate(b *testing.B) {
	_, doc := twelve(b)
	b.ReportAllocs()
	b.SetBytes(int64(len(doc)))
	for b.Loop() {
		if r, err := Validate(doc, noon); err != nil || !r.Conformant() {
			b.Fatal(r, err)
		}
	}
}

func BenchmarkFold(b *testing.B) {
	tl, _ := twelve(b)
	b.ReportAllocs()
	for b.Loop() {
		if t := Fold(tl.Profile, tl.Subject, tl.Events); !t.Delivered {
			b.Fatal(t)
		}
	}
}

func BenchmarkID(b *testing.B) {
	tl, _ := twelve(b)
	b.ReportAllocs()
	for b.Loop() {
		ID(tl.Subject, tl.Events[3])
	}
}
