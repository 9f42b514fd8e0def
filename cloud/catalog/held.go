package catalog

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/postern-io/postern/cloud"
)

// Outcomes of writes that were not done.
const (
	OutcomePreview = "preview"
	OutcomePending = "pending_approval"
)

// Held is the error of a call that its key may not make by itself: it was tried,
// or waits for a person. Faces answer with Body.
type Held struct {
	Outcome  string           // OutcomePreview, OutcomePending
	Approval cloud.ApprovalID // of one that waits
	Body     any              // an object with the member outcome
}

func (h *Held) Error() string { return "the call is not done: " + h.Outcome }

// Status is that of an answer by HTTP: 202 for a call that waits.
func (h *Held) Status() int {
	if h.Outcome == OutcomePending {
		return 202
	}
	return 200
}

// approving is the operation by which a person decides. A key that asks a person
// first is not one.
const approving = "approvals.approve"

// deciding are the operations about what waits, which never wait.
var deciding = map[string]bool{approving: true, "approvals.reject": true, "approvals.reject_many": true}

// Approves reports whether the operation is the one by which a person decides
// that a call is done. It is part of no call that waits itself.
func (o *Operation) Approves() bool { return o.Name == approving }

// decided reports whether a person let a call through, after a look at it.
func decided(call *cloud.Call) bool { return call != nil && call.Via.Consent == "approval" }

// hold keeps a call from being done that the policy of its token holds back. A
// dry run is no call.
func (p *Pipeline) hold(ctx context.Context, o *Operation, c cloud.Caller, in any) error {
	t, ok := TokenOf(ctx)
	switch {
	case o.Approves() && decided(cloud.CallOf(ctx)): // a person decides about each call itself
		return cloud.E(cloud.Forbidden, "APPROVAL_NEEDS_PERSON")
	case !ok || !o.Held() || cloud.PreviewOf(ctx) != nil || decided(cloud.CallOf(ctx)):
		return nil
	case o.Approves() && (t.Policy.Asks() || t.Policy.DryRunOnly):
		return cloud.E(cloud.Forbidden, "APPROVAL_NEEDS_PERSON")
	case deciding[o.Name] && !t.Policy.DryRunOnly:
		return nil
	case !t.Policy.DryRunOnly && !t.Policy.Waits(o.Risk == RiskHigh):
		return nil
	}
	given, err := o.given(in)
	if err != nil {
		return err
	}
	if p.cfg.Hold == nil || o.Secret || c.Account.BusinessID == 0 { // approvals are a business's
		return cloud.E(cloud.Forbidden, "APPROVAL_NOT_POSSIBLE", o.Name)
	}
	held, err := p.cfg.Hold(ctx, o, c, given, !t.Policy.DryRunOnly)
	if err != nil {
		return err
	}
	return held
}

// given are the values by which Values makes an input again. Error:
// APPROVAL_NOT_POSSIBLE for one that is more than its members, as an uploaded
// file is.
func (o *Operation) given(in any) (map[string]any, error) {
	impossible := cloud.E(cloud.Forbidden, "APPROVAL_NOT_POSSIBLE", o.Name)
	if o.raw != nil || o.upload != nil {
		return nil, impossible
	}
	raw, err := json.Marshal(in)
	if err != nil {
		return nil, fmt.Errorf("encode input of %s: %w", o.Name, err)
	}
	var body map[string]any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&body); err != nil {
		return nil, fmt.Errorf("read input of %s: %w", o.Name, err)
	}
	out := map[string]any{}
	for _, m := range o.Members() {
		v := reflect.ValueOf(in).FieldByIndex(m.Field.Index)
		switch {
		case v.IsZero():
		case m.Place == "":
			out[m.Name] = body[m.Name]
		default:
			out[m.Name] = inAddress(v)
		}
	}
	again := reflect.New(o.in)
	if err := o.Values(out)(again.Interface()); err != nil || !reflect.DeepEqual(again.Elem().Interface(), in) {
		return nil, impossible
	}
	return out, nil
}

// inAddress is a value of a path or query as SetText reads it.
func inAddress(v reflect.Value) any {
	switch v.Kind() {
	case reflect.Pointer:
		return inAddress(v.Elem())
	case reflect.Slice:
		parts := make([]string, v.Len())
		for i := range parts {
			parts[i] = fmt.Sprint(inAddress(v.Index(i)))
		}
		return strings.Join(parts, ",")
	case reflect.Int, reflect.Int64:
		return v.Int()
	case reflect.Bool:
		return v.Bool()
	case reflect.Float64:
		return v.Float()
	}
	return v.String()
}

// APIServer is the server of approvals of calls that came by REST or GraphQL:
// their tool is the operation.
const APIServer = "api"

// Call is an operation as a tool without a server, for calls that wait.
func (o *Operation) Call() *Tool {
	return &Tool{Name: o.Name, Title: o.Summary, Operation: o.Name, Scopes: o.Scopes, Risk: o.Risk, Confirm: o.Confirm, Types: o.Types, Gate: o.Gate}
}
