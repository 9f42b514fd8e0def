package otep

import (
	"slices"
	"strings"
)

// Universal status codes, valid in every profile.
const (
	InformationSubmitted Code = "information_submitted"
	BookingConfirmed     Code = "booking_confirmed"
	AwaitingPickup       Code = "awaiting_pickup"
	OutForPickup         Code = "out_for_pickup"
	PickedUp             Code = "picked_up"
	PickupFailed         Code = "pickup_failed"
	PickupRescheduled    Code = "pickup_rescheduled"
	Received             Code = "received"
	ArrivalScan          Code = "arrival_scan"
	InTransit            Code = "in_transit"
	PackageOutbound      Code = "package_outbound"
	RemovedFromRoute     Code = "removed_from_route"
	RouteCancelled       Code = "route_cancelled"
	OutForDelivery       Code = "out_for_delivery"
	Delivered            Code = "delivered"
	DeliveryFailed       Code = "delivery_failed"
	DeliveryRescheduled  Code = "delivery_rescheduled"
	ReturnToSender       Code = "return_to_sender"
	RejectedByRecipient  Code = "rejected_by_recipient"
	Cancelled            Code = "cancelled"
)

// Codes of single profiles, by profile: locker, storage, moving, food, parcel.
const (
	AvailableForPickup Code = "x-available_for_pickup"
	PickupOverdue      Code = "x-pickup_overdue"
	RemovedFromDevice  Code = "x-removed_from_device"
	Stored             Code = "x-stored"
	ShipoutRequested   Code = "x-shipout_requested"
	ShipoutReleased    Code = "x-shipout_released"
	Loading            Code = "x-loading"
	Unloading          Code = "x-unloading"
	Preparing          Code = "x-preparing"
	Ready              Code = "x-ready"
	Intercepted        Code = "x-intercepted"
	CustomsHold        Code = "x-customs_hold"
)

// Spec is what the vocabulary says about a code. External values are never
// empty, but for AfterShipSigned and Reason.
type Spec struct {
	Code     Code
	Phase    string
	Profile  string // the code's own; "" for a universal or unregistered code
	Parent   Code   // whose external values hold where the code names none; "" for a universal code
	Terminal bool
	PoD      bool // may carry a proof of delivery
	Rank     int  // breaks ties between events of one instant
	Meaning  string
	Reason   string // incident reason implied when an event names none

	BizStep     string // EPCIS, CBV word
	Disposition string // EPCIS, CBV word or "received", which is none
	OneRecord   string // ONE Record event code
	Transport   string // UN/CEFACT transport status word
	Rec24       string // UN/CEFACT Recommendation 24 number

	AfterShipTag    string
	AfterShipSubtag string
	AfterShipSigned string // subtag instead, when a proof names a recipient or is signed
	Shopify         string
	Amazon          string // eventCode
	AmazonSummary   string
	Coarse          Coarse
	Uncollected     Coarse // instead of Coarse in a timeline that is not Collected, unless zero
}

// Coarse is the status for platforms that know an order's fulfilment only.
type Coarse struct {
	Walmart       string
	BigCommerceID int
	BigCommerce   string
	MagentoState  string
	MagentoStatus string
	WooCommerce   string
	Etsy          string
	EtsyShipped   bool
}

// byCode holds every registered code with the values of its parent filled in.
// Read only after start.
var byCode = func() map[Code]*Spec {
	m := make(map[Code]*Spec, len(universal)+len(special))
	for i := range universal {
		m[universal[i].Code] = &universal[i]
	}
	for _, s := range special {
		r := s.under(m[s.Parent])
		m[s.Code] = &r
	}
	return m
}()

// under is s with what it does not say taken from its parent.
func (s Spec) under(parent *Spec) Spec {
	r := *parent
	r.Code, r.Phase, r.Profile, r.Parent, r.Terminal = s.Code, s.Phase, s.Profile, parent.Code, false
	for _, v := range []struct {
		to   *string
		from string
	}{
		{&r.Meaning, s.Meaning}, {&r.Reason, s.Reason}, {&r.BizStep, s.BizStep}, {&r.Rec24, s.Rec24}, {&r.AfterShipTag, s.AfterShipTag},
		{&r.AfterShipSubtag, s.AfterShipSubtag}, {&r.Shopify, s.Shopify}, {&r.Amazon, s.Amazon}, {&r.AmazonSummary, s.AmazonSummary},
	} {
		if v.from != "" {
			*v.to = v.from
		}
	}
	return r
}

// Vocabulary lists every registered code: the twenty universal ones by number,
// then those of single profiles.
func Vocabulary() []Spec {
	all := slices.Clone(universal)
	for _, s := range special {
		all = append(all, *byCode[s.Code])
	}
	return all
}

// Lookup finds a registered code.
func Lookup(c Code) (s Spec, ok bool) {
	if p := byCode[c]; p != nil {
		return *p, true
	}
	return Spec{}, false
}

// parents are the universal codes as which unregistered ones project, by phase.
var parents = map[string]Code{
	PhasePreShipment: InformationSubmitted, PhasePickup: OutForPickup, PhaseInbound: Received, PhaseTransit: InTransit,
	PhaseOutForDelivery: OutForDelivery, PhaseDelivered: Delivered, PhaseException: DeliveryFailed, PhaseReturn: ReturnToSender,
	PhaseCancelled: Cancelled,
}

// Project is what a code counts as outside: its own row when it is registered,
// whatever the phase, else that of the universal code that stands for the
// phase its event gives. It is never terminal then. An unknown phase gives a
// row without external values.
func Project(c Code, phase string) Spec {
	s, ok := byCode[c]
	if ok {
		return *s
	}
	own := Spec{Code: c, Phase: phase}
	if parent := byCode[parents[phase]]; parent != nil {
		return own.under(parent)
	}
	return own
}

// rank is that of Project without making its row.
func rank(c Code, phase string) int {
	s := byCode[c]
	if s == nil {
		s = byCode[parents[phase]]
	}
	if s == nil {
		return 0
	}
	return s.Rank
}

// Universal reports whether every profile has the code.
func (s Spec) Universal() bool { return s.Parent == "" && s.Profile == "" && s.Rank != 0 }

// Experimental reports whether a code carries the mark of one.
func (c Code) Experimental() bool { return strings.HasPrefix(string(c), "x-") }

// CoarseIn is the coarse row in a timeline; collected is what Collected says.
func (s Spec) CoarseIn(collected bool) Coarse {
	if !collected && s.Uncollected != (Coarse{}) {
		return s.Uncollected
	}
	return s.Coarse
}

// URI is the address of a code in a timeline of the given profile: a profile's
// own code keeps its profile.
func (s Spec) URI(profile string) string {
	if s.Profile != "" {
		profile = s.Profile
	}
	return "otep:" + profile + ":" + string(s.Code)
}

// spellings are accepted on input.
var spellings = map[string]Code{
	"order_cancelled": Cancelled, "order_canceled": Cancelled, "canceled": Cancelled,
	"returned": ReturnToSender, "returned_to_sender": ReturnToSender,
	"rejected": RejectedByRecipient, "refused": RejectedByRecipient,
}

// Canonical reads a status code as producers write it: a code, an accepted
// spelling of one, or a full address such as otep:parcel:delivered. changed
// says that the canonical code is written differently. ok is false for what is
// neither registered nor a well formed experimental code.
func Canonical(s string) (c Code, changed, ok bool) {
	word := s
	if rest, is := strings.CutPrefix(s, "otep:"); is {
		profile, code, found := strings.Cut(rest, ":")
		if !found || profile != universalProfile && !ValidProfile(profile) {
			return "", false, false
		}
		word = code
	}
	if c, is := spellings[word]; is {
		return c, true, true
	}
	c = Code(word)
	if byCode[c] == nil && !(c.Experimental() && validName(word)) {
		return "", false, false
	}
	return c, word != s, true
}

// validName reports whether s is a name of this protocol: lower-case letters,
// digits and underscore, a letter first, "x-" before it for experiments, 64 at
// most.
func validName(s string) bool {
	if len(s) > maxName {
		return false
	}
	s = strings.TrimPrefix(s, "x-")
	for i := range len(s) {
		letter := s[i] >= 'a' && s[i] <= 'z'
		if !letter && (i == 0 || (s[i] < '0' || s[i] > '9') && s[i] != '_') {
			return false
		}
	}
	return s != ""
}
