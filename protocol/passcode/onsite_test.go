package passcode

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Cabinets and the cloud may be of different releases: these may never change.
func TestOnSiteTokenGolden(t *testing.T) {
	t.Parallel()
	key, at := bytes.Repeat([]byte{2}, KeySize), time.Unix(1_767_225_600, 0)
	require.Equal(t, "J7YTPQ", OnSite(key, "CAB-1001", at))
	require.Equal(t, OnSite(key, "CAB-1001", at), OnSite(key, "CAB-1001", at.Add(59*time.Second)))
	require.NotEqual(t, OnSite(key, "CAB-1001", at), OnSite(key, "CAB-1001", at.Add(time.Minute)))
}

func TestOnSiteTokenHoldsForMinutes(t *testing.T) {
	t.Parallel()
	key, at := bytes.Repeat([]byte{2}, KeySize), time.Unix(1_767_225_600, 0)
	token := OnSite(key, "CAB-1001", at)
	require.Len(t, token, OnSiteLength)
	for after, holds := range map[time.Duration]bool{-2 * time.Minute: false, -time.Minute: true, 0: true, 179 * time.Second: true, 3 * time.Minute: false, 24 * time.Hour: false} {
		require.Equal(t, holds, IsOnSite(key, "CAB-1001", token, at.Add(after)), after)
	}
	require.True(t, IsOnSite(key, "CAB-1001", " "+strings.ToLower(token[:3])+"-"+token[3:], at), "as people type it")
	for _, text := range []string{"", "      ", token[:5], token + "2", "ÄÖÜ", strings.Repeat("2", 1000)} {
		require.False(t, IsOnSite(key, "CAB-1001", text, at), text)
	}
	require.False(t, IsOnSite(key, "CAB-1002", token, at), "of another cabinet")
	require.False(t, IsOnSite(bytes.Repeat([]byte{3}, KeySize), "CAB-1001", token, at))
}

// Over many minutes each letter comes about as often as any other.
func TestOnSiteTokensAreSpread(t *testing.T) {
	t.Parallel()
	key, seen, count := bytes.Repeat([]byte{7}, KeySize), map[string]bool{}, map[rune]int{}
	const minutes = 20_000
	for i := range minutes {
		token := OnSite(key, "CAB-1001", time.Unix(int64(i)*60, 0))
		seen[token] = true
		for _, c := range token {
			count[c]++
		}
	}
	require.Greater(t, len(seen), minutes-5, "two of 2^30 may meet")
	require.Len(t, count, len(onSiteLetters))
	for c, n := range count {
		require.InDelta(t, minutes*OnSiteLength/len(onSiteLetters), n, 300, string(c))
	}
}
