package page

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud/locale"
)

// Addresses of http and https alone become links, and none with a name and password in it.
func TestWebAddresses(t *testing.T) {
	for text, want := range map[string]bool{"https://acme.example/a?b=1": true, "http://127.0.0.1:8080": true, "javascript:alert(1)": false, "JAVASCRIPT://x/%0aalert(1)": false, "data:text/html,x": false,
		"ftp://acme.example/": false, "//acme.example/": false, "https:///x": false, "https://user:pass@acme.example/": false, "acme.example": false, "": false, "https://a.example/" + strings.Repeat("x", 2000): false} {
		require.Equal(t, want, isWebAddress(text), text)
	}
}

// Amounts are written as the language does; what names a record stays as it is.
func TestNumbersByLanguage(t *testing.T) {
	for _, x := range []struct{ lang, member, text, want string }{
		{"en", "total", "1204", "1,204"}, {"de", "total", "1204", "1.204"}, {"fr", "total", "1204", "1\u202f204"}, {"es", "weight", "2.5", "2,5"}, {"de", "packages[0].weight", "2.5", "2,5"}, {"zh-Hans", "total", "1204567", "1,204,567"},
		{"de", "device_id", "12345", "12345"}, {"de", "latitude", "43.65", "43.65"}, {"de", "rate", "0.1234567", "0.1234567"}, {"de", "attempts", "0", "0"},
	} {
		require.Equal(t, x.want, numberShown(frame{Lang: x.lang}, x.member, x.text), "%+v", x)
	}
	require.Equal(t, "-1.204,5", locale.Number("de", -1204.5))
}
