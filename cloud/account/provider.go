package account

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
	"github.com/postern-io/postern/protocol/otep"
)

// Provider is a carrier or delivery partner of the business.
type Provider struct {
	ID              cloud.ProviderID `json:"id"`
	Code            string           `json:"code"`
	Name            string           `json:"name"`
	Services        []string         `json:"services"`
	SourceType      string           `json:"source_type"`
	Scope           string           `json:"scope"`
	Authority       string           `json:"authority"`
	LivemodeAllowed bool             `json:"livemode_allowed"`
	CreatedAt       *string          `json:"created_at"`
}

func showProvider(p cloud.Provider, l *time.Location) Provider {
	return Provider{ID: p.ID, Code: p.Code, Name: p.Name, Services: orEmpty(p.Services), SourceType: p.SourceType, Scope: p.Scope, Authority: cmp.Or(p.Authority, cloud.AuthorityMoves),
		LivemodeAllowed: p.LivemodeAllowed, CreatedAt: cloud.Stamp(p.CreatedAt, l)}
}

// ProvidersInput asks for a part of the business's providers.
type ProvidersInput struct{ PageInput }

// ProvidersOutput lists providers.
type ProvidersOutput struct {
	Result bool `json:"result"`
	check.PageOutput
	Providers []Provider `json:"providers"`
}

// ListProviders lists the providers of the caller's business.
func (s *Service) ListProviders(ctx context.Context, c cloud.Caller, in ProvidersInput) (out ProvidersOutput, err error) {
	page, err := in.Sorted(in, "id", "code", "name", "created_at")
	if err != nil {
		return out, err
	}
	err = s.cfg.Store.Look(ctx, func(v cloud.View) error {
		b, err := businessOf(v, c)
		if err != nil {
			return err
		}
		list, listed, err := v.Providers(b.ID, page)
		out = ProvidersOutput{Result: true, PageOutput: in.Output(in, listed), Providers: []Provider{}}
		for _, p := range list {
			out.Providers = append(out.Providers, showProvider(p, b.Location()))
		}
		return err
	})
	return out, err
}

// ByProvider names a provider.
type ByProvider struct {
	ID cloud.ProviderID `path:"id"`
}

// ProviderOutput shows a provider.
type ProviderOutput struct {
	Result   bool     `json:"result"`
	Provider Provider `json:"provider"`
}

// FindProvider shows a provider of the caller's business. Error:
// PROVIDER_NOT_FOUND.
func (s *Service) FindProvider(ctx context.Context, c cloud.Caller, in ByProvider) (out ProviderOutput, err error) {
	err = s.cfg.Store.Look(ctx, func(v cloud.View) error {
		b, err := businessOf(v, c)
		if err != nil {
			return err
		}
		p, err := providerOf(v, c, in.ID)
		out = ProviderOutput{Result: err == nil, Provider: showProvider(p, b.Location())}
		return err
	})
	return out, err
}

func providerOf(v cloud.View, c cloud.Caller, id cloud.ProviderID) (cloud.Provider, error) {
	p, err := v.Provider(id)
	if errors.Is(err, cloud.ErrNotFound) || err == nil && p.BusinessID != c.Account.BusinessID {
		return cloud.Provider{}, cloud.E(cloud.NotFound, "PROVIDER_NOT_FOUND")
	}
	return p, err
}

// ProviderInput makes or changes a provider. Members that are absent stay as
// they are.
type ProviderInput struct {
	Code            *string   `json:"code" pattern:"^[a-z0-9][a-z0-9._-]{0,63}$" example:"swift-lockers" doc:"Required of a new one"`
	Name            *string   `json:"name" max:"120" doc:"Required of a new one"`
	Services        *[]string `json:"services" max:"100" item_enum:"locker,third_party,otep"`
	SourceType      *string   `json:"source_type" doc:"What its events come from, as in OTEP's source.type; partner when absent"`
	Scope           *string   `json:"scope" enum:"own,all" doc:"Whose timelines it may add to and pull: shipments handed to it, or all of the business; own when absent"`
	Authority       *string   `json:"authority" enum:"moves,reports" doc:"Whether its events may take over orders that rest with the business: moves, or reports, which are shown and count for nothing until an order is handed to it; moves when absent"`
	LivemodeAllowed *bool     `json:"livemode_allowed" doc:"false when absent"`
}

// check looks at everything that can be wrong; the source type gets its
// registered name.
func (in *ProviderInput) check(fresh bool) error {
	f := newFields()
	f.filled("code", in.Code, fresh)
	f.filled("name", in.Name, fresh)
	f.filled("scope", in.Scope, false)
	f.filled("authority", in.Authority, false)
	if in.SourceType != nil {
		kind, _, ok := otep.SourceType(*in.SourceType)
		if !ok {
			f.Say("source_type", check.MessageForm, "partner")
		}
		in.SourceType = &kind
	}
	return f.Err()
}

// AddProvider makes a provider. Error: VALIDATION_FAILED.
func (s *Service) AddProvider(ctx context.Context, c cloud.Caller, in ProviderInput) (ProviderOutput, error) {
	if err := in.check(true); err != nil {
		return ProviderOutput{}, err
	}
	return s.saveProvider(ctx, c, in, "provider_made", func(v cloud.View, now time.Time) (cloud.Provider, error) {
		id, err := v.NewID(cloud.ProviderIDs)
		return cloud.Provider{ID: cloud.ProviderID(id), BusinessID: c.Account.BusinessID, SourceType: "partner", Scope: cloud.ScopeOwn, Authority: cloud.AuthorityMoves, CreatedAt: now}, err
	})
}

// ChangeProviderInput changes a provider.
type ChangeProviderInput struct {
	ID cloud.ProviderID `path:"id"`
	ProviderInput
}

// ChangeProvider changes a provider. Errors: PROVIDER_NOT_FOUND,
// VALIDATION_FAILED.
func (s *Service) ChangeProvider(ctx context.Context, c cloud.Caller, in ChangeProviderInput) (ProviderOutput, error) {
	if err := in.check(false); err != nil {
		return ProviderOutput{}, err
	}
	return s.saveProvider(ctx, c, in.ProviderInput, "provider_changed", func(v cloud.View, _ time.Time) (cloud.Provider, error) { return providerOf(v, c, in.ID) })
}

func (s *Service) saveProvider(ctx context.Context, c cloud.Caller, in ProviderInput, action string, find func(cloud.View, time.Time) (cloud.Provider, error)) (out ProviderOutput, err error) {
	now := time.Now().UTC()
	err = s.cfg.Store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		b, err := businessOf(v, c)
		if err != nil {
			return nil, err
		}
		p, err := find(v, now)
		if err != nil {
			return nil, err
		}
		set(&p.Code, in.Code)
		set(&p.Name, in.Name)
		set(&p.SourceType, in.SourceType)
		set(&p.Scope, in.Scope)
		set(&p.Authority, in.Authority)
		set(&p.LivemodeAllowed, in.LivemodeAllowed)
		if in.Services != nil {
			p.Services = distinct(*in.Services)
		}
		out = ProviderOutput{Result: true, Provider: showProvider(p, b.Location())}
		ch := &cloud.Changes{AccountChanges: cloud.AccountChanges{Providers: []cloud.Provider{p}}, AuditChanges: cloud.AuditChanges{Audits: audit(c, now, action, "provider", int64(p.ID))}, Answer: out}
		if s.cfg.Mocks == nil {
			return ch, nil
		}
		made, err := s.cfg.Mocks.Make(v, p, now)
		if err != nil {
			return nil, err
		}
		ch.Join(made)
		return ch, nil
	})
	if errors.Is(err, cloud.ErrExists) {
		f := newFields()
		f.Add("code", "The code is in use.")
		err = f.Err()
	}
	if err != nil {
		return ProviderOutput{}, err
	}
	return out, nil
}
