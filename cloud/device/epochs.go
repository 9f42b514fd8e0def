package device

import (
	"fmt"
	"time"

	"github.com/postern-io/postern/cloud"
)

// A store that a device begins anew is kept for good, with its records. A cabinet
// whose disk fails begins one now and then; who has a stolen key can announce one
// with every batch. So a device begins
//
//	epochsAnHour   within any hour
//	epochsADay     within any day, and beyond that one an hour
//
// and no more: the batch that would begin another is not taken and gets no receipt,
// which keeps its records at the device, and staff are shown too_many_epochs. An
// honest device sends it again and waits an hour at most. Boots, agents, code lists
// and exceptions that a device announces are kept in one row of the device each,
// refused batches by cloud.MaxAside.
const (
	epochsAnHour = 20
	epochsADay   = 60
)

// mayBegin reports whether the device may begin another epoch now. It reads no more
// index entries than the figures above.
func (t *intake) mayBegin(at time.Time) (bool, error) {
	since := func(d time.Duration, most int) (int, error) {
		n, err := t.v.EpochsSince(t.x.id, at.Add(-d), most)
		return n + t.begun, err
	}
	lately, err := since(time.Hour, epochsAnHour)
	if err != nil || lately == 0 || lately >= epochsAnHour {
		return lately == 0, err
	}
	today, err := since(24*time.Hour, epochsADay)
	return today < epochsADay, err
}

// postpone leaves a batch that would begin an epoch with the device.
func (t *intake) postpone(p parsed) {
	t.refused++
	t.fault(cloud.DevTooManyEpochs, fmt.Sprintf("the device begins more than %d stores an hour or %d a day; epoch %s waits", epochsAnHour, epochsADay, p.batch.Epoch), p.at)
}
