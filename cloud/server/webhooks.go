package server

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/docs/asyncapi"
	webhookdocs "github.com/postern-io/postern/cloud/docs/webhook"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/cloud/order"
	"github.com/postern-io/postern/cloud/rest"
	"github.com/postern-io/postern/cloud/route"
	"github.com/postern-io/postern/cloud/webhook"
	"github.com/postern-io/postern/cloud/webhook/sender"
	"github.com/postern-io/postern/protocol/signature"
)

// HookEvents are all events that endpoints can receive.
func HookEvents() []cloud.HookEvent {
	return slices.Concat(order.Events(), route.Events(), locker.Events())
}

// asyncAPI serves the description of what is sent. It needs no token.
func asyncAPI(base, version string) rest.Mount {
	made := sync.OnceValues(func() (rest.Document, error) {
		doc, err := asyncapi.Document(asyncapi.Config{Base: base, Version: version, Events: HookEvents(), Envelope: webhook.Envelope{},
			Retries: map[string]int{cloud.ChannelAccount: cloud.AccountAttempts - 1, cloud.ChannelLocker: cloud.ProviderAttempts - 1, cloud.ChannelThirdParty: cloud.ProviderAttempts - 1}})
		if err != nil {
			return rest.Document{}, fmt.Errorf("describe webhooks: %w", err)
		}
		sum := sha256.Sum256(doc)
		return rest.Document{Body: doc, Type: "application/json", Tag: hex.EncodeToString(sum[:12])}, nil
	})
	return rest.Mount{Path: asyncapi.Path, Document: func(rest.DocumentQuery) (rest.Document, error) { return made() }}
}

// HookGuide is the guide for receivers, with requests as they would go out. base
// is the deployment's address; "" is an example.
func HookGuide(base string) (*webhookdocs.Guide, error) {
	base = cmp.Or(base, "https://api.example.com")
	c := webhookdocs.Config{Base: base, Events: HookEvents(), Account: sender.Waits()[:cloud.AccountAttempts-1], Provider: sender.Waits()}
	for _, x := range []struct{ name, event, format, signature string }{
		{cloud.FormatNative, "order.status_change", "", ""}, {cloud.FormatBinary, "order.status_change", cloud.FormatBinary, ""}, {cloud.FormatStructured, "order.status_change", cloud.FormatStructured, ""},
		{cloud.SignatureStandard, "order.status_change", "", cloud.SignatureStandard}, {cloud.SignatureAsymmetric, "order.status_change", "", cloud.SignatureAsymmetric},
		{cloud.ChannelLocker, "locker_delivery.picked_up", "", ""}, {cloud.ChannelThirdParty, "third_party_delivery.created", "", ""},
	} {
		i := slices.IndexFunc(c.Events, func(e cloud.HookEvent) bool { return e.Name == x.event })
		if i < 0 {
			return nil, fmt.Errorf("write an example: there is no event %s", x.event)
		}
		var body bytes.Buffer
		if err := json.Compact(&body, c.Events[i].Sample); err != nil {
			return nil, fmt.Errorf("read the sample of %s: %w", x.event, err)
		}
		head, sent, err := sender.Example(base, c.Events[i], body.Bytes(), x.format, x.signature, exampleSecret, time.Unix(1795216320, 0))
		if err != nil {
			return nil, fmt.Errorf("write an example of %s: %w", x.name, err)
		}
		c.Requests = append(c.Requests, webhookdocs.Request{Name: x.name, Head: head, Body: sent})
	}
	return webhookdocs.New(c)
}

// exampleSecret signs the examples of the guide.
const exampleSecret = "0123456789abcdef0123456789abcdef"

// hookKeys publishes the keys that sign webhooks (v1a). It is the same for the
// life of the deployment's keys.
func (s *Server) hookKeys() rest.Mount {
	body := signature.KeySet(s.Keys.publishedHooks()...)
	sum := sha256.Sum256(body)
	return rest.Mount{Path: "/.well-known/jwks.json", Document: func(rest.DocumentQuery) (rest.Document, error) {
		return rest.Document{Body: body, Type: "application/jwk-set+json", Tag: hex.EncodeToString(sum[:12])}, nil
	}}
}
