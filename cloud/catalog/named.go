package catalog

import "reflect"

// Schemas makes JSON Schemas of Go values for documents other than the
// interface's own. Not safe for concurrent use.
type Schemas struct{ s *schemas }

// NewSchemas returns one that knows no types yet.
func NewSchemas() Schemas { return Schemas{newSchemas()} }

// Of is the schema of a value's type as it is answered or sent. Structs with a
// name are referred to below #/components/schemas.
func (s Schemas) Of(v any) map[string]any { return s.s.of(reflect.TypeOf(v), false) }

// Members is the schema of a struct itself, even of one that has a name.
func (s Schemas) Members(v any) map[string]any { return s.s.members(reflect.TypeOf(v), false) }

// Named are the schemas that have been referred to so far, by name.
func (s Schemas) Named() map[string]any { return s.s.list }
