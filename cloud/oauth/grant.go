package oauth

import (
	"cmp"
	"context"
	"math"
	"net/url"
	"slices"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/auth"
	"github.com/postern-io/postern/cloud/catalog"
)

// Asked is the profile of an offer that is no profile but just what was asked
// for.
const Asked = "asked"

const fullProfile = "full"

// Offer is something that a user can let a client do.
type Offer struct {
	Profile string   // of the catalogue, or Asked
	Scopes  []string // of the profile that the account holds; ["*"]: all
	First   bool     // what is offered first
}

// Offers are what an account can let a client do that asked for some scopes,
// least first. Exactly one of them is First: the smallest that holds what was
// asked for, or the everyday one. An account that may do nothing has none.
func Offers(a cloud.Account, asked []string) (out []Offer) {
	held := []string{"*"}
	if a.Type == cloud.ClientEmployee {
		held = a.Permissions
	}
	asked = within(asked, held)
	for _, p := range catalog.Profiles() {
		o := Offer{Profile: p, Scopes: within(catalog.ProfileScopes(p), held)}
		same := slices.IndexFunc(out, func(x Offer) bool { return slices.Equal(x.Scopes, o.Scopes) })
		switch {
		case len(o.Scopes) == 0:
		case same < 0:
			out = append(out, o)
		case p == everydayProfile:
			out[same] = o
		}
	}
	slices.SortStableFunc(out, func(x, y Offer) int { return cmp.Compare(size(x), size(y)) })
	if len(out) == 0 {
		return nil
	}
	first := slices.IndexFunc(out, func(o Offer) bool {
		return len(asked) > 0 && holdsAll(o.Scopes, asked) || len(asked) == 0 && o.Profile == everydayProfile
	})
	if first >= 0 && out[first].Profile == fullProfile && !slices.Contains(asked, "*") && !slices.Equal(asked, out[first].Scopes) {
		out, first = slices.Insert(out, 0, Offer{Profile: Asked, Scopes: asked}), 0 // nothing but everything holds it
	}
	out[max(first, 0)].First = true
	return out
}

// size orders offers; that of everything comes last.
func size(o Offer) int {
	if o.Profile == fullProfile {
		return math.MaxInt
	}
	return len(o.Scopes)
}

// within are the scopes of a list that are held.
func within(list, held []string) (out []string) {
	if slices.Contains(list, "*") {
		return slices.Clone(held)
	}
	for _, s := range list {
		if cloud.HasScope(held, s) {
			out = append(out, s)
		}
	}
	return out
}

func holdsAll(have, want []string) bool {
	return !slices.ContainsFunc(want, func(s string) bool { return s == "*" && !slices.Contains(have, "*") || !cloud.HasScope(have, s) })
}

// ErrNoOffer is the error of a choice that is not offered.
var ErrNoOffer = fail(InvalidRequest, "This is not offered.")

// Choice is what a user lets a client do: a profile of the Offers, and which of
// its writes wait for a person, one of cloud.AskLevels; empty is all of them.
type Choice struct{ Profile, Ask string }

// Allow gives a client what a user chose and returns where to send the user
// with the code. ErrNoOffer when the choice is none of the Offers that the
// account has by now, SECOND_FACTOR_SETUP_REQUIRED when its business has come to
// demand a second factor that neither it nor the login has.
func (s *Service) Allow(ctx context.Context, r *Request, login cloud.Token, choice Choice, ip string) (string, error) {
	id := login.AccountID
	profile, ask := choice.Profile, cmp.Or(choice.Ask, cloud.AskAll)
	if !slices.Contains(cloud.AskLevels(), ask) {
		return "", ErrNoOffer
	}
	now, code := time.Now().UTC(), auth.NewToken()
	err := s.cfg.Store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		a, err := v.Account(id)
		if err != nil {
			return nil, err
		}
		offers := Offers(a, r.Scopes)
		i := slices.IndexFunc(offers, func(o Offer) bool { return o.Profile == profile })
		if i < 0 || !a.Enabled {
			return nil, ErrNoOffer
		}
		if lacks, err := lacksFactor(v, a, login.Strong); err != nil {
			return nil, err
		} else if lacks {
			return nil, cloud.E(cloud.Forbidden, "SECOND_FACTOR_SETUP_REQUIRED")
		}
		n, err := v.NewID(cloud.OAuthGrantIDs)
		if err != nil {
			return nil, err
		}
		g := cloud.OAuthGrant{ID: cloud.OAuthGrantID(n), AccountID: id, ClientID: r.Client.ID, ClientName: cmp.Or(r.Client.Name, r.Host()), Host: r.Host(),
			Scopes: offers[i].Scopes, Audience: r.Resource, Policy: cloud.KeyPolicy{Approval: ask}, Strong: login.Strong, CreatedAt: now, ExpiresAt: now.Add(CodeLife),
			Code: cloud.OAuthCode{Hash: auth.Hash(code), RedirectURI: r.given, Challenge: r.challenge, ExpiresAt: now.Add(CodeLife)}}
		if profile != Asked {
			g.Profile = profile
		}
		ch := &cloud.Changes{OAuthChanges: cloud.OAuthChanges{OAuthGrants: []cloud.OAuthGrant{g}},
			AccountChanges: cloud.AccountChanges{Accounts: []cloud.Account{a}}, // a demand of the business at this moment meets the grant there
			AuditChanges: cloud.AuditChanges{Audits: []cloud.Audit{line(a.BusinessID, id, "agent_allowed", target(g), now,
				map[string]any{"client_id": g.ClientID, "name": g.ClientName, "host": g.Host, "profile": profile, "scopes": g.Scopes, "require_approval": ask, "resource": g.Audience, "ip": ip})}}}
		return ch, s.room(v, ch, r.Client, a, now)
	})
	if err != nil {
		return "", err
	}
	return r.answer(url.Values{"code": {code}}), nil
}

// lacksFactor reports whether an account has not the second factor that its business
// demands: the password alone let in. A strong login needs none.
func lacksFactor(v cloud.View, a cloud.Account, strong bool) (bool, error) {
	if strong || a.BusinessID == 0 {
		return false, nil
	}
	b, err := v.Business(a.BusinessID)
	if err != nil || !b.Settings.SecondFactor {
		return false, err
	}
	f, err := v.SecondFactor(a.ID)
	return !f.On(), err
}

// room notes that a client is used and ends the account's grants that are too
// many.
func (s *Service) room(v cloud.View, ch *cloud.Changes, c cloud.OAuthClient, a cloud.Account, now time.Time) error {
	if !byDocument(c.ID) {
		c, err := v.OAuthClient(c.ID)
		if err != nil {
			return err // it was removed in this moment
		}
		c.UsedAt = now
		ch.OAuthClients = []cloud.OAuthClient{c}
	}
	list, err := v.OAuthGrants(a.ID)
	list = slices.DeleteFunc(list, func(g cloud.OAuthGrant) bool { return !g.Live(now) })
	last := func(g cloud.OAuthGrant) time.Time { return latest(g.UsedAt, g.CreatedAt) }
	slices.SortFunc(list, func(x, y cloud.OAuthGrant) int { return cmp.Or(last(x).Compare(last(y)), cmp.Compare(x.ID, y.ID)) })
	for _, g := range list[:max(len(list)+1-maxGrants, 0)] {
		ch.OAuthEnds = append(ch.OAuthEnds, cloud.OAuthEnd{ID: g.ID, At: now})
		ch.Audits = append(ch.Audits, line(a.BusinessID, a.ID, "agent_grant_ended", target(g), now, map[string]any{"client_id": g.ClientID, "why": "too many"}))
	}
	return err
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// Refuse takes down that a user lets a client do nothing and returns where to
// send the user.
func (s *Service) Refuse(ctx context.Context, r *Request, a cloud.Account, ip string) (string, error) {
	now := time.Now().UTC()
	err := s.cfg.Store.Decide(ctx, 0, func(cloud.View) (*cloud.Changes, error) {
		return &cloud.Changes{AuditChanges: cloud.AuditChanges{Audits: []cloud.Audit{line(a.BusinessID, a.ID, "agent_refused", "", now,
			map[string]any{"client_id": r.Client.ID, "name": r.Client.Name, "host": r.Host(), "resource": r.Resource, "ip": ip})}}}, nil
	})
	if err != nil {
		return "", err
	}
	return r.answer(url.Values{"error": {AccessDenied}, "error_description": {"The user refused."}}), nil
}
