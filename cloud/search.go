package cloud

// SearchView finds records of a business by how a text that people know them by
// begins, in any case. It reads indexes alone, however many records there are.
type SearchView interface {
	// SearchDeliveries finds at most limit deliveries whose number or reference, or whose
	// recipient's name, last name or telephone number begins with a text, or that have a
	// package with exactly this number; and among the newest 2,000 those whose recipient's
	// name or telephone number contains it.
	SearchDeliveries(b BusinessID, text string, limit int) ([]Delivery, error)
	// SearchAccounts finds at most limit accounts of a type whose name or email begins
	// with a text and, among the newest 2,000 of the type, those that contain it.
	SearchAccounts(b BusinessID, t AccountType, text string, limit int) ([]Account, error)
	// SearchDoors finds at most limit doors of cabinets in use whose code or printed label
	// is one of at most DoorSpellings names, in any case, by cabinet; with a cabinet, only
	// those of the cabinets that have exactly this name or code.
	SearchDoors(b BusinessID, cabinet string, names []string, limit int) ([]DoorFound, error)
}

// DoorSpellings are the most names of a door that a search takes at once.
const DoorSpellings = 13

// DoorFound is a door that a search found, with its cabinet.
type DoorFound struct {
	DeviceID DeviceID
	Name     string // of the cabinet
	Code     string
	Address  string
	GridCode string
	Door     string // its name
}
