package cloud

import "time"

// OAuthGrantID names what an account lets one client do.
type OAuthGrantID int64

// TokenKind says what a token of the authorization server is for.
type TokenKind string

// Kinds. Keys have none, logins none or that of SetupToken.
const (
	AccessToken  TokenKind = "access"  // lets in, at its audience
	RefreshToken TokenKind = "refresh" // is changed for new tokens, and lets in nowhere
	// SetupToken is that of a login whose person has to set up a second factor first:
	// it lets in to what does that.
	SetupToken TokenKind = "setup"
)

// OAuthClient is a program that people connect, as it registered itself
// (RFC 7591) or, when its id is an https address, as the document there says.
// All of it is the program's own claim. It has no secret.
type OAuthClient struct {
	ID           string
	Name         string // may be empty
	RedirectURIs []string
	CreatedAt    time.Time
	UsedAt       time.Time // when it was last given a grant; zero: never
}

// OAuthGrant is one consent: what an account lets a client do at one audience,
// until it is ended or its last refresh token expires.
type OAuthGrant struct {
	ID         OAuthGrantID
	AccountID  AccountID
	ClientID   string
	ClientName string // as the account's user saw it
	Host       string // of the redirect address
	Profile    string // that was chosen; empty: just what was asked for
	Scopes     []string
	Audience   string // address that the tokens are bound to
	Policy     KeyPolicy
	Strong     bool // the login that allowed it was strong, as Token says
	CreatedAt  time.Time
	UsedAt     time.Time // when tokens were last given; zero: never
	ExpiresAt  time.Time // of what can last be changed for tokens: the code, then the refresh token
	EndedAt    time.Time
	Code       OAuthCode
}

// Live reports whether a grant can still be used at now.
func (g OAuthGrant) Live(now time.Time) bool {
	return g.EndedAt.IsZero() && now.Before(g.ExpiresAt)
}

// OAuthCode is the one authorization code of a grant. Only its hash is kept.
type OAuthCode struct {
	Hash        [32]byte // SHA-256
	RedirectURI string   // as it stood in the request; empty when it did not
	Challenge   string   // PKCE, S256
	ExpiresAt   time.Time
	UsedAt      time.Time
}

// OAuthEnd ends a grant and all its tokens.
type OAuthEnd struct {
	ID OAuthGrantID
	At time.Time
}

// OAuthDrop removes what is of no use any more. Zero times remove nothing.
type OAuthDrop struct {
	Unused time.Time // clients that were never used and registered before it
	Idle   time.Time // clients without a grant that were last used before it
	Tokens time.Time // tokens of grants that expired before it
	Grants time.Time // grants that ended or expired before it, with their tokens
}

// OAuthView reads the present of agents that people let in.
type OAuthView interface {
	// OAuthClient finds a client that registered itself.
	OAuthClient(string) (OAuthClient, error)
	// UnusedOAuthClients counts clients that were never used and registered at
	// since or later.
	UnusedOAuthClients(since time.Time) (int, error)
	// OAuthGrant and OAuthGrantByCode, in a decision on PostgreSQL, wait for
	// others that decide about the same grant. A decision that gives, changes or ends its
	// tokens writes the grant too.
	OAuthGrant(OAuthGrantID) (OAuthGrant, error)
	OAuthGrantByCode(hash [32]byte) (OAuthGrant, error)
	// OAuthGrants lists an account's grants, ended ones too, newest first.
	OAuthGrants(AccountID) ([]OAuthGrant, error)
}

// OAuthChanges are the changes of agents that people let in.
type OAuthChanges struct {
	OAuthClients []OAuthClient
	OAuthGrants  []OAuthGrant
	OAuthEnds    []OAuthEnd
	DropOAuth    OAuthDrop
}
