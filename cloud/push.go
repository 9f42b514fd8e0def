package cloud

// PushChanges are the changes of pushes to phones.
type PushChanges struct {
	Pushes         []Push // insert, with their live events
	RewordedPushes []Push
	PushTokens     []PushToken
	// NoPushTokens ends what logins gave, by their hashes.
	NoPushTokens [][32]byte
}
