// Package setup brings a deployment from nothing to its first cabinet: the
// one-time address of the first start, the first business with its
// administrator, operators of the platform, and cabinets with their enrolment
// tokens.
//
// The one-time address holds 128 bits that are derived from the deployment's
// keys and a random value in the database, so that every node shows the same one
// and neither the database nor the keys alone give it away. It is good for an
// hour and ends with the first administrator, made here or elsewhere: the
// decision that makes one here reads and writes the one row that all nodes share.
// The command line needs no such address: its user holds the keys.
//
// Passwords and tokens are in no error, log or audit line. Safe for concurrent
// use.
package setup

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/protocol/wire"
)

// AddressLife is how long a one-time address is good.
const AddressLife = time.Hour

const (
	nonceSize = 32
	tokenSize = 16 // bytes of the one-time value
)

// Store is what this package needs of the database.
type Store interface {
	Look(ctx context.Context, fn func(cloud.View) error) error
	Decide(ctx context.Context, d cloud.DeviceID, fn func(cloud.View) (*cloud.Changes, error)) error
	FindAccountsByEmail(ctx context.Context, email string) ([]cloud.Account, error)
	FindDeviceByCode(ctx context.Context, code string) (cloud.Device, error)
	ListDevices(ctx context.Context, b cloud.BusinessID, after cloud.DeviceID, limit int) ([]cloud.Device, error)
}

// Config is what New needs.
type Config struct {
	Store Store
	// Key derives one-time values; it is the deployment's own.
	Key []byte
	// KeysDigest names the keys file, 32 bytes: see Claim.
	KeysDigest []byte
	// Pinned are the public keys that cabinets trust.
	Pinned []wire.PinnedKey
	// NewToken makes the enrolment token of a device and the row that admits it.
	NewToken func(d cloud.DeviceID, now time.Time) (token string, row cloud.EnrolmentToken)
}

// Service sets up.
type Service struct{ cfg Config }

// New builds the service.
func New(cfg Config) *Service { return &Service{cfg} }

var (
	// ErrDone is returned when the first administrator exists already.
	ErrDone = errors.New("the deployment is set up: an administrator exists")
	// ErrToken is returned for a one-time value that is not, or no longer, good.
	ErrToken = errors.New("the one-time address is not valid")
	// ErrKeys is returned when the database belongs to another keys file.
	ErrKeys = errors.New("the database belongs to other keys")
)

// Claim binds the database to the deployment's keys, and reports whether it was bound to none
// before. Error: ErrKeys when it is bound to others, with which alone its secrets can be read.
func (s *Service) Claim(ctx context.Context) (first bool, err error) {
	err = s.cfg.Store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		first = false
		row, err := v.Setup()
		switch {
		case err != nil:
			return nil, err
		case row.KeysDigest == nil:
			first, row.KeysDigest = true, s.cfg.KeysDigest
			return &cloud.Changes{SetupChanges: cloud.SetupChanges{Setup: &row}}, nil
		case !bytes.Equal(row.KeysDigest, s.cfg.KeysDigest):
			return nil, ErrKeys
		}
		return nil, nil
	})
	return first && err == nil, err
}

// IssueToken gives the one-time value that is good now, or a new one when the last has
// ended, and says until when. Error: ErrDone.
func (s *Service) IssueToken(ctx context.Context) (token string, until time.Time, err error) {
	err = s.cfg.Store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		row, err := openRow(v)
		if err != nil {
			return nil, err
		}
		now := time.Now().UTC()
		if row.Nonce != nil && now.Before(row.ExpiresAt) {
			token, until = s.token(row.Nonce), row.ExpiresAt
			return nil, nil
		}
		row.Nonce = make([]byte, nonceSize)
		_, _ = rand.Read(row.Nonce) // never fails
		row.ExpiresAt = now.Add(AddressLife)
		token, until = s.token(row.Nonce), row.ExpiresAt
		return &cloud.Changes{SetupChanges: cloud.SetupChanges{Setup: &row}}, nil
	})
	return token, until, err
}

// CheckToken says whether a one-time value is good now. Errors: ErrDone, ErrToken.
func (s *Service) CheckToken(ctx context.Context, token string) error {
	return s.cfg.Store.Look(ctx, func(v cloud.View) error {
		row, err := openRow(v)
		if err != nil {
			return err
		}
		return s.checkToken(row, token)
	})
}

// openRow reads the row of a deployment that has no administrator yet.
func openRow(v cloud.View) (cloud.Setup, error) {
	row, err := v.Setup()
	if err != nil {
		return row, fmt.Errorf("read set-up row: %w", err)
	}
	done, err := v.HasAdministrator()
	if err == nil && done {
		err = ErrDone
	}
	return row, err
}

func (s *Service) checkToken(row cloud.Setup, token string) error {
	if row.Nonce == nil || !time.Now().Before(row.ExpiresAt) || !hmac.Equal([]byte(s.token(row.Nonce)), []byte(token)) {
		return ErrToken
	}
	return nil
}

func (s *Service) token(nonce []byte) string {
	m := hmac.New(sha256.New, s.cfg.Key)
	m.Write([]byte("postern/1/set-up"))
	m.Write(nonce)
	return base64.RawURLEncoding.EncodeToString(m.Sum(nil)[:tokenSize])
}
