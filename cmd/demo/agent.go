package main

import (
	"context"
	"encoding/json"
	"fmt"
)

// tool calls one tool of the operations server, as an agent with the token of
// a member of staff does. headers are pairs.
func (s *stage) tool(ctx context.Context, name string, arguments map[string]any, headers ...string) (map[string]any, error) {
	a := s.as(s.box.Staff.Token, headers...)
	in := map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": map[string]any{"name": name, "arguments": arguments}}
	var out struct {
		Error *struct {
			Message string `json:"message"`
		} `json:"error"`
		Result struct {
			IsError bool `json:"isError"`
			Content []struct {
				Text string `json:"text"`
			} `json:"content"`
		} `json:"result"`
	}
	if err := a.call(ctx, "POST", a.base+"/mcp", in, &out); err != nil {
		return nil, err
	}
	switch {
	case out.Error != nil:
		return nil, fmt.Errorf("%s: %s", name, out.Error.Message)
	case len(out.Result.Content) == 0:
		return nil, fmt.Errorf("%s: an answer without content", name)
	case out.Result.IsError:
		return nil, fmt.Errorf("%s: %s", name, out.Result.Content[0].Text)
	}
	var body map[string]any
	err := json.Unmarshal([]byte(out.Result.Content[0].Text), &body)
	return body, err
}

// someOrder is what an order is made of.
func someOrder() map[string]any {
	return map[string]any{"type": "D", "packages": []any{map[string]any{"weight": 2.5}}, "recipient": map[string]any{"name": "Ada Moreau", "phone": "+14165550123",
		"address_line1": "100 Queen St W", "city": "Toronto", "province": "ON", "postal_code": "M5H 2N2", "country": "CA"}}
}

// askAPerson is an agent that makes an order, finds it again, looks at what
// holding it would change, and leaves the decision to a person.
func (s script) askAPerson(ctx context.Context) error {
	made, err := s.tool(ctx, "create_order", someOrder())
	if err != nil {
		return err
	}
	number, _ := made["tracking_number"].(string)
	s.logStory("agent", "makes the order %s by a tool of %s/mcp", number, s.api.base)
	if _, err = s.tool(ctx, "find_order", map[string]any{"query": number}); err != nil {
		return err
	}
	hold := map[string]any{"tracking_number": number, "reason": "The recipient asked to wait"}
	seen, err := s.tool(ctx, "hold_order", hold, "X-MCP-Dry-Run", "1")
	if err != nil {
		return err
	}
	s.logStory("agent", "tries hold_order: %v, nothing is changed", seen["outcome"])
	waits, err := s.tool(ctx, "hold_order", hold, "X-MCP-Require-Approval", "1")
	if err != nil {
		return err
	}
	s.logStory("agent", "asks for it: %v; decide as %s at %s/mcp-approvals", waits["outcome"], s.box.Admin.Email, s.api.base)
	return nil
}
