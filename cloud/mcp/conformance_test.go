package mcp_test

import (
	"testing"

	"github.com/postern-io/postern/cloud/mcp"
	"github.com/postern-io/postern/cloud/mcp/mcptest"
	"github.com/postern-io/postern/cloud/mcp/suitetest"
)

// The official suite against the engine with the suite's fixtures.
func TestOfficialConformance(t *testing.T) {
	t.Parallel()
	url := mcp.Listen(t, suitetest.Fixtures())
	for name, args := range map[string][]string{
		"2026-07-28":                           {"--requirements", "2026-07-28"},
		"2025-11-25":                           {"--requirements", "2025-11-25", "--expected-failures", "expected-failures.yml"},
		"http-header-validation":               {"--scenario", "http-header-validation"},
		"http-custom-header-server-validation": {"--scenario", "http-custom-header-server-validation"},
		"json-schema-2020-12":                  {"--scenario", "json-schema-2020-12"},
	} {
		t.Run(name, func(t *testing.T) {
			mcptest.Conformance(t, "tool engine with the suite's own tools, "+name, url, args...)
		})
	}
}
