// Package platform is what operators of the platform do: businesses with their
// limits, suspension, and passes by which an operator acts inside a business for
// some hours, seen and ended by the business's administrators.
//
// Every change is one transaction with an audit line of the platform, and one of
// the business where it concerns it. Operators belong to no business: without a
// pass every operation of a business is closed to them, which is the catalogue's
// matter. Safe for concurrent use.
package platform

import (
	"context"
	"errors"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
)

// Store is what this package needs of the database.
type Store interface {
	Decide(ctx context.Context, d cloud.DeviceID, fn func(cloud.View) (*cloud.Changes, error)) error
	Look(ctx context.Context, fn func(cloud.View) error) error
}

// Config is what New needs.
type Config struct {
	Store          Store
	InvitationPath string // of the page behind an invitation's link
	// MailBase is what links in mails begin with, without a slash at the end; empty:
	// there is no mail server.
	MailBase string
	Jobs     Jobs // exports and removals
	// Over reports whether an export has gone through all that a business has.
	Over     func(cloud.BusinessJob) bool
	Archives Archives // kept a week
	// Open opens an uploaded file by the path of its row, with its size. Error:
	// cloud.ErrNotFound. nil: exports list uploaded files without their contents.
	Open      func(ctx context.Context, path string) (io.ReadCloser, int64, error)
	DigestKey []byte // of what a removal is shown to remove
}

// Service is the feature.
type Service struct {
	cfg  Config
	wake chan struct{}
	held sync.Map // exports that this node has, by id
}

// New builds the service.
func New(cfg Config) *Service { return &Service{cfg: cfg, wake: make(chan struct{}, 1)} }

// Done is the answer of what has nothing to say.
type Done struct {
	Result bool `json:"result"`
}

// PageInput asks for a part of a list, newest first.
type PageInput struct{ check.Keyset }

// found finds a business. Error: BUSINESS_NOT_FOUND.
func found(v cloud.View, id cloud.BusinessID) (cloud.Business, error) {
	b, err := v.Business(id)
	if errors.Is(err, cloud.ErrNotFound) {
		return b, cloud.E(cloud.NotFound, "BUSINESS_NOT_FOUND")
	}
	return b, err
}

// lines are the audit lines of what an operator did about a business: one of the
// platform, whose business is 0, and one of the business.
func lines(c cloud.Caller, b cloud.BusinessID, now time.Time, action, target string) []cloud.Audit {
	a := cloud.Audit{At: now, Actor: c.Account.ID.Actor(), Action: action, Target: target, Detail: "{}"}
	own := a
	own.BusinessID = b
	return []cloud.Audit{a, own}
}

func target(kind string, id int64) string { return kind + ":" + strconv.FormatInt(id, 10) }

// blank refuses a reason that says nothing.
func blank(reason string) error {
	if strings.TrimSpace(reason) != "" {
		return nil
	}
	f := check.Fields{}
	f.Say("reason", check.MessageRequired)
	return f.Err()
}

func moment() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }
