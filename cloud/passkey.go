package cloud

import "time"

// PasskeyID names a passkey.
type PasskeyID int64

// PasskeyIDs is their sequence.
const PasskeyIDs IDKind = "passkey"

// Passkey is a public key that an account signs in with (Web Authentication). The
// private one is in a device or a password store of the person.
type Passkey struct {
	ID         PasskeyID `row:",sort"`
	AccountID  AccountID `row:",owner"`
	Credential []byte    `row:",unique,secret"` // id that the authenticator gave, unique
	Name       string    // that its person gave
	Data       []byte    `row:",text,secret"` // JSON of what a signature is checked against, as cloud/auth has it
	CreatedAt  time.Time
	UsedAt     time.Time // zero: never
}

// RowKind implements Row.
func (Passkey) RowKind() IDKind { return PasskeyIDs }

// RowID implements Row.
func (p Passkey) RowID() int64 { return int64(p.ID) }
