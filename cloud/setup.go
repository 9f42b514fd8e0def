package cloud

import "time"

// Setup is what is kept about the first start of a deployment: one row for all
// of its nodes.
type Setup struct {
	// Nonce is 32 random bytes that the one-time address is derived from, with the
	// deployment's keys; nil: no address was shown.
	Nonce     []byte
	ExpiresAt time.Time // of the address
	// KeysDigest names the keys file that the database belongs to, 32 bytes; nil:
	// none was claimed.
	KeysDigest []byte
}

// SetupView reads the present of the deployment itself.
type SetupView interface {
	// Setup is the deployment's one row. In a decision on PostgreSQL it waits for
	// others that decide about it; a decision that makes the first administrator
	// writes it.
	Setup() (Setup, error)
	// HasAdministrator reports whether any business has an administrator.
	HasAdministrator() (bool, error)
}

// SetupChanges are the changes of the deployment itself.
type SetupChanges struct {
	Setup *Setup // nil: as it is
}
