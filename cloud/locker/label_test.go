package locker_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/protocol/otep"
	"github.com/postern-io/postern/protocol/wire"
)

// A GS1 label names its parcel by the SSCC, whatever else stands on it.
func TestALabelNamesItsParcel(t *testing.T) {
	tell(t, 1, nil, func(s *story) {
		const sscc = "340123450000000017"
		require.NoError(s.t, s.Store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
			x, err := v.ShipmentByNumber("PK-1")
			x.SSCC = sscc
			return &cloud.Changes{TrackingChanges: cloud.TrackingChanges{Shipments: []cloud.Shipment{x}}}, err
		}))
		before := len(s.moves())
		for i, label := range []string{"]C100" + sscc, "00" + sscc + "\r\n", "https://id.example.com/00/" + sscc + "?400=PO1", "]C100" + sscc + "400PO1\x1d420M5J2L7"} {
			s.Tell(wire.KindTrackingEvent, wire.TrackingEvent{Subject: label, StatusCode: []string{"in_transit", "arrival_scan"}[i%2]})
			require.Len(s.t, s.moves(), before+i+1, label)
		}
		for _, label := range []string{"]C100340123450000000018", "]C100106141411234567897", "00" + sscc + "1"} {
			s.Tell(wire.KindTrackingEvent, wire.TrackingEvent{Subject: label, StatusCode: "in_transit"})
		}
		require.Len(s.t, s.moves(), before+4, "of others and of none")
	})
}

// An SSCC may be the parcel's number itself, as a carrier writes it: with its application
// identifier or without.
func TestALabelNamesAParcelWhoseNumberIsAnSSCC(t *testing.T) {
	tell(t, 1, nil, func(s *story) {
		for i, number := range []string{"340123450000000017", "00340123450000000024"} {
			require.NoError(s.t, s.Store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
				x, err := v.ShipmentByNumber("PK-1")
				x.ID, x.Number, x.BusinessID = cloud.ShipmentID(900+i), number, s.Box.ProviderCaller.Account.BusinessID
				return &cloud.Changes{TrackingChanges: cloud.TrackingChanges{Shipments: []cloud.Shipment{x}}}, err
			}))
			for _, label := range []string{"]C100" + number[len(number)-18:], "00" + number[len(number)-18:]} {
				s.Tell(wire.KindTrackingEvent, wire.TrackingEvent{Subject: label, StatusCode: "in_transit"})
				require.Empty(s.t, s.Faults(), "%s by %s", number, label)
			}
		}
	})
}

// What a batch scanner sends later stands at the time of its own clock, once, where that time may
// be; else at that of sending.
func TestScansThatCameLater(t *testing.T) {
	tell(t, 1, nil, func(s *story) {
		made := time.Now().Add(-3 * time.Hour).Truncate(time.Second)
		before := len(s.moves())
		say := func(at int64, step string) {
			s.t.Helper()
			time.Sleep(time.Minute)
			s.Tell(wire.KindTrackingEvent, wire.TrackingEvent{Subject: "PK-1", StatusCode: step, Location: "Yard", ScannedAt: at})
			require.Empty(s.t, s.Faults())
		}
		find := func(step otep.Code) (out []otep.Event) {
			for _, e := range s.timeline().Events {
				if e.StatusCode == step {
					out = append(out, e)
				}
			}
			return out
		}
		say(made.UnixNano(), "picked_up")
		sent := time.Now()
		say(made.UnixNano(), "picked_up")
		got := find(otep.PickedUp)
		require.Len(s.t, got, 1, "the scanner was docked twice")
		require.True(s.t, got[0].OccurredAt.Equal(made), got[0].OccurredAt)
		require.Equal(s.t, true, got[0].Extensions["occurred_at_approximate"])
		require.Contains(s.t, got[0].Extensions["occurred_latest"], sent.UTC().Format("2006-01-02T15:04"))
		say(made.Add(time.Second).UnixNano(), "picked_up")
		require.Len(s.t, find(otep.PickedUp), 2, "another scan")
		for i, x := range []struct {
			at   int64
			step otep.Code
		}{{wire.ScannedUnknown, otep.ArrivalScan}, {time.Now().Add(time.Hour).UnixNano(), otep.InTransit}, {time.Now().AddDate(0, -4, 0).UnixNano(), otep.Received}, {-1 << 62, otep.OutForDelivery}} {
			say(x.at, string(x.step))
			got := find(x.step)
			require.Len(s.t, got, 1, i)
			require.WithinDuration(s.t, time.Now(), got[0].OccurredAt.Time, 10*time.Second, i)
			require.Equal(s.t, true, got[0].Extensions["occurred_at_approximate"])
		}
		require.Len(s.t, s.moves(), before+6)
	})
}
