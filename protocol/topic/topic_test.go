package topic

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDeviceMayOnlyItsOwnTopics(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		topic       string
		write, read bool
	}{
		{"tms/device/A-1/up", true, false},
		{"tms/device/A-1/status", true, false},
		{"tms/device/A-1/down", false, true},
		{"tms/device/A-1/config", false, true},
		{"tms/device/A-2/up", false, false},
		{"tms/device/+/down", false, false},
		{"tms/device/#", false, false},
		{"#", false, false},
		{"tms/device/A-1/down/x", false, false},
		{"tms/device/A-1", false, false},
		{"other/device/A-1/up", false, false},
		{"$SYS/broker/version", false, false},
		{"$share/g/tms/device/A-1/down", false, false},
		{"", false, false},
	} {
		require.Equal(t, c.write, DeviceMay("tms", "A-1", c.topic, true), "write %q", c.topic)
		require.Equal(t, c.read, DeviceMay("tms", "A-1", c.topic, false), "read %q", c.topic)
	}
}

func TestCodesAndPrefixes(t *testing.T) {
	t.Parallel()
	require.True(t, ValidCode("TOR-FRONT_01"))
	for _, bad := range []string{"", "a/b", "a+b", "#", "ä", "a b", strings.Repeat("a", 33)} {
		require.False(t, ValidCode(bad), bad)
	}
	require.True(t, ValidPrefix("tms"))
	require.True(t, ValidPrefix("acme/tms"))
	for _, bad := range []string{"", "/tms", "tms/", "a//b", "a/#", "$SYS"} {
		require.False(t, ValidPrefix(bad), bad)
	}
}

func FuzzParseDevice(f *testing.F) {
	f.Add("tms/device/A-1/up")
	f.Add("tms/device//up")
	f.Fuzz(func(t *testing.T, s string) {
		code, l, err := ParseDevice("tms", s)
		if err == nil {
			require.Equal(t, s, Device("tms", code, l))
			require.True(t, ValidCode(code))
		}
	})
}
