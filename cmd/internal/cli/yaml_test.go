package cli

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// color reads itself.
type color string

func (c *color) UnmarshalText(b []byte) error {
	if *c = color(b); *c != "red" && *c != "blue" {
		return errors.New("no color; use red or blue")
	}
	return nil
}

type shared struct {
	Phone string `yaml:"phone"`
}

type house struct {
	MQTT struct {
		Listen string   `yaml:"listen"`
		Plain  bool     `yaml:"plain"`
		Other  []string `yaml:"other"`
		shared `yaml:",inline"`
		hidden string
		Gone   string `yaml:"-"`
	} `yaml:"mqtt"`
	Rooms  []struct{ Paint color } `yaml:"rooms"`
	Limits map[string]int          `yaml:"limits"`
	Every  time.Duration           `yaml:"every"`
	Door   *uint8                  `yaml:"door"`
}

func TestMistakesInSettingsNameTheLineAndWhatIsKnown(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "x.yaml")
	for text, want := range map[string]string{
		"mqtt:\n  lisen: x":                    `line 2: mqtt has no setting "lisen"; it has: listen, plain, other, phone`,
		"mqtt: {gone: x}":                      `line 1: mqtt has no setting "gone"; it has: listen, plain, other, phone`,
		"\nmqqt: {}":                           `line 2: there is no setting "mqqt"; there are: mqtt, rooms, limits, every, door`,
		"rooms:\n- paint: red\n- paint: green": `line 3: rooms.paint: no color; use red or blue`,
		"rooms:\n- paint: red\n  size: 3":      `line 3: rooms has no setting "size"; it has: paint`,
		"mqtt: {plain: maybe}":                 `line 1: mqtt.plain: use true or false`,
		"mqtt: {other: x}":                     `line 1: mqtt.other: use a list`,
		"mqtt: x":                              `line 1: mqtt: use names with values below it`,
		"limits: {a: b}":                       `line 1: limits.a: use a whole number`,
		"every: soon":                          `line 1: every: use a duration such as 10m`,
		"door: 300":                            `line 1: door: use a whole number from 0 to 255`,
		"- x":                                  `line 1: the file: use names with values below it`,
		"a: &a {listen: x}\nmqtt: {<<: *a, no: x}":   `line 2: mqtt has no setting "no"`,
		"mqtt: {listen: a, listen: b}":               `already defined`,
		"limits: &l\n  a: 1\nmqtt:\n  <<: *l\n":      `line 2: mqtt has no setting "a"`,
		"mqtt:\n  lisen: x\n  plian: true\nroms: []": `"plian"`,
	} {
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
		var h house
		err := ReadYAML(name, &h)
		require.ErrorContains(t, err, want, text)
		require.NotContains(t, err.Error(), "struct", text)
		require.NotContains(t, err.Error(), "cli.", text)
	}
	require.NoError(t, os.WriteFile(name, []byte("mqtt: {listen: x, phone: '1', other: [a]}\nrooms: [{paint: red}]\nlimits: {a: 1}\nevery: 10m\ndoor: 3\n"), 0o600))
	var h house
	require.NoError(t, ReadYAML(name, &h))
	require.Equal(t, []any{"x", "1", "red", 1, 10 * time.Minute, uint8(3)}, []any{h.MQTT.Listen, h.MQTT.Phone, string(h.Rooms[0].Paint), h.Limits["a"], h.Every, *h.Door})
	require.NoError(t, os.WriteFile(name, []byte("mqtt:\nrooms:\ndoor:\n"), 0o600))
	require.NoError(t, ReadYAML(name, &h))
}
