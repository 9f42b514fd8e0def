package account

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
)

// contractorAssignment is the family that only the platform switches.
const contractorAssignment = "contractor_assignment"

// smsMarketing has codes of its own while it is closed.
const smsMarketing = "sms_marketing"

// featureFamilies are what a business can have besides. All are off at first.
var featureFamilies = []string{"order_chat", "ops_agent", smsMarketing, contractorAssignment}

// Feature is a family of operations that a business may have.
type Feature struct {
	Family  string `json:"family"`
	Enabled bool   `json:"enabled"`
	State   string `json:"state" enum:"allowed,revoked"`
}

func featureOf(b cloud.Business, family string) cloud.Feature {
	if i := slices.IndexFunc(b.Settings.Features, func(f cloud.Feature) bool { return f.Family == family }); i >= 0 {
		return b.Settings.Features[i]
	}
	return cloud.Feature{Family: family}
}

func (s *Service) showFeature(f cloud.Feature) Feature {
	out := Feature{f.Family, f.Enabled && !f.Revoked && !s.unavailable(f.Family), "allowed"}
	if f.Revoked {
		out.State = "revoked"
	}
	return out
}

// FeaturesOutput lists every family.
type FeaturesOutput struct {
	Result   bool      `json:"result"`
	Features []Feature `json:"features"`
}

// ListFeatures lists the families of the caller's business.
func (s *Service) ListFeatures(ctx context.Context, c cloud.Caller, _ check.None) (out FeaturesOutput, err error) {
	err = s.cfg.Store.Look(ctx, func(v cloud.View) error {
		b, err := v.Business(c.Account.BusinessID)
		out = FeaturesOutput{Result: err == nil}
		for _, family := range featureFamilies {
			out.Features = append(out.Features, s.showFeature(featureOf(b, family)))
		}
		return err
	})
	return out, err
}

// SwitchInput switches a family of the caller's business.
type SwitchInput struct {
	Family  string `path:"family"`
	Enabled *bool  `json:"enabled" required:"true"`
}

// FeatureOutput shows a family.
type FeatureOutput struct {
	Result  bool    `json:"result"`
	Feature Feature `json:"feature"`
}

// Switch switches a family of the caller's business. Errors:
// FEATURE_NOT_FOUND, VALIDATION_FAILED, FORBIDDEN for what the platform
// switches, FEATURE_REVOKED.
func (s *Service) Switch(ctx context.Context, c cloud.Caller, in SwitchInput) (FeatureOutput, error) {
	return s.saveFeature(ctx, c, c.Account.BusinessID, in.Family, in.Enabled, func(f *cloud.Feature) error {
		switch {
		case in.Family == contractorAssignment:
			return cloud.E(cloud.Forbidden, "FORBIDDEN")
		case *in.Enabled && s.unavailable(in.Family):
			return s.closed(in.Family, *f)
		case f.Revoked && *in.Enabled:
			return cloud.E(cloud.Conflict, "FEATURE_REVOKED")
		}
		return nil
	})
}

// GrantInput switches a family of any business.
type GrantInput struct {
	Family     string           `path:"family"`
	BusinessID cloud.BusinessID `path:"business_id"`
	State      string           `json:"state" required:"true" enum:"allowed,revoked"`
	Enabled    *bool            `json:"enabled" required:"true"`
}

// Grant allows or revokes a family of any business, for the platform. Errors:
// FEATURE_NOT_FOUND, BUSINESS_NOT_FOUND, VALIDATION_FAILED.
func (s *Service) Grant(ctx context.Context, c cloud.Caller, in GrantInput) (FeatureOutput, error) {
	return s.saveFeature(ctx, c, in.BusinessID, in.Family, in.Enabled, func(f *cloud.Feature) error {
		f.Revoked = in.State == "revoked"
		return nil
	})
}

func (s *Service) saveFeature(ctx context.Context, c cloud.Caller, id cloud.BusinessID, family string, on *bool, edit func(*cloud.Feature) error) (out FeatureOutput, err error) {
	if !slices.Contains(featureFamilies, family) {
		return out, cloud.E(cloud.NotFound, "FEATURE_NOT_FOUND")
	}
	if on == nil {
		f := newFields()
		f.Say("enabled", check.MessageRequired)
		return out, f.Err()
	}
	now := time.Now().UTC()
	err = s.cfg.Store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		b, err := v.Business(id)
		if errors.Is(err, cloud.ErrNotFound) {
			return nil, cloud.E(cloud.NotFound, "BUSINESS_NOT_FOUND")
		} else if err != nil {
			return nil, err
		}
		f := featureOf(b, family)
		if err := edit(&f); err != nil {
			return nil, err
		}
		f.Enabled = *on
		others := slices.DeleteFunc(slices.Clone(b.Settings.Features), func(x cloud.Feature) bool { return x.Family == family })
		b.Settings.Features = append(others, f)
		out = FeatureOutput{Result: true, Feature: s.showFeature(f)}
		line := audit(c, now, "feature_"+family, "business", int64(id))
		line[0].BusinessID = id
		return &cloud.Changes{AccountChanges: cloud.AccountChanges{Businesses: []cloud.Business{b}}, AuditChanges: cloud.AuditChanges{Audits: line}}, nil
	})
	return out, err
}

// Gate is nil when a family is on for a business, else the error of its gate.
func (s *Service) Gate(ctx context.Context, id cloud.BusinessID, family string) error {
	if s.unavailable(family) {
		return s.closed(family, cloud.Feature{})
	}
	var f cloud.Feature
	err := s.cfg.Store.Look(ctx, func(v cloud.View) error {
		b, err := v.Business(id)
		f = featureOf(b, family)
		if errors.Is(err, cloud.ErrNotFound) {
			err = nil
		}
		return err
	})
	if err != nil || f.Enabled && !f.Revoked {
		return err
	}
	return s.closed(family, f)
}

func (s *Service) unavailable(family string) bool { return slices.Contains(s.cfg.Unavailable, family) }

// closed is the error of a family's gate (interface 14).
func (s *Service) closed(family string, f cloud.Feature) error {
	missing := s.unavailable(family)
	code := "FEATURE_DISABLED"
	switch {
	case family == contractorAssignment && missing:
		return &cloud.Error{Kind: cloud.Unavailable, Code: "MODULE_UNAVAILABLE", RetryAfter: 300}
	case family == contractorAssignment:
		return cloud.E(cloud.Forbidden, "MODULE_DISABLED")
	case family == smsMarketing && missing:
		code = "FEATURE_NOT_MIGRATED"
	case family == smsMarketing && f.Revoked:
		code = "FEATURE_REVOKED"
	}
	return &cloud.Error{Kind: cloud.Conflict, Code: code, Members: map[string]any{"feature_enabled": false}}
}
