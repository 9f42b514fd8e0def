package graphql

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/postern-io/postern/cloud/check"
)

// wrongType is how the library says that a value is of no type that a variable takes.
var wrongType = regexp.MustCompile(`^(?:cannot use \S+ as (\S+)|must be an? (\S+), not an? \S+)$`)

// typeMessages are the messages about values of other types, by the GraphQL type that is asked
// for. Other types are objects.
var typeMessages = map[string]string{
	"String": check.MessageText, "ID": check.MessageText, "Int": check.MessageWhole, "Long": check.MessageWhole,
	"Float": check.MessageNumber, "Boolean": check.MessageBool, "DateTime": check.MessageTime,
}

// ofVariable is an error about a part of a request's variables, by the part's path, as REST
// says it of a member; nil for other errors.
func ofVariable(e *gqlerror.Error) check.Fields {
	if len(e.Path) < 2 || e.Path[0] != ast.PathName("variable") {
		return nil
	}
	parts := make([]string, len(e.Path)-1)
	for i, p := range e.Path[1:] {
		parts[i] = fmt.Sprint(p)
	}
	f, path := check.Fields{}, strings.Join(parts, ".")
	m := wrongType.FindStringSubmatch(e.Message)
	switch {
	case e.Message == "must be defined" || e.Message == "cannot be null":
		f.Say(path, check.MessageRequired)
	case e.Message == "unknown field":
		f.Say(path, check.MessageNoMember)
	case m == nil:
		f.Add(path, path+": "+e.Message)
	case typeMessages[m[1]+m[2]] != "":
		f.Say(path, typeMessages[m[1]+m[2]])
	default:
		f.Say(path, check.MessageObject)
	}
	return f
}
