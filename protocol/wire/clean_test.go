package wire

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTextIsMadeFitForStoring(t *testing.T) {
	t.Parallel()
	f := func(in TrackingEvent, want TrackingEvent) {
		t.Helper()
		var got TrackingEvent
		require.NoError(t, Decode(Clean(MustEncode(in)), &got))
		require.Equal(t, want, got)
	}
	sound := TrackingEvent{Subject: "PK-1", StatusCode: "in_transit", Location: "Zürich\t\U0001F4E6", Extensions: map[string]string{"a": ""}}
	f(sound, sound)
	f(TrackingEvent{Subject: "\x00", StatusCode: "a\x00b", Extensions: map[string]string{"k\x00": "v\x00\x00"}},
		TrackingEvent{Subject: "\uFFFD", StatusCode: "a\uFFFDb", Extensions: map[string]string{"k\uFFFD": "v\uFFFD\uFFFD"}})
	for _, n := range []int{7, 22, 23, 24, 84, 85, 86, 255, 256, 30000} {
		f(TrackingEvent{Subject: strings.Repeat("\x00", n)}, TrackingEvent{Subject: strings.Repeat("\uFFFD", n)})
	}
	// {1: h'00', 2: "\xff\x00"}: bytes stay, text that is not UTF-8 does not.
	in := []byte{0xa2, 0x01, 0x41, 0x00, 0x02, 0x62, 0xff, 0x00}
	require.Equal(t, append([]byte{0xa2, 0x01, 0x41, 0x00, 0x02, 0x66}, "\uFFFD\uFFFD"...), Clean(in))
	for cut := range in {
		require.Equal(t, in[:cut], Clean(in[:cut]), "not well-formed")
	}
}

func FuzzClean(f *testing.F) {
	f.Add(MustEncode(Status{State: Online, AgentVersion: "1\x00"}))
	f.Add([]byte{0xa1, 0x01, 0x62, 0xff, 0x00})
	f.Fuzz(func(t *testing.T, in []byte) {
		before := bytes.Clone(in)
		out := Clean(in)
		require.Equal(t, before, in, "its input is not changed")
		require.True(t, bytes.Equal(out, Clean(out)), "cleaning twice changes nothing")
		var a, b any
		if errIn, errOut := Decode(in, &a), Decode(out, &b); errIn == nil && errOut != nil {
			require.True(t, strings.Contains(errOut.Error(), "duplicate map key"), "%x became %x: %v", in, out, errOut)
		}
	})
}
