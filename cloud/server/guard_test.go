package server

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheOwnNameIsNoReceiver(t *testing.T) {
	t.Parallel()
	for base, want := range map[string][]string{"": nil, "http://127.0.0.1:8080": nil, "https://[::1]/": nil, "https://TMS.example.com:8443/x": {"tms.example.com"}, "::": nil} {
		require.Equal(t, want, ownNames(base), base)
	}
}
