package catalog

import (
	"bytes"
	"context"
	"encoding/json"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/postern-io/postern/cloud"
)

// Servers of tools.
const (
	OperationsServer = "operations" // for staff of a business
	DeveloperServer  = "developer"  // for developers on the interface
	LockersServer    = "lockers"    // for staff of cabinets
)

// ToolServer is a server of tools as it is found.
type ToolServer struct {
	ID, Name, Audience string
	Path               string // behind the deployment's address
	// Asks says that every write of its tools has a person's word: as an answer to a
	// question where the client can put one, else as an approval. No argument of the
	// call stands for it.
	Asks bool
}

// ToolServers are all of them.
func ToolServers() []ToolServer {
	return []ToolServer{
		{OperationsServer, "Operations tools", "People who run a delivery business, and their agents", "/api/mcp", false},
		{DeveloperServer, "Developer tools", "People who build on the interface, and their agents", "/api/mcp/developer", false},
		{LockersServer, "Locker tools", "People who run parcel lockers, and their agents", "/api/mcp/lockers", true},
	}
}

// Effect is what a tool does to what is there, for clients that ask their users
// by it. The zero value follows the risk: low reads, high ends something.
type Effect uint8

// Effects.
const (
	Usual      Effect = iota
	Creates           // adds something new
	Overwrites        // the same call again changes nothing more
)

// Tool is a row of the table as agents see it: one operation, or several as one
// thing to do. Its scopes are those of the operation behind it.
type Tool struct {
	Name, Title string
	Description string // what it does and gives, when to use another: 25 to 70 tokens
	Servers     []string
	Category    string // orders
	// Operation is behind the tool and says scopes, risk, account types, gate and
	// whether it is confirmed; "" for a tool that needs none.
	Operation string
	Arguments []Argument
	// OneOf are groups of arguments, of which one group must be given.
	OneOf  [][]string
	Effect Effect
	// Outside says that the tool reaches a system outside the platform.
	Outside bool
	// Named says that the tool is about one order, by id, reference or number.
	Named bool
	// Rows names the argument whose elements are refused one by one; empty: none is.
	Rows string
	// Asks says that a write is done by the word of a person alone, as those of a
	// server that asks are.
	Asks bool
	// Run does it, by operations. nil: Operation with the arguments as they are,
	// where one that names an order is looked up first.
	Run func(ctx context.Context, a Agent, given Given) (any, error)

	// Those of the operation; of a tool without one as they are declared.
	Scopes  []string
	Risk    Risk
	Confirm bool
	Types   []cloud.AccountType
	Gate    string

	whole         *Operation // whose arguments and answer are the tool's own
	input, output json.RawMessage
}

// Agent is what a tool may do: operations, in the name of who called it.
type Agent interface {
	Caller() cloud.Caller
	// Today is the present date in the caller's business, YYYY-MM-DD.
	Today(ctx context.Context) string
	// Do passes a call through the pipeline. Values are the operation's members by
	// name; a raw body is the member called body. A key makes repeats of the call
	// give the first answer, "" does not. The answer is what JSON is made of.
	Do(ctx context.Context, operation string, values map[string]any, key string) (any, error)
	// Shown is an error as the caller reads it, nil for one that it does not.
	Shown(err error) *PublicError
	// Warn tells, in a preview, of something that does not stop the call.
	Warn(text string)
}

// PublicError is an error in the caller's language.
type PublicError struct {
	Kind          cloud.Kind
	Code, Message string
	Fields        map[string][]string
}

// Given are the arguments of a call, checked.
type Given map[string]any

// Text is an argument, "" when it is not given.
func (g Given) Text(name string) string {
	s, _ := g[name].(string)
	return s
}

// Bool is an argument, usual when it is not given.
func (g Given) Bool(name string, usual bool) bool {
	if b, ok := g[name].(bool); ok {
		return b
	}
	return usual
}

// Int is an argument, usual when it is not given.
func (g Given) Int(name string, usual int64) int64 {
	if n, ok := g[name].(json.Number); ok {
		if i, err := n.Int64(); err == nil {
			return i
		}
	}
	return usual
}

// Without is g without some arguments.
func (g Given) Without(names ...string) Given {
	out := Given{}
	for k, v := range g {
		if !slices.Contains(names, k) {
			out[k] = v
		}
	}
	return out
}

// Only is the part of g that is called so.
func (g Given) Only(names ...string) Given {
	out := Given{}
	for _, name := range names {
		if v, ok := g[name]; ok {
			out[name] = v
		}
	}
	return out
}

// Pick finds a member of an answer as JSON has it, by the names on the way.
func Pick(answer any, path ...string) (any, bool) {
	raw, err := encode(answer)
	if err != nil {
		return nil, false
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, false
	}
	for _, name := range path {
		m, _ := v.(map[string]any)
		if v = m[name]; v == nil {
			return nil, false
		}
	}
	return v, true
}

// Behind are the tools that an operation names and that are there, in the order
// in which they were declared.
func (c *Catalog) Behind(o *Operation) []*Tool {
	var out []*Tool
	for _, t := range c.tools {
		if slices.Contains(o.Tools, t.Name) {
			out = append(out, t)
		}
	}
	return out
}

// Public reports whether a caller without a token may call the tool.
func (t *Tool) Public() bool { return len(t.Scopes) == 0 && t.Types == nil }

// Writes reports whether the tool may change anything.
func (t *Tool) Writes() bool { return t.Risk != RiskLow }

// Input and Output are the JSON Schemas of arguments and results. The same
// bytes every time.
func (t *Tool) Input() json.RawMessage  { return t.input }
func (t *Tool) Output() json.RawMessage { return t.output }

// written is the result of a tool that writes: all of what it may be, in a form
// that every client reads.
const written = `{"type":"object","properties":{"result":{"type":"boolean"},"outcome":{"type":"string","enum":["executed","preview","pending_approval"]},` +
	`"approval_id":{"type":["string","null"]},"approval":{"type":["object","null"]},"would_change":{"type":["object","null"]}},"required":["result","outcome"]}`

var toolName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

// AddTools adds rows for agents, over the operations that are there. It panics,
// at start, on what does not fit together.
func (c *Catalog) AddTools(list ...Tool) {
	for _, t := range list {
		if !toolName.MatchString(t.Name) || t.Title == "" || t.Description == "" || t.Category == "" || len(t.Servers) == 0 {
			panic("catalog: the tool " + t.Name + " is not declared in full")
		}
		if !knownCategory(t.Category) {
			panic("catalog: the tool " + t.Name + " is of no category")
		}
		t.Asks = slices.ContainsFunc(ToolServers(), func(x ToolServer) bool { return x.Asks && slices.Contains(t.Servers, x.ID) })
		if t.Operation != "" {
			o := c.byName[t.Operation]
			if o != nil && t.Asks { // its rows do not name tools beside the published ones
				o.Tools = append(slices.Clone(o.Tools), t.Name)
			}
			if o == nil || !slices.Contains(o.Tools, t.Name) {
				panic("catalog: " + t.Operation + " does not name the tool " + t.Name)
			}
			if o.Secret {
				panic("catalog: the tool " + t.Name + " gives a credential")
			}
			t.Scopes, t.Risk, t.Confirm, t.Types, t.Gate = o.Scopes, o.Risk, o.Confirm, o.Types, o.Gate
		} else if t.Run == nil {
			panic("catalog: the tool " + t.Name + " does nothing")
		}
		if t.Risk == "" {
			t.Risk = RiskLow
		}
		if t.Asks = t.Asks && (t.Writes() || t.Effect != Usual); t.Asks {
			t.Confirm = true
		}
		if t.Risk == RiskMedium && t.Effect == Usual {
			panic("catalog: the tool " + t.Name + " does not say whether it creates or overwrites")
		}
		if t.Confirm && !t.Asks && !slices.ContainsFunc(t.Arguments, func(a Argument) bool { return a.Name == "confirm" }) {
			t.Arguments = append(t.Arguments, Arguments("confirm boolean · true to execute; without it the call is refused, unless dry run or the approval queue applies")...)
		}
		t.input, t.output = inputSchema(t.Arguments), json.RawMessage(`{"type":"object"}`)
		if o := c.byName[t.Operation]; t.Writes() || t.Effect != Usual {
			t.output = json.RawMessage(written)
		} else if t.whole != nil && o.asIs && o.out.Kind() == reflect.Struct {
			t.output = shapeOf(o.out, false)
		} else if t.Run == nil && o.asIs && o.out.Kind() == reflect.Struct {
			t.output = resultSchema(o.out)
		}
		if t.Operation == approving { // what was approved may have failed
			t.output = json.RawMessage(strings.Replace(written, `"executed"`, `"executed","failed"`, 1))
		}
		for _, s := range t.Servers {
			if c.Tool(s, t.Name) != nil {
				panic("catalog: the tool " + t.Name + " is there twice on " + s)
			}
		}
		c.tools = append(c.tools, &t)
	}
}

// Tools lists the tools of a server in the order in which they were declared;
// "" is any server.
func (c *Catalog) Tools(server string) []*Tool {
	var out []*Tool
	for _, t := range c.tools {
		if t.on(server) {
			out = append(out, t)
		}
	}
	return out
}

// Tool finds a tool of a server; nil when there is none.
func (c *Catalog) Tool(server, name string) *Tool {
	for _, t := range c.tools {
		if t.Name == name && slices.Contains(t.Servers, server) {
			return t
		}
	}
	return nil
}
