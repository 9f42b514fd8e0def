package attack

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud/server"
)

// nested is an introspection whose answer grows with every level.
func nested(levels int) string {
	inner := "name description"
	for range levels {
		inner = "name description fields{name description args{name type{name}} type{" + inner + " ofType{" + inner + "}}}"
		if len(inner) > 3_000 {
			break
		}
	}
	return "{types{" + inner + "}}"
}

// A stranger asks for the schema in circles, or for the same many times over: the
// answer is an error, at a cost that does not grow with the document.
func TestIntrospectionHasAPrice(t *testing.T) {
	t.Parallel()
	c := start(t)
	for name, query := range map[string]string{
		"levels":    "{__schema" + nested(4) + "}",
		"aliases":   "{" + aliases(400, "__schema{types{name}}") + "}",
		"inner":     "{__schema{" + aliases(400, "types{name}") + "}}",
		"one type":  "{" + aliases(150, `__type(name:\"Order\"){name fields{name type{name}}}`) + "}",
		"fragments": "{__schema{types{...a}}} fragment a on __Type{fields{type{...b}}} fragment b on __Type{fields{type{...c}}} fragment c on __Type{fields{type{...d}}} fragment d on __Type{fields{type{name description}}}",
	} {
		a := c.send("POST", "/api/graphql", "", fmt.Sprintf(`{"query":"%s"}`, query))
		require.Less(t, len(a.raw), 4_000, name)
		errs, _ := a.json["errors"].([]any)
		require.NotEmpty(t, errs, name)
		require.Regexp(t, "too much|depth exceeded", string(a.raw), name)
	}
	small := c.ok("POST", "/api/graphql", "", `{"query":"{__schema{queryType{name}} __type(name:\"Order\"){name fields{name type{name kind ofType{name}}}}}"}`)
	require.Equal(t, "Query", small.at("data.__schema.queryType.name"), "%s", small.raw)
}

// Where it is switched off for strangers, only callers with a token introspect.
func TestIntrospectionMayNeedAToken(t *testing.T) {
	t.Parallel()
	c := start(t, func(cfg *server.Config) { cfg.HideSchema = true })
	for _, query := range []string{`{__schema{queryType{name}}}`, `{...f} fragment f on Query{__type(name:\"Order\"){name}}`} {
		body := fmt.Sprintf(`{"query":"%s"}`, query)
		a := c.send("POST", "/api/graphql", "", body)
		require.Contains(t, string(a.raw), "UNAUTHENTICATED", query)
		require.NotContains(t, string(a.raw), `"name":`)
		require.Nil(t, c.send("POST", "/api/graphql", c.box.Admin.Token, body).json["errors"], query)
	}
	require.Contains(t, string(c.send("POST", "/api/graphql", "", `{"query":"{__typename}"}`).raw), `"Query"`)
}

func aliases(n int, field string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "a%d:%s ", i, field)
	}
	return b.String()
}

// What tools of others ask for is answered, whole, and counts as a call.
func TestTheStandardIntrospectionIsAnswered(t *testing.T) {
	t.Parallel()
	c := start(t)
	body, err := json.Marshal(map[string]string{"query": standardIntrospection, "operationName": "IntrospectionQuery"})
	require.NoError(t, err)
	a := c.ok("POST", "/api/graphql", "", string(body))
	require.Nil(t, a.json["errors"], "%.300s", a.raw)
	require.Greater(t, len(a.at("data.__schema.types").([]any)), 30)
	again := c.ok("POST", "/api/graphql", c.box.Admin.Token, string(body))
	require.Equal(t, string(a.raw), string(again.raw))
	bad := c.send("POST", "/api/graphql", "no-such-token", string(body))
	require.Contains(t, string(bad.raw), "TOKEN_INVALID")
}

// standardIntrospection is what graphql-js asks (getIntrospectionQuery).
const standardIntrospection = `
    query IntrospectionQuery {
      __schema {
        queryType { name }
        mutationType { name }
        subscriptionType { name }
        types { ...FullType }
        directives { name description locations args { ...InputValue } }
      }
    }

    fragment FullType on __Type {
      kind
      name
      description
      fields(includeDeprecated: true) {
        name
        description
        args { ...InputValue }
        type { ...TypeRef }
        isDeprecated
        deprecationReason
      }
      inputFields { ...InputValue }
      interfaces { ...TypeRef }
      enumValues(includeDeprecated: true) { name description isDeprecated deprecationReason }
      possibleTypes { ...TypeRef }
    }

    fragment InputValue on __InputValue { name description type { ...TypeRef } defaultValue }

    fragment TypeRef on __Type {
      kind name
      ofType { kind name ofType { kind name ofType { kind name ofType { kind name ofType { kind name ofType { kind name ofType { kind name ofType { kind name ofType { kind name } } } } } } } } }
    }
  `
