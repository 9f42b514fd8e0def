package agentdocs

import (
	"encoding/json"

	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/mcp"
)

// formatNames are the forms in which tools are described.
var formatNames = []string{"openai", "anthropic", "mcp", "langchain"}

type openAI struct {
	Type     string `json:"type"`
	Function struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
	} `json:"function"`
}

type anthropic struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"input_schema"`
}

type mcpTool struct {
	Name         string          `json:"name"`
	Title        string          `json:"title"`
	Description  string          `json:"description"`
	InputSchema  json.RawMessage `json:"inputSchema"`
	OutputSchema json.RawMessage `json:"outputSchema"`
	Annotations  mcp.Annotations `json:"annotations"`
}

type langChain struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	ArgsSchema  json.RawMessage `json:"args_schema"`
	Metadata    struct {
		Risk    catalog.Risk `json:"risk"`
		Scopes  []string     `json:"scopes"`
		Confirm bool         `json:"confirm_required"`
	} `json:"metadata"`
}

// formed is a tool as a platform takes it.
func formed(format string, t mcp.Tool, row *catalog.Tool) any {
	switch format {
	case "openai":
		out := openAI{Type: "function"}
		out.Function.Name, out.Function.Description, out.Function.Parameters = t.Name, t.Description, t.Input
		return out
	case "anthropic":
		return anthropic{t.Name, t.Description, t.Input}
	case "langchain":
		out := langChain{Name: t.Name, Description: t.Description, ArgsSchema: t.Input}
		out.Metadata.Risk, out.Metadata.Scopes, out.Metadata.Confirm = row.Risk, list(row.Scopes), row.Confirm
		return out
	}
	return mcpTool{t.Name, t.Title, t.Description, t.Input, t.Output, t.Annotations}
}

// list is s, never null in JSON.
func list(s []string) []string { return append([]string{}, s...) }
