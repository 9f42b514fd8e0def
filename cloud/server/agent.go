package server

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/approval"
	"github.com/postern-io/postern/cloud/catalog"
	agentdocs "github.com/postern-io/postern/cloud/docs/agent"
	"github.com/postern-io/postern/cloud/docs/developer"
	"github.com/postern-io/postern/cloud/graphql"
	"github.com/postern-io/postern/cloud/locale"
	"github.com/postern-io/postern/cloud/mcp"
	"github.com/postern-io/postern/cloud/oauth"
	"github.com/postern-io/postern/cloud/rest"
	"github.com/postern-io/postern/cloud/tool"
	"github.com/postern-io/postern/cloud/webhook/sender"
)

// agentBody bounds a message to a tool server (mcp-wire 1).
const agentBody = 4 << 20

// toolServers are the two tool servers, each at both of its addresses.
func (s *Server) toolServers(approvals *approval.Service, graph *graphql.Server, version string) ([]rest.Mount, error) {
	tools := tool.New(tool.Config{Catalog: s.Catalog, Pipeline: s.line, Store: s.Store, Approvals: waiting{approvals, s}, GraphQL: documents{graph}, DigestKey: s.Keys.digests(), PerMinute: s.rates.tools, Log: s.log})
	s.tools = tools
	describes, err := agentdocs.New(agentdocs.Config{Catalog: s.Catalog, Tools: tools.Tools, Versions: tool.Versions, SDL: graph.Schema(), Fields: graph.Fields(), Version: version, About: func(scope string) string { return locale.Scope(locale.English, scope) }})
	if err != nil {
		return nil, err
	}
	_, err = developer.New(developer.Config{Catalog: s.Catalog, Events: HookEvents(), Waits: sender.Waits(), Fields: graph.Fields(), Versions: tool.Versions})
	if err != nil {
		return nil, err
	}
	failures := prometheus.NewCounter(prometheus.CounterOpts{Name: "postern_mcp_internal_errors_total", Help: "Messages to the tool servers that were answered with an internal error."})
	s.Metrics.MustRegister(failures)
	var public []string
	if s.cfg.BaseURL != "" {
		public = []string{oauth.Canonical(s.cfg.BaseURL)}
	}
	mounts := documented(describes)
	for _, x := range catalog.ToolServers() {
		conf := mcp.Config{Name: "postern-" + x.ID, Title: "Postern: " + x.Name, Version: version, Instructions: tool.Instructions(x.ID), Tools: tools.Tools(x.ID),
			Key: s.Keys.agents(x.ID), Admit: tools.Admit(x.ID), Public: public, Origins: s.cfg.Origins, RequestID: rest.RequestID, Log: s.log, Failures: failures}
		if s.cfg.WrapTools != nil {
			s.cfg.WrapTools(&conf)
		}
		engine, err := mcp.New(conf)
		if err != nil {
			return nil, err
		}
		s.engines = append(s.engines, engine)
		for _, path := range []string{x.Path, strings.TrimPrefix(x.Path, "/api")} {
			mounts = append(mounts, rest.Mount{Path: path, MaxBody: agentBody, Slow: true, Handle: engine.Handle, TooLarge: engine.TooLarge})
		}
	}
	return mounts, nil
}

// documented mounts what programs read to find out what there is.
func documented(d *agentdocs.Service) []rest.Mount {
	var mounts []rest.Mount
	for _, x := range d.Documents() {
		mounts = append(mounts, rest.Mount{Path: x.Path, Document: func(q rest.DocumentQuery) (rest.Document, error) {
			f, err := x.Get(q.Base, q.Value)
			return rest.Document(f), err
		}})
	}
	return mounts
}

// agents seals what a tool server gives its callers to bring back.
func (k Keys) agents(server string) []byte {
	m := hmac.New(sha256.New, k.Server)
	m.Write([]byte("states of the tool server " + server))
	return m.Sum(nil)
}

// digests keys the digests of previews, the same on every node.
func (k Keys) digests() []byte {
	m := hmac.New(sha256.New, k.Server)
	m.Write([]byte("digests of previews"))
	return m.Sum(nil)
}

// waiting is what tools need of approvals.
type waiting struct {
	*approval.Service
	server *Server
}

func (w waiting) Propose(ctx context.Context, c cloud.Caller, a cloud.Approval, hours int) (cloud.ApprovalID, any, error) {
	out, err := w.Service.Propose(ctx, c, approval.ProposeInput{Server: a.Server, Tool: a.Tool, Arguments: a.Arguments, Summary: a.Summary, Preview: a.Preview, Marks: a.Marks, Reason: a.Reason,
		Risk: a.Risk, Scopes: a.Scopes, TokenName: a.TokenName, Token: a.Token, OwnerDecides: a.OwnerDecides, Hours: hours})
	return out.Approval.ApprovalID, out.Approval, err
}

func (w waiting) Find(ctx context.Context, c cloud.Caller, id cloud.ApprovalID) (a cloud.Approval, err error) {
	err = w.server.Store.Look(ctx, func(v cloud.View) error {
		a, err = v.Approval(c.Account.BusinessID, id)
		return err
	})
	if errors.Is(err, cloud.ErrNotFound) {
		err = cloud.E(cloud.NotFound, "APPROVAL_NOT_FOUND")
	}
	return a, err
}

// documents is GraphQL as tools run it.
type documents struct{ *graphql.Server }

func (d documents) Run(ctx context.Context, body []byte, key string, w catalog.Who) ([]byte, bool) {
	out := d.Serve(ctx, graphql.Request{Body: body, Key: key, Always: key != "", Tool: true, Who: w})
	return out.Body, out.Replayed
}
