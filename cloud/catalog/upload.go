package catalog

import (
	"context"
	"io"
	"reflect"

	"github.com/postern-io/postern/cloud"
)

// A member with the tag body:"file", a []byte, takes an uploaded file: the part
// called "file" of a body in multipart/form-data. The input's other members of
// the body are the parts beside it, as text.

// FormType is the content type of a body with an uploaded file.
const FormType = "multipart/form-data"

// MaxUpload is the most bytes that one uploaded file may have.
const MaxUpload = 20 << 20

// Upload is the index of the input's member that takes an uploaded file, nil
// when none does.
func (o *Operation) Upload() []int { return o.upload }

// Stream is the answer of an operation that gives bytes and no JSON. A caller who has
// the answer closes it.
type Stream struct {
	io.ReadCloser
	Size int64  // bytes
	Type string // content type
	Name string // for people who save it
}

// EventStream is the answer of a call that goes on: server-sent events until Serve returns. A
// caller who has the answer calls Serve, or Close in place of it. again gives the caller anew
// while it may go on.
type EventStream interface {
	Serve(ctx context.Context, w io.Writer, again func(context.Context) (cloud.Caller, error)) error
	Close()
}

var streamType = reflect.TypeFor[Stream]()

// Streams reports whether good answers are bytes and no JSON.
func (o *Operation) Streams() bool { return o.out == streamType }

// form is the schema of a body with an uploaded file.
func (s *schemas) form(o *Operation) object {
	schema := object{"type": "object"}
	if hasBody(o.in) {
		schema = s.members(o.in, true)
	}
	properties, _ := schema["properties"].(object)
	if properties == nil {
		properties = object{}
	}
	properties["file"] = object{"type": "string", "format": "binary", "description": o.in.FieldByIndex(o.upload).Tag.Get("doc")}
	required, _ := schema["required"].([]string)
	schema["properties"], schema["required"] = properties, append([]string{"file"}, required...)
	media := object{"schema": schema}
	if example, ok := o.Worked().(object); ok {
		example["file"] = "(the bytes of the file)"
		media["example"] = example
	}
	return object{FormType: media}
}
