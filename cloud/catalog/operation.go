// Package catalog is the one table of operations and what every call passes,
// whatever face it came through.
//
// An operation is declared once, as a value made by Define: its name, who may
// call it, its scopes and risk, its REST address, its GraphQL field, its errors,
// and the function of the feature. From the table come the routes, the OpenAPI
// document and the permission matrix that the tests walk; a face never calls a
// feature around it. The table holds working operations alone.
//
// A call passes, in this order: token, rate limit, feature gate, account type
// and scope, input, Idempotency-Key, operation, price hiding, audit. The last
// three meet in the database: the operation's first transaction takes the key,
// stores what a repeat is answered, and leaves an audit line. Operations get a
// context with a deadline. Rate limits are kept in memory of this node. Safe
// for concurrent use.
package catalog

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
)

// Operation is one row of the table.
type Operation struct {
	Name    string // area, thing and verb: third_party.deliveries.create
	Summary string // one line for people, in English: an imperative and a resource
	// Description says what a caller has to know besides, in one to three sentences.
	Description string
	Tag         string // interface area, one of Tags

	Types []cloud.AccountType // account types that may call it; nil: all, with or without a token
	// Recipient lets those call it besides who have the token of an order's
	// recipient: about that order, which the operation sees to.
	Recipient bool
	Scopes    []string // what an employee, key or agent needs besides: all of them
	Risk      Risk
	// Confirm says that an agent asks a person first; Tools are the agent tools
	// that the operation is behind.
	Confirm bool
	Tools   []string
	// Tool is a tool for staff of cabinets that stands for the whole operation; without
	// a name there is none.
	Tool    Whole
	Surface string // surface that a key needs for it, wherever the call comes from; "" is the one it comes from
	Gate    string // feature that must be on for the caller's business; "" always
	Family  string // kind of order whose prices the answer has; "" none

	// REST address. Path has {names} in braces.
	Method, Path string
	Status       int   // of a good answer when the operation says nothing else; 0 is 200
	Also         []int // further statuses of good answers
	Group        Group
	// Harmless says that a call by another method than GET changes nothing that
	// matters to a person: keys that ask a person first do not ask about it.
	Harmless    bool
	NoToken     bool     // a token is not looked at
	NoTokenCode string   // error of a token that is not good; "" is TOKEN_INVALID
	Idempotent  bool     // takes an Idempotency-Key; its decisions that write give cloud.Changes.Answer, of the type Out
	SetsUp      bool     // open to accounts that must set up a second factor before anything else
	NoPass      bool     // closed to operators of the platform inside a business: it would outlast their pass
	EndsToken   bool     // it ends the token of the call: programs are kept from it
	Secret      bool     // the answer holds a secret: never compressed, cached or logged
	Tagged      bool     // good answers have an ETag; with 304
	Kept        bool     // the answer to a caller without a token is kept for a moment
	Media       []string // types of a body beside application/json; of answers that are a Stream
	Gives       []string // types of documents of others that good answers may be instead of Out
	// Live says that a caller who accepts text/event-stream gets an EventStream: what is in
	// the answer, as it comes.
	Live bool
	// Wait is how long a call may wait for something to happen, beyond the time of every call.
	Wait time.Duration
	// Fixed are members of a body that are refused by name: people look for them here,
	// and the operation does not change them.
	Fixed   []string
	Errors  []string // codes beside those that every operation may answer
	GraphQL *GraphQL // its field there; nil: one by its name, unless it cannot be one
	// Noun is the kind of record that the operation lists, or finds where there is no
	// list: the console's pages follow from it.
	Noun *Noun
	// When are the states of its record in which it can be done, as the noun's State has
	// them; nil: it depends on more than that, or on nothing. Pages do not offer it in others.
	When []string
	// Free are members of its record that have no value while it can be done.
	Free []string
	// Needs are members of its record that have a value while it can be done.
	Needs []string
	// Offered reports whether pages offer it to a caller about a record, as members by
	// name, beyond the caller's rights on the operation; nil: always.
	Offered func(ctx context.Context, c cloud.Caller, record map[string]any) bool
	// Undo is what takes back a call of low risk; nil when nothing does.
	Undo *Inverse
	// Many is the most records that a job runs it for, or the most lines of a file; 0:
	// it is for one alone. Such an operation writes by decisions and does nothing
	// outside of them.
	Many int
	// Shows says that people look at the answer: pages show it.
	Shows bool
	// Example is a good call: members of the input as a JSON object, those of path and
	// query among them; of an input that takes the body as it came, the body. "" when no
	// member is needed.
	Example  string
	Answered []byte // a good answer that was really given, in JSON; nil: none is shown

	in, out reflect.Type
	raw     []int    // member of the input that takes the body as it came, nil when none does
	upload  []int    // member of the input that takes an uploaded file, nil when none does
	target  []Member // of the input, that say what the call is about
	bind    func(bind Bind) (in any, err error)
	run     func(ctx context.Context, c cloud.Caller, in any) (out any, err error)
	shape   func(out any) Answer
	asIs    bool // the answer is what the operation gives
}

// Inverse is the call that takes back another one about the same record.
type Inverse struct {
	Operation string
	// Fills are members of its input, with members of the record as it was before in
	// braces: note:{note}.
	Fills map[string]string
	// Empty are members of the record that were empty before: where one was not, the
	// inverse would not bring back what was there.
	Empty []string
}

// GraphQL is an operation's field there. Arguments are the input's members in
// camel case, or one argument called input.
type GraphQL struct {
	Field    string
	Type     string // name of the answer's type; "" is made from the Go type
	Pick     string // member of the answer that is given instead of the whole
	JSON     bool   // the answer is one JSON value
	Nullable bool   // null where others have an error of the whole answer
	Input    bool   // one argument called input
	Filter   string // name of the type of an argument called filter, which holds every member but page, per_page, cursor and sort
	Mutation bool
	Plain    bool // made from the row alone: its types give way to others in names
}

// Risk says what a call can do.
type Risk string

// Risks. The zero value is that of a read.
const (
	RiskLow    Risk = "low"    // reads, and writes that do no harm
	RiskMedium Risk = "medium" // changes what others rely on
	RiskHigh   Risk = "high"   // opens doors, ends orders, shows secrets
)

// Group is a rate limit that operations share.
type Group uint8

// Groups. General is by token, or by address without one; Replay and Batch are
// besides.
const (
	General   Group = iota
	Replay          // redeliveries and test sends
	Batch           // batch and asynchronous submissions
	Quotes          // of prices
	Ingest          // by provider
	Unlimited       // the operation limits itself
)

// Bind fills the input, a pointer, from a call as a face has it.
type Bind func(in any) error

// Answer is what a caller gets. Status 0 is that of the operation.
type Answer struct {
	Status  int
	Body    any
	Headers [][2]string
	ETag    bool   // over the body, with 304
	Tag     string // that stands for the body, where its bytes say more; with 304
	Type    string // of Body; "" is application/json
	// Replayed is set for the first answer of a call that was repeated; Body is
	// its JSON.
	Replayed bool
	// About is what a kept answer is about.
	About cloud.AnswerSubject
}

// Define makes a row of a typed function of a feature. Members of In come from
// the path (tag path), the query (tag query), a header (tag header) and the
// body (tag json); one with the tag body:"raw" takes the body as it came, one
// with the tag body:"file" an uploaded file.
// answer shapes the result where it is more than Out; nil is Out as it is.
func Define[In, Out any](o Operation, fn func(context.Context, cloud.Caller, In) (Out, error), answer func(Out) Answer) Operation {
	o.in, o.out = reflect.TypeFor[In](), reflect.TypeFor[Out]()
	if o.in.Kind() != reflect.Struct {
		panic(fmt.Sprintf("catalog: input %s of %s is no struct", o.in, o.Name))
	}
	o.raw, o.upload = bodyMember(o.in, "raw"), bodyMember(o.in, "file")
	if o.Risk == "" {
		o.Risk = RiskLow
	}
	for _, m := range o.Members() {
		if m.Place == "path" {
			o.target = append(o.target, m)
		}
	}
	o.bind = func(bind Bind) (any, error) {
		var in In
		err := bind(&in)
		if err == nil {
			err = check.Input(&in)
		}
		return in, err
	}
	o.run = func(ctx context.Context, c cloud.Caller, in any) (any, error) { return fn(ctx, c, in.(In)) }
	o.asIs = answer == nil
	o.shape = func(v any) Answer {
		out, _ := v.(Out)
		if answer == nil {
			return Answer{Body: out}
		}
		return answer(out)
	}
	if o.GraphQL == nil && o.asField() {
		o.GraphQL = &GraphQL{Field: fieldName(o.Name), Mutation: o.Method != http.MethodGet, Plain: true}
	}
	return o
}

// asField reports whether an operation can be a field of GraphQL: JSON goes in
// and comes out, and the answer holds no secret, since documents are kept and
// answers of several calls stand side by side.
func (o *Operation) asField() bool {
	return !o.Secret && !o.NoToken && !o.Live && o.raw == nil && o.upload == nil && len(o.Media) == 0 && len(o.Gives) == 0 &&
		o.out.Kind() == reflect.Struct && o.out.NumField() > 0 && o.out != reflect.TypeFor[Stream]()
}

// fieldName is an operation's name in camel case: order_chat.read is
// orderChatRead.
func fieldName(name string) string {
	parts := strings.FieldsFunc(name, func(r rune) bool { return r == '.' || r == '_' })
	for i := 1; i < len(parts); i++ {
		parts[i] = strings.ToUpper(parts[i][:1]) + parts[i][1:]
	}
	return strings.Join(parts, "")
}

// In is the type of the input, a struct; Out that of the body of a good answer.
func (o *Operation) In() reflect.Type  { return o.in }
func (o *Operation) Out() reflect.Type { return o.out }

// Raw is the index of the input's member that takes the body as it came, nil
// when none does.
func (o *Operation) Raw() []int { return o.raw }

// HasBody reports whether calls have a JSON body.
func (o *Operation) HasBody() bool {
	return o.raw == nil && o.upload == nil && (o.Method == "POST" || o.Method == "PUT" || o.Method == "PATCH")
}

// NeedsToken reports whether a caller without a token is refused. An operation that is open
// to all and has an error of its own for bad tokens asks for one itself.
func (o *Operation) NeedsToken() bool {
	return !o.NoToken && (o.Types != nil || o.NoTokenCode != "")
}

// Writes reports whether the operation may change anything.
func (o *Operation) Writes() bool { return o.Method != "GET" }

// underPass reports whether an operator of the platform may call the operation
// inside a business: not what gives credentials or outlasts the pass, nor what is
// about one's own account.
func (o *Operation) underPass() bool {
	return !o.Secret && !o.NoPass && !slices.Contains(o.Types, cloud.PlatformAdmin)
}

// Held reports whether a key that asks a person first asks about the operation.
func (o *Operation) Held() bool { return o.Writes() && !o.Harmless }

func bodyMember(t reflect.Type, kind string) []int {
	for _, f := range reflect.VisibleFields(t) {
		if f.Tag.Get("body") == kind {
			return f.Index
		}
	}
	return nil
}

// Catalog is the table.
type Catalog struct {
	list   []Operation
	byName map[string]*Operation
	tools  []*Tool
	nouns  []Noun
}

// New makes a table. Names and addresses must be different, areas known, scopes
// well formed and examples good calls; it panics otherwise, at start.
func New(rows ...[]Operation) *Catalog {
	c := &Catalog{list: slices.Concat(rows...), byName: map[string]*Operation{}}
	seen := map[string]bool{}
	for i := range c.list {
		o := &c.list[i]
		route := o.Method + " " + o.Path
		switch {
		case o.run == nil:
			panic("catalog: " + o.Name + " was not made by Define")
		case c.byName[o.Name] != nil || seen[route]:
			panic("catalog: " + o.Name + " or " + route + " is there twice")
		case !knownTag(o.Tag):
			panic("catalog: " + o.Name + " has no interface area")
		case o.Summary == "" || o.Description == "":
			panic("catalog: " + o.Name + " has no summary or no description")
		case o.Idempotent && (o.Types == nil || !o.Writes()):
			panic("catalog: " + o.Name + " takes keys but names no account types, or only reads")
		}
		for _, s := range o.Scopes {
			if !cloud.KnownScope(s) {
				panic("catalog: " + o.Name + " needs the unknown scope " + s)
			}
		}
		o.checkExample()
		c.byName[o.Name], seen[route] = o, true
	}
	return c
}

// Operations lists the rows in the order in which they were declared.
func (c *Catalog) Operations() []Operation { return slices.Clone(c.list) }

// Find finds a row by name; nil when there is none.
func (c *Catalog) Find(name string) *Operation { return c.byName[name] }

// GraphQLField is a root field of the GraphQL schema with the operation behind
// it. Types are as the schema spells them: [Order!]!.
type GraphQLField struct {
	Operation *Operation
	Name      string
	Mutation  bool
	Arguments []GraphQLArgument
	Returns   string
	// Document asks for the field's own plain members; Variables are those of the
	// operation's example, nil when it has none.
	Document  string
	Variables map[string]any
}

// GraphQLArgument is an argument of a root field.
type GraphQLArgument struct {
	Name        string `json:"name"`
	Type        string `json:"type"`
	Required    bool   `json:"required"`
	Description string `json:"description"`
}
