package cloud

import "time"

// Identity is a person at a sign-in provider of a business (OpenID Connect), and the
// account that the person has here.
type Identity struct {
	BusinessID BusinessID
	Issuer     string // address of the provider
	Subject    string // the person there, never given to another
	AccountID  AccountID
	CreatedAt  time.Time
}

// IdentityView reads the present of identities.
type IdentityView interface {
	// Identity finds one; in a decision on PostgreSQL it waits for others that decide
	// about it.
	Identity(b BusinessID, issuer, subject string) (Identity, error)
	// IdentitiesOf lists an account's.
	IdentitiesOf(AccountID) ([]Identity, error)
}

// IdentityChanges are the changes of identities.
type IdentityChanges struct {
	Identities []Identity // insert
	// EndIdentities removes all identities of accounts, before others are inserted.
	EndIdentities []AccountID
}
