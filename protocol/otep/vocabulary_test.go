package otep

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestVocabularyIsWhole(t *testing.T) {
	t.Parallel()
	all, terminal := Vocabulary(), 0
	require.Len(t, all, 20+12)
	for _, s := range all {
		got, ok := Lookup(s.Code)
		require.True(t, ok)
		require.Equal(t, s, got)
		if s.Terminal {
			terminal++
		}
		_, ok = PhaseOrder(s.Phase)
		require.True(t, ok, s.Code)
		require.Equal(t, s.Universal(), !s.Code.Experimental())
		for _, v := range []string{s.Meaning, s.BizStep, s.Disposition, s.OneRecord, s.Transport, s.Rec24, s.AfterShipTag, s.AfterShipSubtag, s.Shopify, s.Amazon, s.AmazonSummary, s.Coarse.Walmart} {
			require.NotEmpty(t, v, s.Code)
		}
		require.NotZero(t, s.Rank, s.Code)
	}
	require.Equal(t, 4, terminal)
}

func TestProject(t *testing.T) {
	t.Parallel()
	for phase, parent := range parents {
		s := Project("x-new", phase)
		want, _ := Lookup(parent)
		require.Equal(t, want.BizStep, s.BizStep)
		require.Equal(t, want.Coarse, s.Coarse)
		require.Equal(t, want.Rank, s.Rank)
		require.Equal(t, Code("x-new"), s.Code)
		require.Equal(t, phase, s.Phase)
		require.Equal(t, parent, s.Parent)
		require.False(t, s.Terminal, "only a registered code ends a timeline")
		require.Equal(t, "otep:food:x-new", s.URI("food"))
	}
	require.Len(t, parents, len(phases))
	require.Equal(t, "storing", Project(AvailableForPickup, PhasePickup).BizStep, "a registered code needs no phase")
	require.Equal(t, Spec{Code: "x-new", Phase: "nowhere"}, Project("x-new", "nowhere"))
}

func TestCanonical(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]Code{
		"delivered": Delivered, "otep:parcel:delivered": Delivered, "otep:universal:delivered": Delivered, "otep:x-drones:delivered": Delivered,
		"canceled": Cancelled, "order_canceled": Cancelled, "order_cancelled": Cancelled, "otep:parcel:canceled": Cancelled,
		"returned": ReturnToSender, "returned_to_sender": ReturnToSender, "rejected": RejectedByRecipient, "refused": RejectedByRecipient,
		"x-anything_2": "x-anything_2", "otep:locker:x-available_for_pickup": AvailableForPickup, "x-" + strings.Repeat("a", 62): Code("x-" + strings.Repeat("a", 62)),
	} {
		c, changed, ok := Canonical(given)
		require.True(t, ok, given)
		require.Equal(t, want, c)
		require.Equal(t, given != string(want), changed, given)
	}
	for _, bad := range []string{
		"", "not_a_code", "Delivered", " delivered", "x-", "x-x-a", "x-2a", "x-Ä", "x-a b", "x-" + strings.Repeat("a", 63), "otep:", "otep:delivered", "otep:parcel:",
		"otep:phase:delivered", "otep:reason:weather", "otep:Parcel:delivered", "otep::delivered", "otep:parcel:delivered:x", "otep:parcel:otep:parcel:delivered",
	} {
		_, _, ok := Canonical(bad)
		require.False(t, ok, bad)
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"parcel", "x-drones", "a", "a_1", "x"} {
		require.True(t, ValidProfile(s), s)
	}
	for _, s := range []string{"", "x-", "Parcel", "_a", "1a", "phase", "reason", "universal", "a-b", strings.Repeat("a", 65), "ä"} {
		require.False(t, ValidProfile(s), s)
	}
	n, ok := PhaseOrder(PhaseDelivered)
	require.Equal(t, 6, n)
	require.True(t, ok)
	n, ok = PhaseOrder(PhaseReturn)
	require.Zero(t, n)
	require.True(t, ok)
	_, ok = PhaseOrder("none")
	require.False(t, ok)
}

func TestLookups(t *testing.T) {
	t.Parallel()
	for _, f := range SourceTypes() {
		got, changed, ok := SourceType(f.Type)
		require.Equal(t, f.Type, got)
		require.True(t, ok && !changed)
		for _, s := range f.Spellings {
			got, changed, ok := SourceType(s)
			require.Equal(t, f.Type, got)
			require.True(t, ok && changed)
		}
	}
	_, _, ok := SourceType("bogus")
	require.False(t, ok)
	s, ok := Telemetry("humus")
	require.False(t, ok)
	require.Equal(t, Sensor{Type: "humus", EPCIS: "Dimensionless"}, s)
	r, ok := Reason("lost")
	require.True(t, ok)
	require.Equal(t, "unknown", r.Disposition)
	_, ok = Reason("x-lost")
	require.False(t, ok)
	for _, s := range Vocabulary() {
		if s.Reason != "" {
			_, ok := Reason(s.Reason)
			require.True(t, ok, "%s implies a registered reason", s.Code)
		}
	}
}

func TestTransition(t *testing.T) {
	t.Parallel()
	require.True(t, Transition(Delivered, Delivered))
	require.True(t, Transition(Delivered, ReturnToSender))
	require.False(t, Transition(Delivered, OutForDelivery))
	require.True(t, Transition(AvailableForPickup, InformationSubmitted), "codes of profiles are transparent")
	pairs := 0
	for _, a := range universal {
		for _, b := range universal {
			if a.Code != b.Code && Transition(a.Code, b.Code) {
				pairs++
			}
		}
		if a.Terminal {
			require.LessOrEqual(t, len(Next(a.Code)), 1)
		}
	}
	require.Equal(t, 223, pairs)
}

func TestCoarseBeforeGoodsLeft(t *testing.T) {
	t.Parallel()
	for _, c := range []Code{RemovedFromRoute, RouteCancelled, DeliveryRescheduled, RemovedFromDevice} {
		s, _ := Lookup(c)
		require.Equal(t, "Acknowledged", s.CoarseIn(false).Walmart, c)
		require.Equal(t, "Shipped", s.CoarseIn(true).Walmart, c)
	}
	s, _ := Lookup(InTransit)
	require.Equal(t, s.CoarseIn(true), s.CoarseIn(false))
}
