package rest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud/catalog"
)

// Whatever bytes come, a form is read or refused, within its bounds.
func FuzzParseForm(f *testing.F) {
	f.Add([]byte(proofForm), "cut")
	f.Add([]byte("--cut--\r\n"), "cut")
	f.Add([]byte("--cut\r\nContent-Disposition: form-data; name=file\r\n\r\nx"), "cut")
	f.Fuzz(func(t *testing.T, body []byte, boundary string) {
		got, err := parseForm(body, boundary)
		if err != nil {
			return
		}
		require.LessOrEqual(t, len(got.file), catalog.MaxUpload)
		require.LessOrEqual(t, len(got.texts), maxParts)
		require.Len(t, got.digest(), 32)
		for _, text := range got.texts {
			require.LessOrEqual(t, len(text), maxText)
		}
	})
}

// Forms that differ in anything have different digests.
func TestDigestsOfForms(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	forms := []form{{}, {file: []byte("a")}, {texts: map[string]string{"a": "b"}}, {texts: map[string]string{"a": "bc"}}, {texts: map[string]string{"ab": "c"}},
		{texts: map[string]string{"a": "b", "c": ""}}, {texts: map[string]string{"a": "b"}, file: []byte("c")}}
	for _, f := range forms {
		seen[string(f.digest())] = true
	}
	require.Len(t, seen, len(forms))
}

func TestSameShape(t *testing.T) {
	t.Parallel()
	const pattern = "/api/v1/orders/{order_id}/proof-files"
	require.True(t, sameShape(pattern, "/api/v1/orders/5/proof-files"))
	for _, other := range []string{"/api/v1/orders/5/proof-files/", "/api/v1/orders/proof-files", "/api/v1/orders/5/cancel", "", "/"} {
		require.False(t, sameShape(pattern, other), other)
	}
}
