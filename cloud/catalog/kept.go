package catalog

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/postern-io/postern/cloud"
)

const maxAnswer = 4 << 20 // bytes of one kept answer

// keptAnswer is how an answer is stored.
type keptAnswer struct {
	Status  int             `json:"status,omitempty"`
	Body    json.RawMessage `json:"body,omitempty"`
	Headers [][2]string     `json:"headers,omitempty"`
	ETag    bool            `json:"etag,omitempty"`
	Type    string          `json:"type,omitempty"`
	Error   *refusal        `json:"error,omitempty"`
}

// refusal is an error as it is stored; each face makes its body of it, in the
// language of who asks.
type refusal struct {
	Kind    cloud.Kind          `json:"kind"`
	Code    string              `json:"code"`
	Args    []any               `json:"args,omitempty"`
	Fields  map[string][]string `json:"fields,omitempty"`
	Details map[string]any      `json:"details,omitempty"`
	Members map[string]any      `json:"members,omitempty"`
}

func encodeKept(a Answer) ([]byte, error) {
	body, err := encode(a.Body)
	if err != nil {
		return nil, err
	}
	return bounded(keptAnswer{Status: a.Status, Body: body, Headers: a.Headers, ETag: a.ETag, Type: a.Type})
}

func keptError(e *cloud.Error) ([]byte, error) {
	return bounded(keptAnswer{Error: &refusal{e.Kind, e.Code, e.Args, e.Fields, e.Details, e.Members}})
}

func bounded(k keptAnswer) ([]byte, error) {
	raw, err := encode(k)
	if err == nil && len(raw) > maxAnswer {
		err = fmt.Errorf("an answer of %d bytes is too long to be kept", len(raw))
	}
	return raw, err
}

// encode is JSON with nothing escaped for HTML: the bytes that faces send.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// replayed is an answer as it was stored.
func replayed(raw []byte) (Answer, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var k keptAnswer
	if err := d.Decode(&k); err != nil {
		return Answer{}, fmt.Errorf("kept answer: %w", err)
	}
	if e := k.Error; e != nil {
		return Answer{Replayed: true}, &cloud.Error{Kind: e.Kind, Code: e.Code, Args: exactNumbers(e.Args), Fields: e.Fields, Details: e.Details, Members: e.Members}
	}
	if k.Body == nil { // done, and nothing more is known
		return Answer{Replayed: true}, nil
	}
	return Answer{Status: k.Status, Body: k.Body, Headers: k.Headers, ETag: k.ETag, Type: k.Type, Replayed: true}, nil
}

// exactNumbers are arguments of a message with whole numbers as they were, since messages
// format them, and others as fractions.
func exactNumbers(args []any) []any {
	for i, a := range args {
		n, ok := a.(json.Number)
		if !ok {
			continue
		}
		if whole, err := n.Int64(); err == nil {
			args[i] = whole
		} else if f, err := n.Float64(); err == nil {
			args[i] = f
		}
	}
	return args
}
