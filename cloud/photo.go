package cloud

import "time"

// DevicePhotoID names a photo of a device.
type DevicePhotoID int64

// DevicePhotoIDs is their sequence.
const DevicePhotoIDs IDKind = "device_photo"

// WholeDevice is the door of a photo that shows no compartment alone.
const WholeDevice = -1

// DevicePhoto is a picture that a device with a camera has taken of its compartments.
type DevicePhoto struct {
	Kept[DevicePhotoID]
	DeviceID  DeviceID  `row:",fixed"`
	Name      string    `row:",fixed,unique,secret"` // the device's number, a colon, the device's own name of it
	Door      int64     `row:",fixed"`               // WholeDevice: of no compartment alone
	OpeningID string    `row:",fixed"`               // "" without one
	TakenAt   time.Time `row:",fixed"`
	Path      string    `row:",fixed,secret"`
}

// RowKind implements Row.
func (DevicePhoto) RowKind() IDKind { return DevicePhotoIDs }
