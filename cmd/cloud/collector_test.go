package main

import (
	"encoding/json"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestHeadersOfTheCollectorAreReadAndNeverShown(t *testing.T) {
	t.Setenv(collectorHeaders, "Authorization=Bearer%20hunter2, x-team=a%2Cb")
	s, err := load(options{})
	require.NoError(t, err)
	c := s.server(slog.New(slog.DiscardHandler))
	require.Equal(t, map[string]string{"Authorization": "Bearer hunter2", "x-team": "a,b"}, c.OTLPHeaders)
	require.InDelta(t, 0.05, c.OTLPShare, 0)
	raw, err := json.Marshal(s)
	require.NoError(t, err)
	require.NotContains(t, string(raw)+s.String(), "hunter2")

	for _, odd := range []string{"hunter2", "a b=hunter2", "a=hunter2%", "a=hunter2%0Ab", "=hunter2"} {
		t.Setenv(collectorHeaders, odd)
		_, err := load(options{})
		require.ErrorContains(t, err, "name=value pairs", odd)
		require.NotContains(t, err.Error(), "hunter2")
	}
	t.Setenv(collectorHeaders, "")
	for _, share := range []string{"-0.1", "1.5"} {
		_, err := load(options{Config: file(t, "otlp_share: "+share)})
		require.ErrorContains(t, err, "0 to 1")
	}
}
