package asyncapi

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/protocol/signature"
)

// What the examples are signed with.
const (
	exampleSecret   = "0123456789abcdef0123456789abcdef"
	exampleTime     = "1795216320"
	exampleDelivery = "0f2d6c1e-8d0e-4c39-9d0a-6f1b2a3c4d5e"
)

var exampleAt = time.Unix(1795216320, 0)

// headerRow is one header of a request.
type headerRow struct {
	name, about, example string
	always               bool
}

var common = []headerRow{
	{"Content-Type", "application/cloudevents+json in structured mode", "application/json; charset=utf-8", true},
	{"User-Agent", "", "TMS-Webhooks/1", true},
	{"X-Webhook-Event", "Name of the event", "order.created", true},
	{"X-Webhook-Event-Id", "The event_id of the body", "OCR-120045", true},
	{"X-Webhook-Id", "The same in every repeat to this address", "OCR-120045", true},
	{"X-Webhook-Timestamp", "Unix seconds of this attempt; refuse what is more than 300 off", exampleTime, true},
	{"X-Webhook-Reference-Sequence", "The sequence of the body", "1", true},
	{"X-Webhook-Attempt", "From 1", "1", true},
	{"X-Webhook-Test", "1 on tests and in the sandbox", "1", false},
	{"X-Webhook-Replay", "1 on what was sent again by hand", "1", false},
	{"X-Webhook-Sequence", "Running number of what is sent to this address, where its options ask for one; the same in every repeat", "17", false},
	{"webhook-id", "Standard Webhooks: the event_id", "OCR-120045", false},
	{"webhook-timestamp", "Standard Webhooks: unix seconds of this attempt", exampleTime, false},
	{"webhook-signature", "Standard Webhooks: v1, and base64 of HMAC-SHA256 over webhook-id.webhook-timestamp.body, or v1a, and base64 of an Ed25519 signature; several have spaces between them", "v1,GI7DWUjQAQalNLd6aNl3sOnaXL49//i96QF3AnISQk0=", false},
	{"ce-specversion", "CloudEvents in binary mode, as all that begin with ce-", "1.0", false},
	{"ce-id", "The event_id", "OCR-120045", false},
	{"ce-type", "Name of the event", "order.created", false},
	{"ce-source", "The business", "", false},
	{"ce-time", "The occurred_at of the body", "2026-11-20T18:12:00-05:00", false},
	{"ce-subject", "Type and id of what it is about, percent-encoded", "order/120045", false},
}

var ofAccounts = []headerRow{
	{"Signature", "Hex HMAC-SHA256 of the body", "07ae8811832cecbabf40eaae88c060e2134a472521b7530d7d36fd15ee4ca93d", true},
	{"Signature-Next", "The same with the next secret, while a secret is replaced", "07ae8811832cecbabf40eaae88c060e2134a472521b7530d7d36fd15ee4ca93d", false},
	{"X-Webhook-Signature-V2", "Hex HMAC-SHA256 of timestamp.body; while a secret is replaced two, the next one's first, with a comma between them", "14ce1579095aa2995de8eac3cfc387df444ce8951332a27b896fe7e71ed42dcd", true},
}

var ofProviders = []headerRow{
	{"X-Webhook-Delivery-Id", "Of this attempt", exampleDelivery, true},
	{"X-Webhook-Signature", "Base64 HMAC-SHA256 of timestamp, newline, delivery id, newline, body", "SRnSBr6c3NpiCyS3Dxkb2LUvsmwTKNQ6Z4zr9WCUi18=", true},
	{"X-Webhook-Signature-Next", "The same with the next secret, while a secret is replaced", "nYK8MNYSo29LSH9pz6LGjZuW1kEylmxaRTvt7eG3hEQ=", false},
	{"X-Webhook-Content-Digest", "Hex SHA-256 of the body", "a05b3296580ab6e8d09482964bc3400aae849f8b27fb5250e3e4d11ce47a868f", true},
}

var ofLockers = []headerRow{{"ce-livemode", "false in the sandbox", "true", false}}

// headersOf is the name of the schema of an event's headers.
func headersOf(e cloud.HookEvent) string {
	switch e.Channel {
	case cloud.ChannelLocker:
		return "ProviderHeaders"
	case cloud.ChannelThirdParty:
		return "ThirdPartyHeaders"
	}
	return "AccountHeaders"
}

func headerSchemas(base string) map[string]object {
	return map[string]object{"AccountHeaders": headers(base, common, ofAccounts), "ProviderHeaders": headers(base, common, ofProviders, ofLockers),
		"ThirdPartyHeaders": headers(base, common, ofProviders)}
}

func headers(base string, lists ...[]headerRow) object {
	properties, required := object{}, []string{}
	for _, list := range lists {
		for _, h := range list {
			p := object{"type": "string", "examples": []string{h.example}}
			if h.name == "ce-source" {
				p["examples"] = []string{base + "/businesses/42"}
			}
			if h.about != "" {
				p["description"] = h.about
			}
			properties[h.name] = p
			if h.always {
				required = append(required, h.name)
			}
		}
	}
	return object{"type": "object", "properties": properties, "required": required}
}

// exampleHeaders are those of a first attempt with the sample as its body.
func exampleHeaders(e cloud.HookEvent, body []byte) object {
	id := sampleID(body)
	h := object{"Content-Type": "application/json; charset=utf-8", "User-Agent": "TMS-Webhooks/1", "X-Webhook-Event": e.Name, "X-Webhook-Event-Id": id, "X-Webhook-Id": id,
		"X-Webhook-Timestamp": exampleTime, "X-Webhook-Reference-Sequence": sampleSequence(body), "X-Webhook-Attempt": "1"}
	secret := []byte(exampleSecret)
	if e.Channel != "" {
		h[signature.HeaderDeliveryID], h[signature.HeaderDigest] = exampleDelivery, signature.Digest(body)
		h[signature.HeaderProvider] = signature.Provider(secret, exampleAt, exampleDelivery, body)
		return h
	}
	h[signature.HeaderLegacy], h[signature.HeaderV2] = signature.Legacy(secret, body), signature.V2(exampleAt, body, secret)
	return h
}

// securitySchemes are the ways in which a receiver knows us.
func securitySchemes() object {
	scheme := func(header, about string) object {
		return object{"type": "httpApiKey", "in": "header", "name": header, "description": fmt.Sprintf("%s Computed over the bytes of the body with a secret that receiver and sender share.", about)}
	}
	return object{
		"account":  scheme(signature.HeaderV2, "Addresses of accounts."),
		"provider": scheme(signature.HeaderProvider, "Endpoints of providers."),
		"standard": scheme(signature.HeaderStandard, "Addresses that ask for Standard Webhooks."),
	}
}

func sampleSequence(body []byte) string {
	var s struct {
		Sequence json.Number `json:"sequence"`
	}
	_ = json.Unmarshal(body, &s) // it was read before
	return s.Sequence.String()
}

func sampleID(body []byte) string {
	var s struct {
		ID string `json:"event_id"`
	}
	_ = json.Unmarshal(body, &s) // it was read before
	return s.ID
}
