package rest

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/valyala/fasthttp"
)

// Addresses that work once have their secret in the path: none gets into a log.
func TestPathsAreLoggedWithoutSecrets(t *testing.T) {
	var ctx fasthttp.RequestCtx
	ctx.Request.SetRequestURI("/api/v1/devices/answers/" + strings.Repeat("a", 43))
	require.Equal(t, "/api/v1/devices/answers/…", loggedPath(&ctx))
	ctx.Request.SetRequestURI("/api/v1/third-party-delivery/deliveries/ref:R-1/open-doors?x=1")
	require.Equal(t, "/api/v1/third-party-delivery/deliveries/ref:R-1/open-doors", loggedPath(&ctx))
}
