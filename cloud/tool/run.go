package tool

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/locale"
)

// running is one tool at work: the Agent of its Run.
type running struct {
	*session
	tool *catalog.Tool
	via  cloud.Via
	once string // what makes its writes happen at most once, "" when nothing does

	mu       sync.Mutex
	replayed bool
	writes   []write
	warnings []string
}

// write is an operation that may change something, as the tool called it.
type write struct {
	operation *catalog.Operation
	values    map[string]any
}

func (r *running) Caller() cloud.Caller { return r.caller }

// Shown is an error in the caller's language, nil for one of ours.
func (r *running) Shown(err error) *catalog.PublicError {
	e := cloud.Shown(err)
	if e == nil {
		return nil
	}
	return &catalog.PublicError{Kind: e.Kind, Code: e.Code, Message: locale.Error(r.caller.Language, e.Code, e.Args...), Fields: locale.Fields(r.caller.Language, e.Fields)}
}

// Warn adds a warning to a preview.
func (r *running) Warn(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.warnings = append(r.warnings, text)
}

// runOperation does what the tool is for.
func (r *running) runOperation(ctx context.Context, given catalog.Given) (any, error) {
	if r.tool.Run != nil {
		return r.tool.Run(ctx, r, given)
	}
	given, err := r.named(ctx, given)
	if err != nil {
		return nil, err
	}
	return r.Do(ctx, r.tool.Operation, given.Without("idempotency_key"), given.Text("idempotency_key"))
}

// named is the arguments of a tool that is about one order, with its id in place
// of other names; those of other tools as they are.
func (r *running) named(ctx context.Context, given catalog.Given) (catalog.Given, error) {
	if !r.tool.Named {
		return given, nil
	}
	id, err := Named(ctx, r, given)
	if err != nil {
		return given, err
	}
	given = given.Without("order_ref", "tracking_number")
	given["order_id"] = id
	return given, nil
}

// Do passes one operation through the pipeline.
func (r *running) Do(ctx context.Context, operation string, values map[string]any, key string) (any, error) {
	o := r.cfg.Catalog.Find(operation)
	if o == nil {
		return nil, fmt.Errorf("the tool %s calls the unknown operation %s", r.tool.Name, operation)
	}
	who := r.who
	who.Via = r.via
	ctx, caller, _, err := r.cfg.Pipeline.Admit(catalog.Admitted(ctx, r.caller), o, who)
	if err != nil {
		return nil, err
	}
	k := catalog.Key{Value: key, Address: o.Method + " " + addressed(o, values), Request: compact(values)}
	if o.Writes() {
		r.mu.Lock()
		r.writes = append(r.writes, write{o, values})
		if r.once != "" {
			k = onceKey(r.once, len(r.writes), k.Request)
		}
		r.mu.Unlock()
	}
	if cloud.PreviewOf(ctx) != nil {
		k = catalog.Key{}
	}
	a, err := r.cfg.Pipeline.Run(ctx, o, caller, k, o.Values(values))
	if a.Replayed && k.Always {
		r.mu.Lock()
		r.replayed = true
		r.mu.Unlock()
	}
	return a.Body, err
}

// onceKey is the key of the n-th write, from 1, of a call that is done at most
// once.
func onceKey(once string, n int, request []byte) catalog.Key {
	return catalog.Key{Value: fmt.Sprintf("%s/%d", once, n), Address: "agent", Request: request, Always: true}
}

// addressed is an operation's address with what the values name.
func addressed(o *catalog.Operation, values map[string]any) string {
	path := o.Path
	for name, v := range values {
		path = strings.ReplaceAll(path, "{"+name+"}", fmt.Sprint(v))
	}
	return path
}

// Named is the id of the order that a call is about.
func Named(ctx context.Context, a catalog.Agent, given catalog.Given) (any, error) {
	if id, ok := given["order_id"]; ok {
		return id, nil
	}
	out, err := a.Do(ctx, "orders.detail", given.Only("order_ref", "tracking_number"), "")
	if err != nil {
		return nil, err
	}
	id, ok := catalog.Pick(out, "order", "order_id")
	if !ok {
		return nil, errors.New("an order has no id")
	}
	return id, nil
}
