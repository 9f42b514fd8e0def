package cli

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/internal/wholefile"
)

func TestLongFlagsHaveOneDashOrTwo(t *testing.T) {
	t.Parallel()
	var g struct {
		Name  string `short:"n"`
		Count int
		Rest  []string `arg:"" optional:""`
	}
	_, err := Parse(&g, "x", "", []string{"-name", "a", "--count=2", "--", "-name"}, io.Discard, io.Discard)
	require.NoError(t, err)
	require.Equal(t, "a", g.Name)
	require.Equal(t, 2, g.Count)
	require.Equal(t, []string{"-name"}, g.Rest)
	_, err = Parse(&g, "x", "", []string{"-n", "b"}, io.Discard, io.Discard)
	require.NoError(t, err)
	require.Equal(t, "b", g.Name)
}

func TestHelpIsPrintedAndMistakesPointToIt(t *testing.T) {
	t.Parallel()
	var g struct{ Name string }
	var out bytes.Buffer
	_, err := Parse(&g, "x", "Does things.", []string{"-help"}, &out, io.Discard)
	require.ErrorIs(t, err, ErrHelp)
	require.Contains(t, out.String(), "--name")
	_, err = Parse(&g, "x", "", []string{"-nope"}, io.Discard, io.Discard)
	require.ErrorContains(t, err, "--help")
}

func TestSettingsRefuseWhatTheyDoNotKnow(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "x.yaml")
	v := struct{ A int }{7}
	for text, want := range map[string]string{"b: 1": `line 1: there is no setting "b"; there are: a`, "a: 1\n---\na: 2": "more than one document", "a: [": name} {
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
		require.ErrorContains(t, ReadYAML(name, &v), want)
	}
	v.A = 7
	require.NoError(t, os.WriteFile(name, []byte("# nothing\n"), 0o600))
	require.NoError(t, ReadYAML(name, &v))
	require.Equal(t, 7, v.A)
}

func TestFilesAreReplacedWholeAndPrivate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	name := filepath.Join(dir, "secrets.json")
	require.NoError(t, os.WriteFile(name, []byte("old"), 0o644))
	require.ErrorContains(t, CheckSecret(name), "chmod 600")
	require.NoError(t, wholefile.Replace(name, []byte("new")))
	require.NoError(t, CheckSecret(name))
	b, err := os.ReadFile(name)
	require.NoError(t, err)
	require.Equal(t, "new", string(b))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1, "nothing is left behind")
	require.Error(t, wholefile.Replace(filepath.Join(dir, "none", "x"), nil))
}
