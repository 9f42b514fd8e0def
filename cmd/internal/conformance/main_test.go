package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const ran = `{"Action":"attr","Package":"github.com/postern-io/postern/cloud/mcp","Test":"TestSuite/one","Key":"verdict","Value":"{\"suite\":\"suite\",\"subject\":\"tools\",\"passed\":3,\"all\":4}"}
{"Action":"attr","Package":"github.com/postern-io/postern/cloud/mcp","Test":"TestSuite/one","Key":"other","Value":"x"}
{"Action":"output","Package":"github.com/postern-io/postern/cloud/mcp","Test":"TestSuite","Output":"said\n"}
{"Action":"attr","Package":"github.com/postern-io/postern/cloud/server","Test":"TestMore","Key":"verdict","Value":"{\"suite\":\"suite\",\"subject\":\"tools\",\"passed\":5,\"all\":5}"}
{"Action":"skip","Package":"github.com/postern-io/postern/cloud/empty"}
`

// Verdicts of one suite and subject are added up, and name every test that recorded them.
func TestTableAddsVerdictsUp(t *testing.T) {
	found, err := read(strings.NewReader(ran))
	require.NoError(t, err)
	require.Len(t, found, 2)
	table := string(write(found, map[string]string{"suite": "1.2.3"}))
	require.True(t, strings.HasSuffix(table, "|\n| suite | 1.2.3 | tools | 8 | 9 | cloud/mcp: TestSuite<br>cloud/server: TestMore |\n"), table)
}

func TestFailedAndSkippedTestsMakeNoTable(t *testing.T) {
	for _, action := range []string{"fail", "skip"} {
		_, err := read(strings.NewReader(ran + `{"Action":"` + action + `","Package":"p","Test":"TestSuite/two"}`))
		require.ErrorContains(t, err, "TestSuite/two: "+action)
		require.ErrorContains(t, err, "said")
	}
	_, err := read(strings.NewReader(ran + `{"Action":"fail","Package":"p"}`))
	require.Error(t, err, "a package that does not compile")
}

func TestVersionsAreThoseOfTheFiles(t *testing.T) {
	versions, err := readVersions("../../..")
	require.NoError(t, err)
	for _, suite := range []string{"@modelcontextprotocol/conformance", "axe-core", "newman", "go.opentelemetry.io/collector/pdata"} {
		require.NotEmpty(t, versions[suite], suite)
	}
}
