package cloud

// SavedViewID names a saved view.
type SavedViewID int64

// SavedViewIDs is their sequence.
const SavedViewIDs IDKind = "saved_view"

// SavedView is a list of the console as a person wants to see it again: its filters,
// columns and sort.
type SavedView struct {
	Kept[SavedViewID]
	AccountID AccountID `row:",fixed"`
	Noun      string    // of the list
	Name      string    `row:",sort"`
	Query     string    // of the list's address
	Shared    bool      // with all staff of the business
}

// RowKind implements Row.
func (SavedView) RowKind() IDKind { return SavedViewIDs }
