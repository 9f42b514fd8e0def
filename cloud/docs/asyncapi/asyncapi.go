// Package asyncapi describes the webhooks that are sent as an AsyncAPI 3.0
// document. It is made from the table of events, whose types make the bodies,
// and holds nothing of its own about what is in them. Pure functions.
package asyncapi

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/catalog"
)

// Path is where the document is served.
const Path = "/api/asyncapi-webhooks.json"

// Config is what a document is made from.
type Config struct {
	Base     string // the deployment's address; "" is an example
	Version  string // of the product
	Events   []cloud.HookEvent
	Envelope any // a value of the type of the account channel's bodies
	// Retries are how often each channel tries again.
	Retries map[string]int
}

type object = map[string]any

// families are the channels of the document, by the family of their events.
var families = []struct{ name, title, about string }{
	{"orders", "Orders", "Orders that come into being, move, and are gone"},
	{"tracking", "Tracking and proof", "What happens to parcels, and what proves it"},
	{"interception", "Interception", "Orders that are stopped on their way"},
	{"lifecycle", "Lifecycle", "The steps of an order's life, and its driver"},
	{"driver_location", "Where drivers are", "The newest place of each driver"},
	{"device_orders", "Device orders", "Packages that rest in lockers and other devices"},
	{"locker_provider", "Locker deliveries", "Deliveries of a locker provider; the addresses are those of the provider"},
	{"third_party", "Third-party deliveries", "Deliveries that a third party makes; the addresses are those of the provider"},
}

// Document is the description. It is the same for the same input. Error: an
// event that cannot be described.
func Document(c Config) ([]byte, error) {
	if c.Base == "" {
		c.Base = "https://api.example.com"
	}
	c.Base = strings.TrimRight(c.Base, "/")
	schemas := catalog.NewSchemas()
	messages, channels, operations := object{}, object{}, object{}
	for _, f := range families {
		held := object{}
		for _, e := range c.Events {
			if e.Family != f.name {
				continue
			}
			m, err := c.message(schemas, e)
			if err != nil {
				return nil, fmt.Errorf("describe %s: %w", e.Name, err)
			}
			messages[e.Name], held[e.Name] = m, ref("components", "messages", e.Name)
			operations[operationID(e.Name)] = c.operation(e, f.name)
		}
		if len(held) > 0 {
			channels[f.name] = object{"address": nil, "title": f.title, "description": f.about + ". The receiver chooses the address.", "messages": held,
				"servers": []any{ref("servers", "receiver")}}
		}
	}
	for _, e := range c.Events {
		if messages[e.Name] == nil {
			return nil, fmt.Errorf("describe %s: there is no channel %s", e.Name, e.Family)
		}
	}
	for name, h := range headerSchemas(c.Base) {
		schemas.Named()[name] = h
	}
	return marshalJSON(object{
		"asyncapi":           "3.0.0",
		"id":                 "urn:postern:webhooks",
		"info":               c.info(),
		"defaultContentType": "application/json",
		"servers":            servers(),
		"channels":           channels,
		"operations":         operations,
		"components":         object{"messages": messages, "schemas": schemas.Named(), "securitySchemes": securitySchemes()},
	})
}

func (c Config) info() object {
	tags := []any{}
	for _, f := range families {
		tags = append(tags, object{"name": f.name, "description": f.about})
	}
	return object{"title": "Postern webhooks", "version": c.Version, "license": object{"name": "Apache-2.0", "url": "https://www.apache.org/licenses/LICENSE-2.0"},
		"contact":      object{"name": "Postern", "url": c.Base + "/api/webhooks-guide"},
		"tags":         tags,
		"externalDocs": object{"description": "Guide for receivers, with code that verifies signatures", "url": c.Base + "/api/webhooks-guide"},
		"description": "Webhooks are POST requests to addresses that receivers choose. Any 2xx answer is success; everything else is tried again, with the same body and ids. " +
			"Verify the signature over the bytes as they came, and drop repeats by event_id. An address may ask for CloudEvents, in binary mode (the attributes in headers) or structured mode " +
			"(this payload as the data of a CloudEvent), and for the headers of Standard Webhooks. The examples are signed at " + exampleTime + " with the secret " + exampleSecret +
			", over the payload without white space between its members."}
}

func servers() object {
	return object{"receiver": object{"host": "{host}", "protocol": "https", "title": "A receiver", "description": "An address that a receiver has set",
		"variables": object{"host": object{"default": "hooks.example.com", "description": "Host of the address"}},
		"security":  []any{ref("components", "securitySchemes", "account"), ref("components", "securitySchemes", "provider"), ref("components", "securitySchemes", "standard")}}}
}

func (c Config) operation(e cloud.HookEvent, channel string) object {
	return object{"action": "send", "title": e.Name, "summary": e.About, "channel": ref("channels", channel), "messages": []any{ref("channels", channel, "messages", e.Name)},
		"bindings": object{"http": object{"method": "POST", "bindingVersion": "0.3.0"}}, "tags": []any{object{"name": channel}}}
}

func (c Config) message(schemas catalog.Schemas, e cloud.HookEvent) (object, error) {
	sample, err := compact(e.Sample)
	if err != nil {
		return nil, fmt.Errorf("read its sample: %w", err)
	}
	m := object{"name": e.Name, "title": e.Name, "summary": e.About, "contentType": "application/json", "payload": c.payload(schemas, e), "headers": ref("components", "schemas", headersOf(e)),
		"correlationId":    object{"description": "Stays the same across repeats", "location": "$message.payload#/event_id"},
		"tags":             []any{object{"name": e.Family}},
		"examples":         []any{object{"name": strings.ReplaceAll(e.Name, ".", "_"), "summary": e.About, "headers": exampleHeaders(e, sample), "payload": json.RawMessage(sample)}},
		"x-reference-type": e.ReferenceType, "x-retries": c.Retries[channelOf(e)]}
	if len(e.Settings) > 0 {
		m["x-setting"] = strings.Join(e.Settings, " and ")
	}
	return m, nil
}

// payload is the schema of a body: the envelope, with this event's name and
// data in it.
func (c Config) payload(schemas catalog.Schemas, e cloud.HookEvent) object {
	envelope := e.Envelope
	if envelope == nil {
		envelope = c.Envelope
	}
	out := schemas.Members(envelope)
	p := out["properties"].(object)
	p["event"] = object{"type": "string", "const": e.Name}
	p["event_id"] = object{"type": "string", "pattern": "^" + e.Prefix + "[A-Za-z0-9_-]+$", "maxLength": 64, "description": "The same in every repeat: drop what you have seen"}
	p["api_version"] = object{"type": "string", "const": "1"}
	p["occurred_at"] = object{"type": "string", "format": "date-time", "description": "When it happened"}
	p["occurred_at_ms"] = object{"type": "integer", "minimum": 0, "description": "The same moment in Unix milliseconds"}
	p["sequence"] = object{"type": "integer", "minimum": 1, "description": "Number of the event among those about its reference: keep the highest of each reference and drop what has a lower one; gaps are normal"}
	p["data"] = schemas.Of(e.Data)
	return out
}

func channelOf(e cloud.HookEvent) string { return cmp.Or(e.Channel, cloud.ChannelAccount) }

// operationID is the name of an event's operation: sendOrderCreated.
func operationID(event string) string {
	var b strings.Builder
	b.WriteString("send")
	for part := range strings.FieldsFuncSeq(event, func(r rune) bool { return r == '.' || r == '_' }) {
		b.WriteString(strings.ToUpper(part[:1]) + part[1:])
	}
	return b.String()
}

func ref(path ...string) object { return object{"$ref": "#/" + strings.Join(path, "/")} }

func compact(raw []byte) ([]byte, error) {
	var b bytes.Buffer
	err := json.Compact(&b, raw)
	return b.Bytes(), err
}

func marshalJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSpace(slices.Clip(b.Bytes())), nil
}
