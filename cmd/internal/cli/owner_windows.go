package cli

// ownerOf knows no user there: modes are no rights.
func ownerOf(any) int { return -1 }
