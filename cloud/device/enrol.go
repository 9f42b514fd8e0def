package device

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/protocol/passcode"
	"github.com/postern-io/postern/protocol/wire"
)

// TokenLife is how long an enrolment token can be used.
const TokenLife = 24 * time.Hour

// Enrolled is what a cabinet keeps in its secrets file.
type Enrolled struct {
	DeviceCode   string           `json:"device_code"`
	DeviceSecret string           `json:"device_secret"`
	CodeSalt     []byte           `json:"code_salt"`
	CodeKey      []byte           `json:"code_key"`
	Keys         []wire.PinnedKey `json:"keys"`
	Brokers      []string         `json:"brokers"`
	Prefix       string           `json:"prefix"`
	// DeviceKey is the 32-byte Ed25519 seed of the device's own key, made where the
	// file is; nil: the device signs nothing.
	DeviceKey []byte `json:"device_key,omitempty"`
	// ReleaseKeys are those that sign updates of the cabinet's agent.
	ReleaseKeys []wire.PinnedKey `json:"release_keys,omitempty"`
	// CloudURL is the cloud's public address, from which updates are fetched.
	CloudURL string `json:"cloud_url,omitempty"`
}

// Secrets are a device's own, made by the cloud.
type Secrets struct {
	Secret    string // of the login
	Salt, Key []byte // of the code verifiers
}

// NewSecrets makes random secrets.
func NewSecrets() Secrets {
	var b [32 + passcode.SaltSize + passcode.KeySize]byte
	_, _ = rand.Read(b[:]) // never fails
	return Secrets{Secret: base64.RawURLEncoding.EncodeToString(b[:32]), Salt: b[32 : 32+passcode.SaltSize], Key: b[32+passcode.SaltSize:]}
}

// tokenLetters are those of Crockford's base32, in which no two look alike.
var tokenLetters = base32.NewEncoding("0123456789ABCDEFGHJKMNPQRSTVWXYZ").WithPadding(base32.NoPadding)

const tokenGroup = 5 // characters between dashes

// NewToken makes an enrolment token and the row that admits it: 128 bits as 26
// letters and digits in groups, for people who type it.
func NewToken(d cloud.DeviceID, now time.Time) (string, cloud.EnrolmentToken) {
	var b [16]byte
	_, _ = rand.Read(b[:])
	plain := tokenLetters.EncodeToString(b[:])
	var groups []string
	for g := range slices.Chunk([]byte(plain), tokenGroup) {
		groups = append(groups, string(g))
	}
	return strings.Join(groups, "-"), cloud.EnrolmentToken{Hash: sha256.Sum256([]byte(plain)), DeviceID: d, ExpiresAt: now.Add(TokenLife)}
}

// typed is a token as it is kept, however it was typed: case, dashes and spaces
// say nothing, and a letter that looks like a digit is that digit.
var typed = strings.NewReplacer("-", "", " ", "", "O", "0", "I", "1", "L", "1")

// findToken finds the row of a token. Tokens of former versions, which had small
// letters too, are found as they are.
func findToken(ctx context.Context, tokens Enrolments, token string) (cloud.EnrolmentToken, error) {
	row, err := tokens.FindEnrolment(ctx, sha256.Sum256([]byte(typed.Replace(strings.ToUpper(token)))))
	if errors.Is(err, cloud.ErrNotFound) {
		row, err = tokens.FindEnrolment(ctx, sha256.Sum256([]byte(token)))
	}
	return row, err
}

// Enrolments finds tokens.
type Enrolments interface {
	FindEnrolment(ctx context.Context, hash [32]byte) (cloud.EnrolmentToken, error)
}

// Keep runs a decision about a device that is given new secrets, and writes into
// the same transaction what follows for its codes.
type Keep func(ctx context.Context, d cloud.DeviceID, made Secrets, decide func(cloud.View) (*cloud.Changes, error)) error

// Enrolment is what a device shows to be given its secrets.
type Enrolment struct {
	Code, Token string
	// PublicKey is the device's own, 32 bytes Ed25519; nil: it signs nothing. It
	// replaces the one of an earlier enrolment.
	PublicKey []byte
}

// Enrol gives a device its secrets, once, for a token that is bound to its
// code. A connection with former ones is closed. Errors: TOKEN_INVALID, and
// VALIDATION_FAILED for a public key of another length.
func (s logins) Enrol(ctx context.Context, tokens Enrolments, e Enrolment, keep Keep) (Secrets, error) {
	code, token := e.Code, e.Token
	if n := len(e.PublicKey); n != 0 && n != ed25519.PublicKeySize {
		return Secrets{}, &cloud.Error{Kind: cloud.Invalid, Code: "VALIDATION_FAILED",
			Fields: map[string][]string{"public_key": {fmt.Sprintf("The key has %d bytes; an Ed25519 public key has 32.", n)}}}
	}
	invalid := cloud.E(cloud.Unauthenticated, "TOKEN_INVALID")
	row, err := findToken(ctx, tokens, token)
	if errors.Is(err, cloud.ErrNotFound) {
		return Secrets{}, invalid
	}
	if err != nil {
		return Secrets{}, fmt.Errorf("find enrolment token: %w", err)
	}
	d, err := s.cfg.Store.FindDeviceByCode(ctx, code)
	now := time.Now().UTC()
	if err != nil || d.ID != row.DeviceID || !row.UsedAt.IsZero() || !now.Before(row.ExpiresAt) {
		return Secrets{}, invalid
	}
	// A token that was made before the device last enrolled was lost and replaced:
	// its finder must not enrol in the device's place.
	if made := row.ExpiresAt.Add(-TokenLife); made.Before(d.EnrolledAt) || made.Before(d.CutOffAt) {
		return Secrets{}, invalid
	}
	made := NewSecrets()
	err = keep(ctx, d.ID, made, func(v cloud.View) (*cloud.Changes, error) {
		dev, err := v.Device(d.ID)
		if err != nil {
			return nil, err
		}
		if !dev.EnrolledAt.Equal(d.EnrolledAt) || !dev.CutOffAt.Equal(d.CutOffAt) {
			return nil, invalid // the same token, at the same time, or cut off meanwhile
		}
		if !dev.RetiredAt.IsZero() {
			return nil, invalid
		}
		stolen := dev.Disabled && dev.IsCutOff() // and staff made the token after the report
		dev.SecretMAC, dev.EnrolledAt = SecretMAC(s.cfg.ServerKey, dev.Code, made.Secret), now
		var faults []cloud.DeviceException
		if stolen {
			dev.Disabled = false
			faults = append(faults, cloud.DeviceException{DeviceID: d.ID, Type: cloud.DevReportedStolen, ClosedAt: now})
		}
		rekeyed := !bytes.Equal(dev.UpKey, e.PublicKey)
		dev.UpKey = e.PublicKey
		session, err := v.Session(d.ID)
		if ignoreNotFound(err) != nil {
			return nil, err
		}
		session.DeviceID, session.Online = d.ID, false
		session.Generation++ // a connection with the former secret, on whichever node, counts for nothing
		if rekeyed {         // what another key signed is no record of this one, whose starts may count from 1
			session.Instance, session.Instances = "", nil
		}
		used := row
		used.UsedAt = now
		return &cloud.Changes{DeviceChanges: cloud.DeviceChanges{Devices: []cloud.Device{dev}, Sessions: []cloud.Session{session}, DeviceFaults: faults, Enrolments: []cloud.EnrolmentToken{used}},
			AuditChanges: cloud.AuditChanges{Audits: []cloud.Audit{{BusinessID: dev.BusinessID, At: now, Actor: "device:" + dev.Code, Action: "enrolled", Target: dev.Code}}}}, nil
	})
	if err != nil {
		return Secrets{}, err
	}
	s.sender.Kick(d.Code)
	return made, nil
}
