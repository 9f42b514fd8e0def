package job_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/job"
)

// Files come in many encodings and separators, and hold what spreadsheets take for
// formulas.
func TestFilesAreRead(t *testing.T) {
	t.Parallel()
	utf16 := func(s string, big bool, mark bool) (out []byte) {
		for _, u := range append(map[bool][]rune{true: {0xfeff}}[mark], []rune(s)...) {
			b := []byte{byte(u), byte(u >> 8)}
			if big {
				b[0], b[1] = b[1], b[0]
			}
			out = append(out, b...)
		}
		return out
	}
	const text = "name;city\r\nZoë;\"a;b\"\r\n\r\n'=1;x\r\n"
	for name, raw := range map[string][]byte{"UTF-8": []byte(text), "with a mark": []byte("\xef\xbb\xbf" + text), "UTF-16": utf16(text, false, true), "big end": utf16(text, true, true),
		"no mark": utf16(text, false, false), "Windows-1252": []byte(strings.ReplaceAll(text, "ë", "\xeb"))} {
		headers, lines, err := job.Parse(raw)
		require.NoError(t, err, name)
		require.Equal(t, []string{"name", "city"}, headers, name)
		require.Equal(t, [][]string{{"Zoë", "a;b"}, {"=1", "x"}}, lines, name)
	}
	_, lines, err := job.Parse([]byte("a\tb\n1\t2,3\n"))
	require.NoError(t, err)
	require.Equal(t, [][]string{{"1", "2,3"}}, lines)
	for _, raw := range []string{"", "a,b\n", strings.Repeat("a\n", job.MaxLines+2)} {
		_, _, err := job.Parse([]byte(raw))
		require.Error(t, err)
	}
}

// A file says what it lacks, or has too much of, by itself.
func TestWhatIsWrongWithAWholeFile(t *testing.T) {
	t.Parallel()
	for raw, code := range map[string]string{"": "FILE_EMPTY", "a,b\n": "FILE_EMPTY", "a,b\n,\n": "FILE_EMPTY", strings.Repeat("a,", 200) + "a\n1\n": "FILE_TOO_WIDE", strings.Repeat("a,", 200) + "a\n": "FILE_TOO_WIDE",
		"a\n" + strings.Repeat("1\n", job.MaxLines+1): "FILE_TOO_LONG"} {
		_, _, err := job.Parse([]byte(raw))
		var e *cloud.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, code, e.Code)
	}
}
