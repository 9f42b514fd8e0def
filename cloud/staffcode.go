package cloud

import "time"

// StaffCodeID names a staff code.
type StaffCodeID int64

// StaffCodeIDs is the sequence of staff codes.
const StaffCodeIDs IDKind = "staff_code"

// StaffCode is the code of a staff member at every cabinet of the business for one day.
// Source: lockers-devices 3.
type StaffCode struct {
	Kept[StaffCodeID]
	AccountID AccountID `row:",fixed"`
	Day       string    `row:",fixed"` // YYYY-MM-DD where the business is
	StartsAt  time.Time `row:",fixed"`
	EndsAt    time.Time `row:",fixed"`
	Sealed    []byte    `row:",fixed,secret"`
	DroppedAt time.Time // another took its place, or its member has none any more
}

// RowKind implements Row.
func (StaffCode) RowKind() IDKind { return StaffCodeIDs }

// StaffCodeHolderID names a staff member with codes.
type StaffCodeHolderID int64

// StaffCodeHolderIDs is the sequence of staff members with codes.
const StaffCodeHolderIDs IDKind = "staff_code_holder"

// StaffCodeHolder is a staff member for whom codes are drawn, day by day.
type StaffCodeHolder struct {
	Kept[StaffCodeHolderID]
	AccountID AccountID `row:",fixed,unique"`
}

// RowKind implements Row.
func (StaffCodeHolder) RowKind() IDKind { return StaffCodeHolderIDs }

// StaffRota counts the changes of a business's staff codes, and says when the next day's
// are to be drawn. Writing one counts a change.
type StaffRota struct {
	BusinessID BusinessID
	Version    int64 // from 1; of no meaning in Changes
	NextAt     time.Time
}

// StaffList is how far a cabinet's code list follows the staff codes of its business.
type StaffList struct {
	DeviceID DeviceID
	Version  int64  // of the rota whose codes are on the list
	Number   uint64 // of the code list, with the last of them
}
