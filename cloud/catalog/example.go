package catalog

import (
	"encoding/json"
	"fmt"
	"strings"
)

// WorkedInput is the operation's example by member name, as JSON has it; nil when
// it has none, or takes its body as it came.
func (o *Operation) WorkedInput() map[string]any {
	if o.Example == "" || o.raw != nil {
		return nil
	}
	return o.example()
}

// Worked is the operation's example as the body of a request; nil when it takes
// none or has no example.
func (o *Operation) Worked() any {
	if o.Example == "" || o.raw == nil && o.upload == nil && (!o.HasBody() || !hasBody(o.in)) {
		return nil
	}
	body := o.example()
	if o.raw == nil {
		for _, m := range o.Members() {
			if m.Place != "" {
				delete(body, m.Name)
			}
		}
	}
	return body
}

func (o *Operation) example() map[string]any {
	var out map[string]any
	d := json.NewDecoder(strings.NewReader(o.Example))
	d.UseNumber() // ids are no floating point numbers
	if err := d.Decode(&out); err != nil {
		panic("catalog: the example of " + o.Name + " is no JSON object: " + err.Error())
	}
	return out
}

// checkExample panics unless the example is a call that gets as far as the
// feature. One that needs no member has none.
func (o *Operation) checkExample() {
	if o.raw != nil {
		if o.Example == "" {
			panic("catalog: " + o.Name + " takes a body and has no example")
		}
		o.example()
		return
	}
	if _, err := o.bind(o.Values(o.WorkedInput())); err != nil {
		panic(fmt.Sprintf("catalog: the example of %s is no good call: %v", o.Name, err))
	}
	for _, m := range o.Members() {
		if _, ok := o.WorkedInput()[m.Name]; !ok && m.Required {
			panic("catalog: the example of " + o.Name + " has no " + m.Name)
		}
	}
}
