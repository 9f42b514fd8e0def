package mcp

import (
	"context"
	"encoding/json"
)

// Tool is one tool as a server offers it. Its definition never changes while
// the server runs.
type Tool struct {
	Name, Title, Description string
	// Input and Output are JSON Schemas (2020-12) with an object at the root.
	// A property of Input with the member x-mcp-header is mirrored by a header.
	Input, Output json.RawMessage
	Annotations   Annotations
	Streams       bool // tells how far it is to clients that take a stream
	// Run does what the tool is for. An *Error becomes a JSON-RPC error; any
	// other error is logged and shown as an internal one with an id to ask by.
	// What the model can put right is a Result with IsError.
	Run func(ctx context.Context, c *Call) (*Result, error)
}

// Annotations are hints for clients about what a tool may do.
type Annotations struct {
	ReadOnly    bool `json:"readOnlyHint"`
	Destructive bool `json:"destructiveHint"`
	Idempotent  bool `json:"idempotentHint"`
	OpenWorld   bool `json:"openWorldHint"`
}

// Request is what Config.Admit knows of a request.
type Request struct {
	Authorization string  // header, "" when there is none
	Profile       *string // X-MCP-Profile, trimmed; nil: no such header
	Scopes        *string // X-MCP-Scopes, trimmed; nil: no such header
	DryRun        bool    // X-MCP-Dry-Run is on
	Approval      bool    // X-MCP-Require-Approval is on

	Method    string          // of JSON-RPC
	Tool      string          // name in a tools/call, "" otherwise
	Arguments json.RawMessage // of a tools/call as they came, nil otherwise

	Path      string // of the endpoint as it was asked: /mcp/developer
	BaseURL   string // own public address that the caller reaches, without a slash at the end
	IP        string
	Language  string // of ours, from Accept-Language
	RequestID string
	Trace     string // traceparent of _meta, else of the header, as it came; "" when there is none
	Client    string // name and version as the client says, for display only
}

// Caller is who a request is from.
type Caller struct {
	ID      string // binds request states; "" is the anonymous caller
	Account int64  // for the access log; 0: none
	// Sees says which tools are listed; nil: all. Set names what Sees admits:
	// callers with the same text see the same tools, whose bytes are prepared
	// once.
	Sees  func(tool string) bool
	Set   string
	Value any // of the product, for Tool.Run
}

// Call is one tools/call.
type Call struct {
	Request   *Request
	Caller    Caller
	Arguments json.RawMessage // an object; {} when the call has none
	// Repeated is the path of a member that Arguments has twice, "" when none.
	Repeated string
	Modern   bool
	// CanAsk says that the client can put a form to its user. Capabilities are
	// what it declared, as they came; nil on the legacy wire.
	CanAsk       bool
	Capabilities json.RawMessage
	// Answers are the client's inputResponses by name, nil when it sent none.
	// State is what an earlier Result of this very call by this very caller
	// gave; nil when there is none. A state that is altered, too old, or of
	// another call never gets here. Nonce tells states apart, "" without one.
	Answers map[string]json.RawMessage
	State   []byte
	Nonce   string
	// Progress tells how far the call is, where the client wants to know it.
	// A report whose done has not grown is left out; a total of 0 is unknown.
	Progress func(done, total float64, message string)
	// Notify sends another notification of this call, if a stream can be had.
	Notify func(method string, params any)
}

// Result is what a tool gives.
type Result struct {
	// Structured is a JSON object, compact. Content, unless given, is one text
	// block of the same bytes. With IsError only Content is sent.
	Structured json.RawMessage
	Content    []Content
	IsError    bool
	// Ask are questions for the client by name (inputRequests); the result is
	// then no answer yet. State comes back with the answers.
	Ask   map[string]Question
	State []byte
}

// Question is one of inputRequests.
type Question struct {
	Method string `json:"method"` // elicitation/create
	Params any    `json:"params"`
}

// Content is a block of a result as the protocol has it: members by name, with
// type among them.
type Content map[string]any

// Error is a refusal on the wire.
type Error struct {
	Status  int // of HTTP; 0: 200
	Code    int // of JSON-RPC
	Message string
	Data    any
	Headers [][2]string
}

func (e *Error) Error() string { return e.Message }
