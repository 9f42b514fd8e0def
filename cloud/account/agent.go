package account

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
)

// Agent is a program that the caller let act for the account.
type Agent struct {
	ID         cloud.OAuthGrantID `json:"id"`
	Name       string             `json:"name" doc:"As the program calls itself"`
	ClientID   string             `json:"client_id"`
	Host       string             `json:"redirect_host" doc:"Where its logins are answered to"`
	Profile    *string            `json:"profile" doc:"null: just what it asked for"`
	Scopes     []string           `json:"scopes" doc:"What it may, of what the account may"`
	Resource   string             `json:"resource" doc:"The address at which it may"`
	Approval   string             `json:"require_approval" doc:"never, high or all: which of its writes wait for a person"`
	CreatedAt  *string            `json:"created_at"`
	LastUsedAt *string            `json:"last_used_at" doc:"When it last got a token"`
	ExpiresAt  *string            `json:"expires_at" doc:"Unless it gets another token by then"`
}

func showAgent(g cloud.OAuthGrant, l *time.Location) Agent {
	return Agent{ID: g.ID, Name: g.ClientName, ClientID: g.ClientID, Host: g.Host, Profile: cloud.OrNull(g.Profile), Scopes: orEmpty(g.Scopes), Resource: g.Audience, Approval: cmp.Or(g.Policy.Approval, cloud.AskNever),
		CreatedAt: cloud.Stamp(g.CreatedAt, l), LastUsedAt: cloud.Stamp(g.UsedAt, l), ExpiresAt: cloud.Stamp(g.ExpiresAt, l)}
}

// AgentsInput asks for a part of the caller's agents.
type AgentsInput struct{ PageInput }

// AgentsOutput lists agents that may still act.
type AgentsOutput struct {
	Result bool `json:"result"`
	check.PageOutput
	Agents []Agent `json:"agents"`
}

// ListAgents lists the programs that may still act for the caller, by id.
func (s *Service) ListAgents(ctx context.Context, c cloud.Caller, in AgentsInput) (out AgentsOutput, err error) {
	page, err := in.Sorted(in, "id")
	if err != nil {
		return out, err
	}
	now := time.Now()
	err = s.cfg.Store.Look(ctx, func(v cloud.View) error {
		b, err := businessOf(v, c)
		if err != nil {
			return err
		}
		list, err := v.OAuthGrants(c.Account.ID)
		if err != nil {
			return err
		}
		list = slices.DeleteFunc(list, func(g cloud.OAuthGrant) bool { return !g.Live(now) || g.UsedAt.IsZero() })
		slices.Reverse(list)
		part, listed, err := cloud.PartOf(list, page, func(g cloud.OAuthGrant) cloud.OAuthGrantID { return g.ID })
		out = AgentsOutput{Result: true, PageOutput: in.Output(in, listed), Agents: []Agent{}}
		for _, g := range part {
			out.Agents = append(out.Agents, showAgent(g, b.Location()))
		}
		return err
	})
	return out, err
}

// ByAgent names an agent of the caller.
type ByAgent struct {
	ID cloud.OAuthGrantID `path:"id"`
}

// EndAgent takes back what a program may, at once. Error: AGENT_NOT_FOUND.
func (s *Service) EndAgent(ctx context.Context, c cloud.Caller, in ByAgent) (Done, error) {
	now := time.Now().UTC()
	err := s.cfg.Store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		g, err := v.OAuthGrant(in.ID)
		if errors.Is(err, cloud.ErrNotFound) || err == nil && (g.AccountID != c.Account.ID || !g.Live(now)) {
			return nil, cloud.E(cloud.NotFound, "AGENT_NOT_FOUND")
		}
		if err != nil {
			return nil, err
		}
		return &cloud.Changes{OAuthChanges: cloud.OAuthChanges{OAuthEnds: []cloud.OAuthEnd{{ID: g.ID, At: now}}}, AuditChanges: cloud.AuditChanges{Audits: audit(c, now, "agent_grant_ended", "agent", int64(g.ID))}}, nil
	})
	return Done{err == nil}, err
}
