package page_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud"
)

var assetName = regexp.MustCompile(`(?:src|href)="(/assets/[^"]+)"`)

// Assets come compressed to those that take it, with the same content.
func TestAssetsAreCompressed(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	plain := r.do("GET", "/assets/work.css", nil)
	require.Empty(t, plain.header("Content-Encoding"))
	for encoding, open := range map[string]func(dst, src []byte) ([]byte, error){"gzip": fasthttp.AppendGunzipBytes, "br": fasthttp.AppendUnbrotliBytes} {
		g := r.do("GET", "/assets/work.css", nil, "Accept-Encoding", encoding)
		require.Equal(t, encoding, g.header("Content-Encoding"))
		require.Contains(t, g.header("Vary"), "Accept-Encoding")
		b, err := open(nil, []byte(g.body))
		require.NoError(t, err)
		require.Equal(t, plain.body, string(b))
		require.Less(t, len(g.body), len(plain.body)/2)
	}
	require.Equal(t, "br", r.do("GET", "/assets/work.js", nil, "Accept-Encoding", "gzip, deflate, br, zstd").header("Content-Encoding"))
	r.signedIn()
	require.Empty(t, r.do("GET", "/console/parcels", nil, "Accept-Encoding", "gzip, br").header("Content-Encoding"), "the token of a form is in no compressed page")
	icon := r.do("GET", "/favicon.ico", nil)
	require.Equal(t, []any{200, "image/svg+xml"}, []any{icon.status, icon.header("Content-Type")})
	robots := r.do("GET", "/robots.txt", nil)
	require.Equal(t, []any{200, "text/plain; charset=utf-8"}, []any{robots.status, robots.header("Content-Type")})
	require.True(t, strings.HasSuffix(robots.body, "Disallow: /\n"))
}

// A page of the console with all that it loads is small: 120 KB and 8 requests, a
// recipient's page 60 KB and 5 requests. Pages go as they are, assets by gzip.
func TestPagesKeepTheirBudgets(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	total := func(path string) (bytes, requests int) {
		g := r.do("GET", path, nil)
		require.Equal(t, 200, g.status, path)
		bytes, requests = len(g.body), 1
		for _, m := range assetName.FindAllStringSubmatch(g.body, -1) {
			a := r.do("GET", strings.ReplaceAll(m[1], "&amp;", "&"), nil, "Accept-Encoding", "gzip")
			require.Equal(t, 200, a.status, m[1])
			bytes, requests = bytes+len(a.body), requests+1
		}
		return bytes, requests
	}
	check := func(path string, most, requests int) {
		n, k := total(path)
		t.Logf("%s: %d bytes in %d requests", path, n, k)
		require.LessOrEqual(t, n, most, path)
		require.LessOrEqual(t, k, requests, path)
	}
	check("/", 60_000, 5)
	check("/track/"+r.w.Delivery.Packages[0].TrackingNumber, 60_000, 5)
	require.Equal(t, 303, r.signIn(r.w.Emails[cloud.ClientAdmin]).status)
	for _, path := range []string{"/console", "/console/parcels", "/console/cabinets", "/console/orders/new", "/console/search?q=LD", "/console/audit"} {
		check(path, 120_000, 8)
	}
}
