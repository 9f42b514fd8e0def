package tool

import (
	"encoding/json"
	"strings"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/locale"
	"github.com/postern-io/postern/cloud/mcp"
)

// result is an answer as the model gets it, cut to what clients take.
func (k *call) result(out any) (*mcp.Result, error) {
	raw := json.RawMessage(compact(out))
	if out == nil { // done, by a call whose answer is not known any more
		raw = json.RawMessage(`{"result":true}`)
	}
	_, waits := out.(pendingBody)
	if _, said := catalog.Pick(raw, "outcome"); k.tool.Writes() && k.outcome == "" && !waits && !said {
		raw = with(raw, `"outcome":"`+executed+`"`)
	}
	if k.argument {
		raw = with(raw, `"deprecations":[{"item":"api_token argument","until":"2026-12-31"}]`)
	}
	raw, err := bounded(raw, k.caller.Language)
	return &mcp.Result{Structured: raw}, err
}

// with is a JSON object with one more member in front.
func with(raw json.RawMessage, member string) json.RawMessage {
	rest := raw[1:]
	if len(rest) > 0 && rest[0] != '}' {
		member += ","
	}
	return append([]byte("{"+member), rest...)
}

// maxResult is what one result may have, in bytes: what clients take as a rule.
const maxResult = 96 << 10

// bounded cuts the longest list of a result that is too long, and says so in it.
func bounded(raw json.RawMessage, lang string) (json.RawMessage, error) {
	if len(raw) <= maxResult {
		return raw, nil
	}
	var all map[string]any
	d := json.NewDecoder(strings.NewReader(string(raw)))
	d.UseNumber()
	if err := d.Decode(&all); err != nil {
		return nil, err
	}
	holder, name := longest(all)
	if holder == nil {
		return nil, cloud.E(cloud.TooLarge, "RESULT_TOO_LARGE")
	}
	list := holder[name].([]any)
	total := len(list)
	all["truncated"] = true
	for n := total; n > 0; { // each round keeps what fits by the average so far
		over := len(compact(all))
		if over <= maxResult {
			return compact(all), nil
		}
		n = min(n-1, n*maxResult/over)
		holder[name] = list[:n]
		all["truncated_hint"] = locale.Word(lang, "tool.truncated", n, total, name)
	}
	return nil, cloud.E(cloud.TooLarge, "RESULT_TOO_LARGE")
}

// longest finds the list with the most bytes, at any depth of objects.
func longest(v map[string]any) (holder map[string]any, name string) {
	most := 0
	var walk func(m map[string]any)
	walk = func(m map[string]any) {
		for k, x := range m {
			switch x := x.(type) {
			case map[string]any:
				walk(x)
			case []any:
				if n := len(compact(x)); n > most {
					most, holder, name = n, m, k
				}
			}
		}
	}
	walk(v)
	return holder, name
}
