package mcp

// maxBatch is how many messages one body may hold.
const maxBatch = 20

// message is one JSON-RPC message. Its bytes are parts of the body.
type message struct {
	id       []byte // as it came; nil: a notification, or a response
	method   string
	response bool // an answer to something that was never asked
	params   object
	meta     object // params._meta
	metaOdd  bool   // params._meta is no object
	repeated string // path of an argument that is there twice
}

// decode reads what steps 7 and 8 of the ladder ask for. ok is false when raw
// is no message.
func decode(raw []byte) (m *message, ok bool) {
	o, ok := split(raw)
	if !ok {
		return nil, false
	}
	if v, _ := o.text("jsonrpc"); v != "2.0" {
		return nil, false
	}
	m = &message{id: o.get("id")}
	if m.id != nil && !isText(m.id) && !isWhole(m.id) {
		return nil, false
	}
	if o.get("method") == nil && (o.get("result") != nil || o.get("error") != nil) {
		return &message{response: true}, true
	}
	if m.method, ok = o.text("method"); !ok {
		return nil, false
	}
	params := o.get("params")
	if params == nil {
		return m, true
	}
	if m.params, ok = split(params); !ok {
		return nil, false
	}
	if meta := m.params.get("_meta"); meta != nil {
		m.meta, ok = split(meta)
		m.metaOdd = !ok
	}
	return m, true
}

// Members of _meta.
const (
	metaPrefix       = "io.modelcontextprotocol/"
	metaVersion      = metaPrefix + "protocolVersion"
	metaCapabilities = metaPrefix + "clientCapabilities"
	metaClient       = metaPrefix + "clientInfo"
	metaLogLevel     = metaPrefix + "logLevel"
)

// client is what the other side calls itself.
func (m *message) client() string {
	raw := m.meta.get(metaClient)
	if raw == nil && m.method == "initialize" {
		raw = m.params.get("clientInfo")
	}
	info, _ := split(raw)
	name, _ := info.text("name")
	if version, ok := info.text("version"); ok && version != "" {
		name += " " + version
	}
	return short(stripControl(name))
}

// stripControl is text without control characters.
func stripControl(text string) string {
	b := make([]rune, 0, len(text))
	for _, r := range text {
		if r >= 0x20 && r != 0x7f {
			b = append(b, r)
		}
	}
	return string(b)
}
