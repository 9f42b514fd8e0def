package cloud

import (
	"cmp"
	"time"

	"github.com/postern-io/postern/protocol/otep"
)

// FeedKind says how a timeline changed. A kind that is added needs no more than its
// constant and a statement that writes it.
type FeedKind string

// Kinds of changes.
const (
	EventRecorded   FeedKind = "event.recorded"
	EventReported   FeedKind = "event.reported" // by a source that had no say
	EventWithdrawn  FeedKind = "event.withdrawn"
	EventCorrected  FeedKind = "event.corrected" // withdrawn, and another one took its place
	EstimateChanged FeedKind = "estimate.changed"
	// ContainerBound and ContainerUnbound are of a parcel that was put into a container, or taken out.
	ContainerBound   FeedKind = "container.bound"
	ContainerUnbound FeedKind = "container.unbound"
	AliasAdded       FeedKind = "alias.added"
)

// FeedLife is how long changes are kept to be read.
const FeedLife = 90 * 24 * time.Hour

// FeedPosition is a place in the order of changes, in which those of a transaction stand
// together and none comes before one that was readable earlier. The zero position is before
// the first.
type FeedPosition struct {
	Epoch       int64 // when the database was last recovered to an earlier moment, Unix milliseconds; 0: never
	Transaction int64 // that wrote the change; 0 where one writes after the other
	N           int64 // row
}

// Compare is negative when p comes before q, 0 when they are the same.
func (p FeedPosition) Compare(q FeedPosition) int {
	return cmp.Or(cmp.Compare(p.Epoch, q.Epoch), cmp.Compare(p.Transaction, q.Transaction), cmp.Compare(p.N, q.N))
}

// FeedChange is one change of a timeline.
type FeedChange struct {
	Position   FeedPosition
	Kind       FeedKind
	RecordedAt time.Time
	Shipment   Shipment // as it is now; its ID is 0 where it is there no more
	Package    string   // number of the package that it is about, upper case; "" for the whole shipment
	// Estimate is the new estimate of EstimateChanged: RFC 3339, as its source wrote it.
	Estimate  string
	Container ContainerID // of ContainerBound and ContainerUnbound
	Alias     *FeedAlias  // of AliasAdded
	// Event is that of the other kinds; nil where it is there no more. Withdrawal says how
	// it was taken back, of the kinds that are about that.
	Event      *otep.Event
	Withdrawal EventRef
	Size       int // of the stored event, bytes
}

// FeedAlias is an alias as changes have it.
type FeedAlias struct {
	Kind   string `json:"kind" enum:"carrier,package,sscc,epc,partner,legacy"`
	Issuer string `json:"issuer"`
	Value  string `json:"value"`
}

// FeedPage are changes of a business behind a position.
type FeedPage struct {
	Changes []FeedChange
	// End reports that there was none behind them when they were read.
	End bool
	// Pending reports that changes are stored behind them that are not readable before an
	// older transaction ends.
	Pending bool
}
