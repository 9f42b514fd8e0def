package auth

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/webauthn"

	"github.com/postern-io/postern/cloud"
)

// Passkeys checks what authenticators sign (Web Authentication, level 3). It keeps
// nothing: a challenge carries its purpose, its end and a seal of the deployment, so
// that asking for one costs an anonymous caller no row. A challenge is good once: what
// was signed over it is kept as a ticket. Safe for concurrent use.
type Passkeys struct {
	web *webauthn.WebAuthn
	key []byte
}

// What a passkey is bound by.
const (
	MaxPasskeys     = 20   // of one account
	maxCredential   = 1023 // bytes of a credential's id (Web Authentication 5.8.3)
	maxPasskeyInput = 16 << 10
	passkeyLife     = 5 * time.Minute // of a challenge

	challengeHead = 24 // random bytes and end
	challengeSize = challengeHead + sha256.Size
)

// NewPasskeys builds the checks for the deployment's public address. key seals
// challenges, the same on every node. nil and no error is what comes of an address
// that browsers give no passkeys at: none, a number, or plain HTTP beyond localhost.
func NewPasskeys(baseURL string, key []byte) (*Passkeys, error) {
	u, err := url.Parse(baseURL)
	if err != nil || u.Hostname() == "" {
		return nil, nil
	}
	host := strings.ToLower(u.Hostname())
	if _, err := netip.ParseAddr(host); err == nil || u.Scheme != "https" && host != "localhost" {
		return nil, nil
	}
	w, err := webauthn.New(&webauthn.Config{RPID: host, RPDisplayName: "Postern", RPOrigins: []string{u.Scheme + "://" + strings.ToLower(u.Host)}})
	if err != nil {
		return nil, fmt.Errorf("passkeys: %w", err)
	}
	return &Passkeys{w, key}, nil
}

// owner is an account as the library wants it.
type owner struct {
	cloud.Account
	keys []webauthn.Credential
}

// WebAuthnID is the user handle: it names the account and nothing of its person.
func (o owner) WebAuthnID() []byte                         { return fmt.Appendf(nil, "account/%d", o.ID) }
func (o owner) WebAuthnName() string                       { return o.Email }
func (o owner) WebAuthnDisplayName() string                { return o.Name }
func (o owner) WebAuthnCredentials() []webauthn.Credential { return o.keys }

func ownerOf(a cloud.Account, list []cloud.Passkey) (owner, error) {
	o := owner{Account: a}
	for _, p := range list {
		var c webauthn.Credential
		if err := json.Unmarshal(p.Data, &c); err != nil {
			return o, fmt.Errorf("passkey %d: %w", p.ID, err)
		}
		o.keys = append(o.keys, c)
	}
	return o, nil
}

// challenge makes one for a purpose that ends at now plus passkeyLife.
func (p *Passkeys) challenge(purpose string, now time.Time) []byte {
	var b [challengeHead]byte
	_, _ = rand.Read(b[:16]) // never fails
	binary.BigEndian.PutUint64(b[16:], uint64(now.Add(passkeyLife).UnixMilli()))
	return p.seal(b[:], purpose)
}

func (p *Passkeys) seal(head []byte, purpose string) []byte {
	m := hmac.New(sha256.New, p.key)
	m.Write(head)
	m.Write([]byte(purpose))
	return m.Sum(bytes.Clone(head))
}

// endOf is when a challenge ends, of one that was made for purpose and has not ended.
func (p *Passkeys) endOf(challenge, purpose string, now time.Time) (end time.Time, ok bool) {
	raw, err := base64.RawURLEncoding.DecodeString(challenge)
	if err != nil || len(raw) != challengeSize || !hmac.Equal(raw, p.seal(raw[:challengeHead], purpose)) {
		return end, false
	}
	end = time.UnixMilli(int64(binary.BigEndian.Uint64(raw[16:challengeHead]))).UTC()
	return end, now.Before(end)
}

// needsVerification is what an account's passkeys have to prove beside possession:
// administrators always that a person was recognised, others where they replace the
// password.
func needsVerification(a cloud.Account, alone bool) protocol.UserVerificationRequirement {
	if alone || a.Type == cloud.ClientAdmin || a.Type == cloud.PlatformAdmin {
		return protocol.VerificationRequired
	}
	return protocol.VerificationPreferred
}

// Creation are the options by which a browser makes a passkey for an account. binding
// is the login that they are for.
func (p *Passkeys) Creation(a cloud.Account, known []cloud.Passkey, binding string, now time.Time) (map[string]any, error) {
	o, err := ownerOf(a, known)
	if err != nil {
		return nil, err
	}
	c, _, err := p.web.BeginRegistration(o, webauthn.WithExclusions(webauthn.Credentials(o.keys).CredentialDescriptors()), webauthn.WithConveyancePreference(protocol.PreferNoAttestation),
		webauthn.WithAuthenticatorSelection(protocol.AuthenticatorSelection{ResidentKey: protocol.ResidentKeyRequirementRequired, UserVerification: protocol.VerificationRequired}),
		func(c *protocol.PublicKeyCredentialCreationOptions) error {
			c.Challenge, c.Timeout = p.challenge("create/"+binding, now), int(passkeyLife.Milliseconds())
			return nil
		})
	if err != nil {
		return nil, fmt.Errorf("begin a passkey: %w", err)
	}
	return members(c.Response)
}

// members is a value as its JSON says.
func members(v any) (out map[string]any, err error) {
	raw, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(raw, &out)
	}
	return out, err
}

// PASSKEY_REFUSED says no more: what was wrong helps an attacker alone.
func refusedPasskey() *cloud.Error { return cloud.E(cloud.Unauthenticated, "PASSKEY_REFUSED") }

// Created checks the answer of a browser to Creation, within the decision that keeps
// the passkey. Its challenge counts as used. Problem: PASSKEY_REFUSED.
func (p *Passkeys) Created(v cloud.View, ch *cloud.Changes, a cloud.Account, answer, binding string, now time.Time) (cloud.Passkey, *cloud.Error, error) {
	if len(answer) > maxPasskeyInput {
		return cloud.Passkey{}, refusedPasskey(), nil
	}
	parsed, err := protocol.ParseCredentialCreationResponseBytes([]byte(answer))
	if err != nil {
		return cloud.Passkey{}, refusedPasskey(), nil
	}
	challenge := parsed.Response.CollectedClientData.Challenge
	end, ok := p.endOf(challenge, "create/"+binding, now)
	if !ok {
		return cloud.Passkey{}, refusedPasskey(), nil
	}
	o := owner{Account: a}
	c, err := p.web.CreateCredential(o, webauthn.SessionData{Challenge: challenge, RelyingPartyID: p.web.Config.RPID, UserID: o.WebAuthnID(), UserVerification: protocol.VerificationRequired, CredParams: webauthn.CredentialParametersDefault()}, parsed)
	if err != nil || len(c.ID) == 0 || len(c.ID) > maxCredential {
		return cloud.Passkey{}, refusedPasskey(), nil
	}
	if problem, err := useChallenge(v, ch, challenge, a, end, now); problem != nil || err != nil {
		return cloud.Passkey{}, problem, err
	}
	c.Attestation = webauthn.CredentialAttestation{} // nothing looks at it
	data, err := json.Marshal(c)
	return cloud.Passkey{AccountID: a.ID, Credential: c.ID, Data: data, CreatedAt: now}, nil, err
}

// useChallenge keeps that a challenge was used; a second time it is refused.
func useChallenge(v cloud.View, ch *cloud.Changes, challenge string, a cloud.Account, end, now time.Time) (*cloud.Error, error) {
	hash := Hash("passkey/" + challenge)
	_, err := v.Ticket(hash)
	if err == nil {
		return refusedPasskey(), nil
	}
	if !errors.Is(err, cloud.ErrNotFound) {
		return nil, err
	}
	ch.Accounts = append(ch.Accounts, a) // two uses at one moment meet there
	ch.Tickets = append(ch.Tickets, cloud.Ticket{Hash: hash, Kind: cloud.PasskeyTicket, AccountID: a.ID, PasswordMark: Mark(a), ExpiresAt: end, UsedAt: now})
	return nil, nil
}

// PasskeyTry is an answer of a browser to the options of BeginPasskey.
type PasskeyTry struct {
	Credential string // JSON of the browser's answer
	Challenge  string // of a login whose second step it is; empty: it is the whole login
	Binding    string // as at BeginPasskey
	Name       string // of the token, as its owner sees it
	Remember   bool
	Life       time.Duration // of the token; 0: as Remember says
	IP         string
}

// purpose is what a challenge of a login is made for.
func (t PasskeyTry) purpose() string {
	if t.Challenge != "" {
		return "second/" + t.Binding + "/" + t.Challenge
	}
	return "login/" + t.Binding
}

// loginTicket finds the first step of a login that is under way.
func loginTicket(v cloud.View, challenge string, now time.Time) (t cloud.Ticket, a cloud.Account, problem *cloud.Error, err error) {
	over := cloud.E(cloud.Unauthenticated, "CHALLENGE_EXPIRED")
	t, err = v.Ticket(Hash(challenge))
	if errors.Is(err, cloud.ErrNotFound) || err == nil && (t.Kind != cloud.LoginTicket || !t.UsedAt.IsZero() || !now.Before(t.ExpiresAt)) {
		return t, a, over, nil
	}
	if err != nil {
		return t, a, nil, err
	}
	a, err = v.Account(t.AccountID)
	if err == nil && (!a.Enabled || Mark(a) != t.PasswordMark) {
		return t, a, over, nil
	}
	return t, a, nil, err
}

// beginPasskey are the options by which a browser signs in: with whichever passkey of
// this deployment it has, or as the second step of a login with one of its account.
// Errors: PASSKEY_UNAVAILABLE, CHALLENGE_EXPIRED.
func (s *Service) beginPasskey(ctx context.Context, try PasskeyTry) (map[string]any, error) {
	p := s.passkeys
	if p == nil {
		return nil, cloud.E(cloud.Conflict, "PASSKEY_UNAVAILABLE")
	}
	now := time.Now().UTC()
	challenge := webauthn.WithChallenge(p.challenge(try.purpose(), now))
	if try.Challenge == "" {
		o, _, err := p.web.BeginDiscoverableLogin(challenge, webauthn.WithUserVerification(protocol.VerificationRequired))
		if err != nil {
			return nil, fmt.Errorf("begin a login with a passkey: %w", err)
		}
		return members(o.Response)
	}
	var out map[string]any
	err := s.store.Look(ctx, func(v cloud.View) error {
		_, a, problem, err := loginTicket(v, try.Challenge, now)
		if problem != nil {
			return problem
		}
		if err != nil {
			return err
		}
		list, err := cloud.All(v, cloud.Passkey{AccountID: a.ID})
		if err != nil {
			return err
		}
		if len(list) == 0 {
			return cloud.E(cloud.Conflict, "PASSKEY_UNAVAILABLE")
		}
		who, err := ownerOf(a, list)
		if err != nil {
			return err
		}
		o, _, err := p.web.BeginLogin(who, challenge, webauthn.WithUserVerification(needsVerification(a, false)))
		if err != nil {
			return fmt.Errorf("begin the second step with a passkey: %w", err)
		}
		out, err = members(o.Response)
		return err
	})
	return out, err
}

// passkey logs in by what an authenticator signed. Errors: PASSKEY_UNAVAILABLE,
// PASSKEY_REFUSED, CHALLENGE_EXPIRED, ACCOUNT_DISABLED.
func (s *Service) passkey(ctx context.Context, try PasskeyTry) (l Login, err error) {
	p := s.passkeys
	if p == nil {
		return l, cloud.E(cloud.Conflict, "PASSKEY_UNAVAILABLE")
	}
	if len(try.Credential) > maxPasskeyInput {
		return l, refusedPasskey()
	}
	parsed, err := protocol.ParseCredentialRequestResponseBytes([]byte(try.Credential))
	if err != nil {
		return l, refusedPasskey()
	}
	challenge := parsed.Response.CollectedClientData.Challenge
	end, ok := p.endOf(challenge, try.purpose(), time.Now())
	if !ok {
		return l, refusedPasskey()
	}
	err = Decide(ctx, s.store, func(v cloud.View, ch *cloud.Changes, now time.Time) (*cloud.Error, error) {
		key, err := cloud.Find(v, cloud.Passkey{Credential: parsed.RawID})
		if errors.Is(err, cloud.ErrNotFound) {
			return refusedPasskey(), nil
		}
		if err != nil {
			return nil, err
		}
		a, err := v.Account(key.AccountID)
		if err != nil {
			return nil, err
		}
		o, err := ownerOf(a, []cloud.Passkey{key})
		if err != nil {
			return nil, err
		}
		if len(parsed.Response.UserHandle) == 0 && try.Challenge == "" {
			return refusedPasskey(), nil
		}
		c, err := p.web.ValidateLogin(o, webauthn.SessionData{Challenge: challenge, RelyingPartyID: p.web.Config.RPID, UserID: o.WebAuthnID(), UserVerification: needsVerification(a, try.Challenge == "")}, parsed)
		if err != nil {
			return refusedPasskey(), nil
		}
		if c.Authenticator.CloneWarning { // there may be a copy: the person can see it in the audit trail
			ch.Audits = append(ch.Audits, audit(a, now, "passkey_counter_refused"))
			return refusedPasskey(), nil
		}
		if problem, err := useChallenge(v, ch, challenge, a, end, now); problem != nil || err != nil {
			return problem, err
		}
		if !a.Enabled {
			return cloud.E(cloud.Forbidden, "ACCOUNT_DISABLED"), nil
		}
		if demanded, err := s.demands(v, a); demanded || err != nil {
			return cloud.E(cloud.Forbidden, "OIDC_REQUIRED"), err
		}
		name, life := try.Name, TokenLife
		if name == "" {
			name = "login"
		}
		if try.Remember {
			life = RememberedLife
		}
		life = cmp.Or(try.Life, life)
		if try.Challenge != "" {
			t, of, problem, err := loginTicket(v, try.Challenge, now)
			switch {
			case problem != nil || err != nil:
				return problem, err
			case of.ID != a.ID:
				return refusedPasskey(), nil
			}
			t.UsedAt, name, life = now, t.Name, t.Life
			ch.Tickets = append(ch.Tickets, t)
		}
		c.Attestation = webauthn.CredentialAttestation{}
		if key.Data, err = json.Marshal(c); err != nil {
			return nil, err
		}
		key.UsedAt, ch.DropTickets = now, now
		ch.Rows = append(ch.Rows, key)
		l, err = s.enter(v, ch, a, name, life, now, true)
		return nil, err
	})
	if err != nil {
		return Login{}, err
	}
	return l, nil
}
