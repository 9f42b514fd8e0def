// Package suitetest has what the official conformance suite expects of a server:
// tools, prompts and resources with fixed names. Only tests use it, with the engine
// alone (cloud/mcp) and beside the real tools (cloud/server).
package suitetest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/postern-io/postern/cloud/mcp"
)

// A picture of one dot and a sound without samples.
const (
	dot     = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
	silence = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="
)

// Fixtures is a server of them alone.
func Fixtures() mcp.Config {
	none := json.RawMessage(`{"type":"object"}`)
	tool := func(name string, run func(context.Context, *mcp.Call) (*mcp.Result, error)) mcp.Tool {
		return mcp.Tool{Name: name, Title: name, Description: "A fixture of the conformance suite.", Input: none, Run: run}
	}
	says := func(name string, blocks ...mcp.Content) mcp.Tool {
		return tool(name, func(context.Context, *mcp.Call) (*mcp.Result, error) { return &mcp.Result{Content: blocks}, nil })
	}
	picture := mcp.Content{"type": "image", "data": dot, "mimeType": "image/png"}
	embedded := func(uri string) mcp.Content {
		return mcp.Content{"type": "resource", "resource": mcp.Content{"uri": uri, "mimeType": "text/plain", "text": "This is an embedded resource"}}
	}
	steps := tool("test_tool_with_progress", inSteps)
	steps.Streams = true
	streaming := tool("test_streaming_elicitation", inSteps)
	streaming.Streams = true
	mirror := tool("test_x_mcp_header", func(_ context.Context, c *mcp.Call) (*mcp.Result, error) { return words(string(c.Arguments)), nil })
	mirror.Input = json.RawMessage(`{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"},"level":{"type":"integer"}}}`)
	vocabulary := says("json_schema_2020_12_tool", text("done"))
	vocabulary.Input = json.RawMessage(`{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object",
		"$defs":{"address":{"$anchor":"addressDef","type":"object","properties":{"street":{"type":"string"},"city":{"type":"string"}}}},
		"properties":{"name":{"type":"string"},"address":{"$ref":"#/$defs/address"},"contactMethod":{"type":"string","enum":["phone","email"]},"phone":{"type":"string"},"email":{"type":"string"}},
		"allOf":[{"anyOf":[{"required":["phone"]},{"required":["email"]}]}],
		"if":{"properties":{"contactMethod":{"const":"phone"}},"required":["contactMethod"]},"then":{"required":["phone"]},"else":{"required":["email"]},
		"additionalProperties":false}`)
	asking := func(name string, run func(c *mcp.Call) (*mcp.Result, error)) mcp.Tool {
		return tool("test_input_required_result_"+name, func(_ context.Context, c *mcp.Call) (*mcp.Result, error) { return run(c) })
	}
	logging := tool("test_tool_with_logging", func(_ context.Context, c *mcp.Call) (*mcp.Result, error) {
		for _, data := range []string{"Tool execution started", "Tool processing data", "Tool execution completed"} {
			c.Notify("notifications/message", map[string]string{"level": "info", "data": data})
		}
		return words("done"), nil
	})
	logging.Streams = true
	return mcp.Config{
		Name: "fixtures", Version: "1.0.0", Key: bytes.Repeat([]byte{7}, 32),
		Tools: []mcp.Tool{
			says("test_simple_text", text("This is a simple text response for testing.")),
			says("test_image_content", picture),
			says("test_audio_content", mcp.Content{"type": "audio", "data": silence, "mimeType": "audio/wav"}),
			says("test_embedded_resource", embedded("test://embedded-resource")),
			says("test_multiple_content_types", text("Multiple content types test:"), picture, embedded("test://mixed-content-resource")),
			tool("test_error_handling", func(context.Context, *mcp.Call) (*mcp.Result, error) {
				return &mcp.Result{IsError: true, Content: []mcp.Content{text("This tool intentionally returns an error for testing")}}, nil
			}),
			says("test_logging_tool", text("done, without a word to the log")),
			steps, streaming, logging, mirror, vocabulary,
			tool("test_missing_capability", func(_ context.Context, c *mcp.Call) (*mcp.Result, error) {
				return &mcp.Result{Ask: map[string]mcp.Question{"capital": sampling("What is the capital of France?")}}, nil
			}),
			asking("elicitation", func(c *mcp.Call) (*mcp.Result, error) {
				if name, _ := accepted(c, "user_name")["name"].(string); name != "" {
					return words("Hello, " + name + "!"), nil
				}
				return questionResult(nil, "user_name", form("What is your name?", "name", "string")), nil
			}),
			asking("sampling", func(c *mcp.Call) (*mcp.Result, error) {
				if c.Answers["capital_question"] != nil {
					return words("Sampling response: " + string(c.Answers["capital_question"])), nil
				}
				return questionResult(nil, "capital_question", sampling("What is the capital of France?")), nil
			}),
			asking("list_roots", func(c *mcp.Call) (*mcp.Result, error) {
				if c.Answers["client_roots"] != nil {
					return words("Roots: " + string(c.Answers["client_roots"])), nil
				}
				return questionResult(nil, "client_roots", roots), nil
			}),
			asking("request_state", confirmed), asking("tampered_state", confirmed),
			asking("multiple_inputs", manyInputs), asking("multi_round", inRounds), asking("capabilities", whatIsPossible),
		},
		Methods: methods(picture),
		Capabilities: map[string]any{
			"prompts": struct{}{}, "resources": struct{}{}, "completions": struct{}{}, "logging": struct{}{},
		},
	}
}

func text(s string) mcp.Content { return mcp.Content{"type": "text", "text": s} }

func words(s string) *mcp.Result { return &mcp.Result{Content: []mcp.Content{text(s)}} }

func inSteps(_ context.Context, c *mcp.Call) (*mcp.Result, error) {
	for _, n := range []float64{0, 50, 100} {
		c.Progress(n, 100, fmt.Sprintf("Completed step %v of 100", n))
	}
	return words("done"), nil
}

// questionResult is a result with one question.
func questionResult(state []byte, name string, q mcp.Question) *mcp.Result {
	return &mcp.Result{State: state, Ask: map[string]mcp.Question{name: q}}
}

var roots = mcp.Question{Method: "roots/list", Params: struct{}{}}

func form(message, name, kind string) mcp.Question {
	return mcp.Question{Method: "elicitation/create", Params: map[string]any{"mode": "form", "message": message, "requestedSchema": map[string]any{
		"type": "object", "properties": map[string]any{name: map[string]string{"type": kind}}, "required": []string{name},
	}}}
}

func sampling(prompt string) mcp.Question {
	return mcp.Question{Method: "sampling/createMessage", Params: map[string]any{
		"messages": []any{map[string]any{"role": "user", "content": text(prompt)}}, "maxTokens": 100,
	}}
}

// accepted is what a form was filled with.
func accepted(c *mcp.Call, name string) map[string]any {
	var answer struct {
		Action  string         `json:"action"`
		Content map[string]any `json:"content"`
	}
	if json.Unmarshal(c.Answers[name], &answer) != nil || answer.Action != "accept" {
		return nil
	}
	return answer.Content
}

func confirmed(c *mcp.Call) (*mcp.Result, error) {
	if c.State != nil && accepted(c, "confirm") != nil {
		return words("state-ok: requestState received and confirmation accepted"), nil
	}
	return questionResult([]byte("asked"), "confirm", form("Please confirm", "ok", "boolean")), nil
}

func manyInputs(c *mcp.Call) (*mcp.Result, error) {
	if c.State != nil && accepted(c, "user_name") != nil && c.Answers["greeting"] != nil && c.Answers["client_roots"] != nil {
		return words(fmt.Sprintf("%s %v %s", c.Answers["greeting"], accepted(c, "user_name")["name"], c.Answers["client_roots"])), nil
	}
	return &mcp.Result{State: []byte("asked"), Ask: map[string]mcp.Question{
		"user_name": form("What is your name?", "name", "string"), "greeting": sampling("Generate a greeting"), "client_roots": roots,
	}}, nil
}

func inRounds(c *mcp.Call) (*mcp.Result, error) {
	name, second := strings.CutPrefix(string(c.State), "2 ")
	switch {
	case c.State == nil:
		return questionResult([]byte("1"), "step1", form("Step 1: What is your name?", "name", "string")), nil
	case second:
		return words(fmt.Sprintf("%s likes %v", name, accepted(c, "step2")["color"])), nil
	}
	return questionResult(fmt.Appendf(nil, "2 %v", accepted(c, "step1")["name"]), "step2", form("Step 2: What is your favorite color?", "color", "string")), nil
}

// whatIsPossible asks only what the client can answer.
func whatIsPossible(c *mcp.Call) (*mcp.Result, error) {
	all := map[string]mcp.Question{"user_name": form("What is your name?", "name", "string"), "greeting": sampling("Generate a greeting"), "client_roots": roots}
	var has map[string]json.RawMessage
	_ = json.Unmarshal(c.Capabilities, &has) // the engine has read it
	for name, q := range all {
		if capability, _, _ := strings.Cut(q.Method, "/"); has[capability] == nil {
			delete(all, name)
		}
	}
	if len(c.Answers) > 0 || len(all) == 0 {
		return words("done"), nil
	}
	return &mcp.Result{Ask: all}, nil
}

// methods are prompts, resources and what else the suite asks for.
func methods(picture mcp.Content) map[string]mcp.Method {
	fixed := func(result string) func(context.Context, *mcp.Call) (*mcp.Result, error) {
		return func(context.Context, *mcp.Call) (*mcp.Result, error) {
			return &mcp.Result{Structured: json.RawMessage(result)}, nil
		}
	}
	old := mcp.Method{Legacy: true, Run: fixed(`{}`)}
	both := func(run func(context.Context, *mcp.Call) (*mcp.Result, error), cached bool) mcp.Method {
		return mcp.Method{Legacy: true, Modern: true, Cached: cached, Run: run}
	}
	return map[string]mcp.Method{
		"prompts/list": both(fixed(`{"prompts":[{"name":"test_simple_prompt","description":"Simple"},
			{"name":"test_prompt_with_arguments","description":"With arguments","arguments":[{"name":"arg1","description":"First","required":true},{"name":"arg2","description":"Second","required":true}]},
			{"name":"test_prompt_with_embedded_resource","description":"With a resource","arguments":[{"name":"resourceUri","description":"Address","required":true}]},
			{"name":"test_prompt_with_image","description":"With a picture"},{"name":"test_input_required_result_prompt","description":"Asks"}]}`), true),
		"prompts/get": both(func(_ context.Context, c *mcp.Call) (*mcp.Result, error) { return prompt(c, picture) }, false),
		"resources/list": both(fixed(`{"resources":[{"uri":"test://static-text","name":"Text","description":"Words","mimeType":"text/plain"},
			{"uri":"test://static-binary","name":"Binary","description":"A picture","mimeType":"image/png"}]}`), true),
		"resources/templates/list": both(fixed(`{"resourceTemplates":[{"uriTemplate":"test://template/{id}/data","name":"Template","description":"By id","mimeType":"application/json"}]}`), true),
		"resources/read":           both(resource, true),
		"completion/complete":      both(fixed(`{"completion":{"values":[],"total":0,"hasMore":false}}`), false),
		"logging/setLevel":         old,
		"resources/subscribe":      old,
		"resources/unsubscribe":    old,
	}
}

func prompt(c *mcp.Call, picture mcp.Content) (*mcp.Result, error) {
	var in struct {
		Name      string
		Arguments map[string]string
	}
	if err := json.Unmarshal(c.Arguments, &in); err != nil {
		return nil, &mcp.Error{Code: mcp.CodeInvalidParams, Message: "arguments are texts"}
	}
	var blocks []mcp.Content
	switch in.Name {
	case "test_simple_prompt":
		blocks = []mcp.Content{text("This is a simple prompt for testing.")}
	case "test_prompt_with_arguments":
		blocks = []mcp.Content{text(fmt.Sprintf("Prompt with arguments: arg1='%s', arg2='%s'", in.Arguments["arg1"], in.Arguments["arg2"]))}
	case "test_prompt_with_embedded_resource":
		blocks = []mcp.Content{{"type": "resource", "resource": mcp.Content{"uri": in.Arguments["resourceUri"], "mimeType": "text/plain", "text": "Embedded resource content for testing."}}, text("Please process the embedded resource above.")}
	case "test_prompt_with_image":
		blocks = []mcp.Content{picture, text("Please analyze the image above.")}
	case "test_input_required_result_prompt":
		if accepted(c, "user_context") == nil {
			return questionResult(nil, "user_context", form("What context should the prompt use?", "context", "string")), nil
		}
		blocks = []mcp.Content{text(fmt.Sprint("With ", accepted(c, "user_context")["context"]))}
	default:
		return nil, &mcp.Error{Code: mcp.CodeInvalidParams, Message: "no such prompt"}
	}
	var messages []any
	for _, b := range blocks {
		messages = append(messages, map[string]any{"role": "user", "content": b})
	}
	b, err := json.Marshal(map[string]any{"messages": messages})
	return &mcp.Result{Structured: b}, err
}

func resource(_ context.Context, c *mcp.Call) (*mcp.Result, error) {
	var in struct{ URI string }
	if err := json.Unmarshal(c.Arguments, &in); err != nil {
		return nil, &mcp.Error{Code: mcp.CodeInvalidParams, Message: "uri is a text"}
	}
	content := mcp.Content{"uri": in.URI}
	id, isTemplate := strings.CutPrefix(in.URI, "test://template/")
	switch {
	case in.URI == "test://static-text":
		content["mimeType"], content["text"] = "text/plain", "This is the content of the static text resource."
	case in.URI == "test://static-binary":
		content["mimeType"], content["blob"] = "image/png", dot
	case isTemplate:
		id = strings.TrimSuffix(id, "/data")
		content["mimeType"], content["text"] = "application/json", fmt.Sprintf(`{"id":%q,"templateTest":true,"data":"Data for ID: %s"}`, id, id)
	default:
		e := &mcp.Error{Code: -32002, Message: "no such resource", Data: in}
		if c.Modern {
			e.Code = mcp.CodeInvalidParams
		}
		e.Data = map[string]string{"uri": in.URI}
		return nil, e
	}
	b, err := json.Marshal(map[string]any{"contents": []any{content}})
	return &mcp.Result{Structured: b}, err
}
