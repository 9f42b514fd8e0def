package cloud

import "time"

// PasskeyID names a passkey.
type PasskeyID int64

// PasskeyIDs is their sequence.
const PasskeyIDs IDKind = "passkey"

// Passkey is a public key that an account signs in with (Web Authentication). The
// private one is in a device or a password store of the person.
type Passkey struct {
	ID         PasskeyID
	AccountID  AccountID
	Credential []byte // id that the authenticator gave, unique
	Name       string // that its person gave
	Data       []byte // JSON of what a signature is checked against, as cloud/auth has it
	CreatedAt  time.Time
	UsedAt     time.Time // zero: never
}

// PasskeyView reads the present of passkeys.
type PasskeyView interface {
	// Passkeys lists an account's, oldest first.
	Passkeys(AccountID) ([]Passkey, error)
	// PasskeyByCredential finds one by the id that its authenticator gave. In a
	// decision on PostgreSQL it waits for others that decide about it.
	PasskeyByCredential(credential []byte) (Passkey, error)
}

// PasskeyChanges are the changes of passkeys.
type PasskeyChanges struct {
	Passkeys   []Passkey
	NoPasskeys []PasskeyID // that are removed
}
