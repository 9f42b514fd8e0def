package cli

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSiblingIsStartedAsThisProgramWas(t *testing.T) {
	t.Parallel()
	dir := t.TempDir() + "/"
	require.NoError(t, os.WriteFile(dir+"edge", nil, 0o700))
	for self, want := range map[string]string{
		"cloud":                               "edge",
		dir + "cloud":                         dir + "edge",
		filepath.Join(dir, "none") + "/cloud": "edge",
		"/tmp/go-build12/b001/exe/cloud":      "go run github.com/postern-io/postern/cmd/edge",
		"/tmp/go-build12/b001/cli.test":       "edge",
		"postern-cloud":                       "postern-edge",
		dir + "postern-cloud":                 "postern-edge",
	} {
		require.Equal(t, want, sibling(self, "edge"), self)
	}
	require.Equal(t, "firmware-sim", sibling("/usr/bin/postern-cloud", "firmware-sim"), "no package has it")
}
