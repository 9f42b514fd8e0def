package developer

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/catalog"
	otepdocs "github.com/postern-io/postern/cloud/docs/otep"
	"github.com/postern-io/postern/cloud/locale"
	"github.com/postern-io/postern/protocol/otep"
)

// tools are those of the handbook.
func (s *Service) tools() []catalog.Tool {
	row := func(name, title, description, arguments string, run func(c cloud.Caller, given catalog.Given) (any, error)) catalog.Tool {
		return catalog.Tool{Name: name, Title: title, Servers: []string{catalog.DeveloperServer}, Category: "developer", Description: description, Arguments: catalog.Arguments(arguments),
			Run: func(_ context.Context, a catalog.Agent, given catalog.Given) (any, error) {
				return run(a.Caller(), given)
			}}
	}
	return []catalog.Tool{
		row("get_integration_guide", "Get integration guide", "Integration guide by topic, as Markdown with calls to copy; auth also as a program in go, php or python. Use get_api_endpoints for exact shapes.", `
			topic overview|auth|orders|labels|tracking|routes|graphql|mcp|errors · default overview
			language text · e.g. go, php, python
			lang text · human language`, s.integration),
		row("get_otep_guide", "Get OTEP guide", "OTEP guide: overview, specification, codebook, schema or examples. Gives Markdown, or JSON in data; check a timeline with validate_otep_payload.", `
			section overview|spec|codebook|schema|examples · default overview
			lang text`, s.otep),
		row("get_webhook_guide", "Get webhook guide", "Webhook guide by topic, or the body of one event as it is sent. Use verify_webhook_signature for a webhook that you received.", `
			topic overview|events|signatures|retries|providers|ohp|asyncapi · default overview
			event text · one event type
			lang text`, s.webhooks),
		row("verify_webhook_signature", "Verify webhook signature", "Checks a received signature with the caller's secret; nothing is stored. Says why one is refused and what was signed; get_webhook_guide tells how it is made.", `
			scheme! signature|signature_v2|provider|ohp|standard_webhooks
			raw_body! text · exact bytes as text
			secret! text · used once, never logged
			signature! text · header value
			timestamp text · needed except for signature
			delivery_id text · for provider
			webhook_id text · for standard_webhooks
			tolerance_seconds integer 0..3600 · default 300`, verify),
	}
}

// answer is a guide.
type answer struct {
	Result   bool            `json:"result"`
	Topic    string          `json:"topic"`
	Lang     string          `json:"lang"`               // of the text
	Language string          `json:"language,omitempty"` // of the programs in it
	Markdown *string         `json:"markdown"`           // null: the guide is data
	Data     json.RawMessage `json:"data,omitempty"`
	Sample   json.RawMessage `json:"sample,omitempty"` // body of the event
}

// reader is the language that is asked for; the error says which there are.
func reader(c cloud.Caller, given catalog.Given) (string, error) {
	lang := cmp.Or(given.Text("lang"), c.Language, locale.English)
	if !locale.Known(lang) {
		return "", unknown("lang", languages())
	}
	return lang, nil
}

// unknown says that a value is none of ours, and which are.
func unknown(argument string, known []string) error {
	return &cloud.Error{Kind: cloud.Invalid, Code: "VALIDATION_FAILED", Fields: map[string][]string{argument: {fmt.Sprintf("%s must be one of %s.", argument, strings.Join(known, ", "))}}, Details: map[string]any{argument: known}}
}

// programs are the languages that worked programs are there in.
var programs = []string{"go", "php", "python"}

func (s *Service) integration(c cloud.Caller, given catalog.Given) (any, error) {
	lang, err := reader(c, given)
	if err != nil {
		return nil, err
	}
	topic, language := cmp.Or(given.Text("topic"), "overview"), "curl"
	if topic == "auth" && slices.Contains(programs, given.Text("language")) {
		language = given.Text("language")
	}
	text, err := s.write("integration_"+topic, view{Base: c.BaseURL, Lang: lang, Code: language})
	return answer{Result: true, Topic: topic, Lang: locale.English, Language: language, Markdown: &text}, err
}

func (s *Service) webhooks(c cloud.Caller, given catalog.Given) (any, error) {
	lang, err := reader(c, given)
	if err != nil {
		return nil, err
	}
	usual := "overview"
	v := view{Base: c.BaseURL, Lang: lang}
	if name := given.Text("event"); name != "" {
		if v.Event = s.event(name); v.Event == nil {
			var names []string
			for _, e := range s.cfg.Events {
				names = append(names, e.Name)
			}
			return nil, unknown("event", names)
		}
		usual = "events"
	}
	topic := cmp.Or(given.Text("topic"), usual)
	text, err := s.write("webhook_"+topic, v)
	out := answer{Result: true, Topic: topic, Lang: locale.English, Markdown: &text}
	if v.Event != nil {
		out.Sample = v.Event.Sample
	}
	return out, err
}

// otep gives parts of the tracking protocol's own guide, which is there in all
// languages but for its data.
func (s *Service) otep(c cloud.Caller, given catalog.Given) (any, error) {
	lang, err := reader(c, given)
	if err != nil {
		return nil, err
	}
	section := cmp.Or(given.Text("section"), "overview")
	g, err := otepdocs.New(c.BaseURL)
	if err != nil {
		return nil, err
	}
	out := answer{Result: true, Topic: section, Lang: locale.English}
	var text string
	switch section {
	case "overview":
		text, err = g.Skill()
		out.Markdown = &text
	case "spec":
		out.Lang = lang
		text, err = g.Spec(lang)
		out.Markdown = &text
	case "codebook":
		out.Data = otep.Codebook()
	case "schema":
		out.Data = otep.Schema()
	case "examples":
		all := map[string]json.RawMessage{}
		for _, e := range g.Examples {
			all[e.Name] = json.RawMessage(e.Body)
		}
		out.Data, err = json.Marshal(all)
	}
	return out, err
}
