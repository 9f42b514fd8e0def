package client

import (
	"crypto/ed25519"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/protocol/signed"
	"github.com/postern-io/postern/protocol/wire"
)

// Makers of devices copy the calls: one file that is read in a few minutes.
func TestTheCallsAreOneShortFile(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("client.go")
	require.NoError(t, err)
	require.LessOrEqual(t, strings.Count(string(text), "\n"), 150)
}

// An order counts when the cloud has signed it for this device, whatever else the answer holds.
func TestOrdersOfAnotherSignerOrDeviceAreLeftOut(t *testing.T) {
	t.Parallel()
	signer := func(b byte) *signed.Signer {
		s, err := signed.NewSigner(ed25519.NewKeyFromSeed([]byte(strings.Repeat(string(b), 32))))
		require.NoError(t, err)
		return s
	}
	ours, foreign := signer('1'), signer('2')
	var list []map[string][]byte
	for _, x := range []struct {
		by      *signed.Signer
		purpose signed.Purpose
		order   wire.Command
	}{
		{ours, signed.ForCommand, wire.Command{CommandID: "good", DeviceCode: "BOX-1"}},
		{foreign, signed.ForCommand, wire.Command{CommandID: "another key", DeviceCode: "BOX-1"}},
		{ours, signed.ForCommand, wire.Command{CommandID: "another device", DeviceCode: "BOX-2"}},
		{ours, signed.ForTime, wire.Command{CommandID: "another purpose", DeviceCode: "BOX-1"}},
	} {
		e, err := x.by.Sign(x.purpose, x.order)
		require.NoError(t, err)
		list = append(list, map[string][]byte{"envelope": e})
	}
	stamps := make(chan string, 2)
	cloud := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		stamps <- r.Header.Get("X-Device-Timestamp")
		_ = json.NewEncoder(w).Encode(map[string]any{"awaits_report": true, "commands": list})
	}))
	defer cloud.Close()
	c := Client{Cloud: cloud.URL, Now: func() time.Time { return time.Unix(0, 0) }, Instance: "i", Secrets: Secrets{Code: "BOX-1", Secret: "s", Keys: []wire.PinnedKey{ours.Pinned()}}}
	for range 2 {
		orders, awaits, err := c.FindOrders(t.Context(), 1)
		require.NoError(t, err)
		require.True(t, awaits)
		require.Len(t, orders, 1)
		require.Equal(t, "good", orders[0].CommandID)
	}
	require.Equal(t, "0", <-stamps)
	require.NotEqual(t, "0", <-stamps, "a clock that is far off is not used again")
}
