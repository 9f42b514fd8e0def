package catalog

import (
	"context"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/postern-io/postern/cloud"
)

// Audit lines of what was done are written by the store, in the transaction
// that did it: cloud.Call says by whom and how. Here are those of what was not
// done: refused attempts at operations of high risk by a known account.

// callOf is what the store gets of a call.
func callOf(o *Operation, c cloud.Caller, w Who) *cloud.Call {
	call := &cloud.Call{BusinessID: c.Account.BusinessID, Actor: "anonymous", Operation: o.Name, Surface: w.Surface, IP: w.IP, RequestID: w.RequestID, Via: w.Via, Pass: c.Pass}
	switch {
	case c.Recipient != 0:
		call.Actor = "recipient:" + strconv.FormatInt(int64(c.Recipient), 10)
	case !c.Anonymous():
		call.Actor = c.Account.ID.Actor()
	}
	return call
}

const maxTarget = 160 // characters

// about says what a call is about: what the address names.
func (o *Operation) about(in any) string {
	var parts []string
	for _, m := range o.target {
		parts = append(parts, m.Name+"="+fmt.Sprint(reflect.ValueOf(in).FieldByIndex(m.Field.Index).Interface()))
	}
	text := []rune(strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, strings.Join(parts, " ")))
	return string(text[:min(len(text), maxTarget)])
}

// refused leaves a line about an attempt at an operation of high risk.
func (p *Pipeline) refused(ctx context.Context, o *Operation, c cloud.Caller, err error) {
	shown, call := cloud.Shown(err), cloud.CallOf(ctx)
	if o.Risk != RiskHigh || c.Anonymous() || p.cfg.Calls == nil || shown == nil || shown.Kind == cloud.Limited || call == nil {
		return
	}
	attempt := &cloud.Call{BusinessID: call.BusinessID, Actor: call.Actor, Operation: call.Operation, Target: call.Target, Surface: call.Surface, IP: call.IP,
		RequestID: call.RequestID, Pass: call.Pass, Outcome: shown.Code}
	ctx, cancel := context.WithTimeout(cloud.WithCall(context.WithoutCancel(ctx), attempt), keeping)
	defer cancel()
	line := cloud.Audit{BusinessID: call.BusinessID, At: time.Now().UTC(), Actor: call.Actor, Action: call.Operation, Target: call.Target}
	if err := p.cfg.Calls.Decide(ctx, 0, func(cloud.View) (*cloud.Changes, error) {
		return &cloud.Changes{AuditChanges: cloud.AuditChanges{Audits: []cloud.Audit{line}}}, nil
	}); err != nil {
		p.cfg.Log.Error("refused attempt is not kept", "operation", o.Name, "err", err)
	}
}
