package cloud

import (
	"time"

	"github.com/postern-io/postern/protocol/wire"
)

// QRCodeID names a signed QR code that was given out.
type QRCodeID int64

// QRCodeIDs is their sequence.
const QRCodeIDs IDKind = "qr_code"

// QRCode is a signed QR code that was given out, and the opening that it has begun.
// Its text, which opens doors, is kept nowhere.
type QRCode struct {
	Kept[QRCodeID]
	PassID     string           `row:",fixed,unique"` // single-use id, in hex
	DeviceID   DeviceID         `row:",fixed"`
	DeliveryID DeliveryID       `row:",fixed"` // 0 of staff
	Kind       wire.OpeningKind `row:",fixed"`
	IssuedBy   Requester        `row:",fixed"`
	Reason     string           `row:",fixed"` // of staff
	EndsAt     time.Time        `row:",fixed"`
	OpeningID  string           // "" until the cabinet reports one
	UsedAt     time.Time
}

// RowKind implements Row.
func (QRCode) RowKind() IDKind { return QRCodeIDs }
