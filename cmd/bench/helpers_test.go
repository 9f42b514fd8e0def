package bench

import (
	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/locker"
)

func newDelivery(id cloud.DeviceID, ref string) locker.CreateInput {
	return locker.CreateInput{ReferenceNumber: ref, DeviceID: id, Packages: []locker.PackageInput{{TrackingNumber: "PK-" + ref, Size: "M"}},
		Recipient: cloud.Recipient{Name: "Jane Smith", Phone: "+14165550123"}}
}
