package cloud

import (
	"regexp"
	"strings"
)

// Masked stands for a secret where it is shown.
const Masked = "***"

// secretEnds are what names of secrets end with, in lower case without marks
// between words.
var secretEnds = []string{"secret", "secretnext", "secretstandard", "secretnextstandard", "token", "tokens", "password", "passphrase", "passcode", "apikey", "privatekey", "credential", "credentials", "authorization",
	"pickupcode", "deliverycode", "cardnumber", "cvc", "cvv"}

// IsSecretName reports whether the name of a member or argument says that its
// value is a secret. Names that only begin like one, such as token_name, do not.
func IsSecretName(name string) bool {
	name = strings.ToLower(strings.NewReplacer("-", "", "_", "", " ", "").Replace(name))
	for _, end := range secretEnds {
		if strings.HasSuffix(name, end) {
			return true
		}
	}
	return name == "pin"
}

// MaskSecrets is a value of JSON with Masked for each member that is a secret by
// its name. Objects and lists are copied.
func MaskSecrets(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, m := range v {
			if out[name] = MaskSecrets(m); m != nil && IsSecretName(name) {
				out[name] = Masked
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = MaskSecrets(v[i])
		}
		return out
	}
	return v
}

// GraphQLQueryTool is the tool whose arguments hold a GraphQL document.
const GraphQLQueryTool = "run_graphql_query"

// texts are the string literals of GraphQL; bound are variables in the place of
// an argument or member, by whose name they are judged.
var (
	texts = regexp.MustCompile(`(?s)"""(?:\\"""|.)*?"""|"(?:\\.|[^"\\])*"`)
	bound = regexp.MustCompile(`([_A-Za-z][_0-9A-Za-z]*)\s*:\s*\$([_A-Za-z][_0-9A-Za-z]*)`)
)

// MaskToolArguments are the arguments of a tool without secrets. Of a GraphQL
// document every text is masked, and every variable that stands where a secret
// is asked for: names say nothing about either.
func MaskToolArguments(tool string, arguments any) any {
	out, ok := MaskSecrets(arguments).(map[string]any)
	if !ok || tool != GraphQLQueryTool {
		return MaskSecrets(arguments)
	}
	query, _ := out["query"].(string)
	query = texts.ReplaceAllString(query, `"`+Masked+`"`)
	if i := strings.IndexByte(texts.ReplaceAllString(query, ""), '"'); i >= 0 { // a text without an end
		query = query[:strings.LastIndexByte(query, '"')] + `"` + Masked
	}
	out["query"] = query
	variables, _ := out["variables"].(map[string]any)
	for _, m := range bound.FindAllStringSubmatch(query, -1) {
		if _, given := variables[m[2]]; given && IsSecretName(m[1]) {
			variables[m[2]] = Masked
		}
	}
	return out
}
