package agentdocs

import (
	"bytes"
	_ "embed"
	"strings"
	"text/template"

	"github.com/postern-io/postern/cloud/catalog"
)

// SkillVersion is that of the skill file's text.
const SkillVersion = "1.0"

//go:embed skill.md
var skillText string

// skillFile is the skill as an agent downloads it. It asks for the base URL
// first and holds none: the bytes, and so the hash, are the same wherever and
// by whomever it is downloaded.
func skillFile(versions []string) ([]byte, error) {
	t, err := template.New("skill").Funcs(template.FuncMap{"join": func(list []string) string { return strings.Join(list, ", ") }, "scopes": catalog.ProfileScopes}).Parse(skillText)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = t.Execute(&b, map[string]any{"Version": SkillVersion, "Versions": versions, "Servers": catalog.ToolServers(), "Profiles": catalog.Profiles()})
	return b.Bytes(), err
}
