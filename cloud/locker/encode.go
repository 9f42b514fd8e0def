package locker

import (
	"bytes"
	"encoding/json"
)

// encodeBody is an event's bytes as they go out: UTF-8, nothing escaped for
// HTML, no newline at the end.
func encodeBody(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}
