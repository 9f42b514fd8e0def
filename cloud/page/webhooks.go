package page

import (
	"bytes"
	"html/template"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud/docs/asyncapi"
	webhookdocs "github.com/postern-io/postern/cloud/docs/webhook"
)

// hookPage is the guide for receivers of webhooks. It depends on nothing but the
// language.
type hookPage struct {
	frame
	*webhookdocs.Guide
	Machine string // address of the description for machines
	Calls   []hookCall
	Schemes []hookScheme
}

// hookCall is an operation that settings are made with.
type hookCall struct{ Method, Path, Text string }

// hookScheme is a signature: whose, its header, and what it is.
type hookScheme struct{ Channel, Header, Value string }

func (p guidePages) hookGuide(ctx *fasthttp.RequestCtx) {
	f := p.guideFrame(ctx, "hooks.title", webhookdocs.Path)
	m, err := p.guides.cached("webhooks "+f.Lang, typeHTML, func() ([]byte, error) {
		const settings, endpoint = "/api/v1/webhook-settings", "/api/v1/third-party-delivery/webhook-endpoint"
		v := hookPage{frame: f, Guide: p.cfg.Webhooks, Machine: asyncapi.Path,
			Calls: []hookCall{
				{"GET", settings, f.T("hooks.call.read")}, {"PUT", settings, f.T("hooks.call.write")},
				{"GET", "/api/v1/webhook-delivery-logs", f.T("hooks.call.log")}, {"POST", "/api/v1/webhook-delivery-logs/{id}/replay", f.T("hooks.call.replay")},
				{"PUT", endpoint, f.T("hooks.call.endpoint")}, {"POST", endpoint + "/secret", f.T("hooks.call.secret")},
			},
			Schemes: []hookScheme{
				{f.T("hooks.channel.account"), "X-Webhook-Signature-V2", "hex(HMAC-SHA256(secret, X-Webhook-Timestamp + \".\" + body))"},
				{f.T("hooks.channel.account"), "Signature", "hex(HMAC-SHA256(secret, body))"},
				{f.T("hooks.channel.provider"), "X-Webhook-Signature", "base64(HMAC-SHA256(secret, X-Webhook-Timestamp + \"\\n\" + X-Webhook-Delivery-Id + \"\\n\" + body))"},
				{f.T("hooks.channel.standard"), "webhook-signature", "\"v1,\" + base64(HMAC-SHA256(key, webhook-id + \".\" + webhook-timestamp + \".\" + body))"},
				{f.T("hooks.channel.standard"), "webhook-signature", "\"v1a,\" + base64(Ed25519(key, webhook-id + \".\" + webhook-timestamp + \".\" + body))"},
			}}
		var b bytes.Buffer
		err := p.tmpl.ExecuteTemplate(&b, "webhooks.html", v)
		return b.Bytes(), err
	})
	p.guideAnswer(ctx, m, err)
}

// Anchor is the id of a part of the page.
func (hookPage) Anchor(name string) string {
	return strings.ToLower(strings.NewReplacer("#", "sharp", " ", "-").Replace(name))
}

// Lines are the headers of a request with their names marked.
func (hookPage) Lines(head string) template.HTML {
	var b strings.Builder
	for line := range strings.Lines(head) {
		line = strings.TrimSuffix(line, "\n")
		name, value, ok := strings.Cut(line, ": ")
		if !ok {
			b.WriteString(template.HTMLEscapeString(line) + "\n")
			continue
		}
		b.WriteString(`<span class="k">` + template.HTMLEscapeString(name) + `</span>: ` + template.HTMLEscapeString(value) + "\n")
	}
	return template.HTML(b.String()) //nolint:gosec // every part was escaped above
}
