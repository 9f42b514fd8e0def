package kiosk

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/edge/scanner"
)

// Pictures come from this page alone, in their one size, and only where there is a camera.
func TestPicturesOfTheCamera(t *testing.T) {
	t.Parallel()
	f := &fake{state: newState()}
	k := New(Config{DeviceCode: "CAB-1", Codes: f, Loop: f, Link: f, Store: func() StoreState { return StoreState{} }, Now: f.now, Camera: scanner.NewCamera()})
	bytes := func(r *http.Request) { r.Header.Set("Content-Type", "application/octet-stream") }
	picture := strings.Repeat("x", scanner.FrameSize)
	for name, c := range map[string]struct {
		k      *Kiosk
		body   string
		change func(*http.Request)
		status int
	}{
		"a picture":            {k, picture, bytes, http.StatusOK},
		"too small":            {k, picture[1:], bytes, http.StatusBadRequest},
		"JSON":                 {k, `{}`, func(*http.Request) {}, http.StatusUnsupportedMediaType},
		"of a page elsewhere":  {k, picture, func(r *http.Request) { bytes(r); r.Header.Set("Sec-Fetch-Site", "cross-site") }, http.StatusForbidden},
		"by a name elsewhere":  {k, picture, func(r *http.Request) { bytes(r); r.Host = "evil.example" }, http.StatusMisdirectedRequest},
		"there is no camera":   {newKiosk(f, io.Discard), picture, bytes, http.StatusNotFound},
		"bytes are no request": {k, picture, func(r *http.Request) { bytes(r); r.URL.Path = "/api/code" }, http.StatusUnsupportedMediaType},
	} {
		status, body, head := call(c.k, http.MethodPost, "/api/picture", c.body, c.change)
		require.Equal(t, c.status, status, "%s: %s", name, body)
		if c.k == k {
			require.Contains(t, head.Get("Permissions-Policy"), "camera=(self)")
		} else {
			require.Contains(t, head.Get("Permissions-Policy"), "camera=()")
		}
	}
	_, body, _ := call(k, http.MethodPost, "/api/picture", picture, bytes)
	require.JSONEq(t, `{"found":false}`, body)
	_, body, _ = call(k, http.MethodGet, "/operator.json", "")
	require.JSONEq(t, `{"camera":true}`, body)
}
