// Package topic builds and parses the MQTT topic names of the platform and
// decides who may use which. It is pure and safe for concurrent use.
package topic

import (
	"fmt"
	"strings"
)

// DefaultPrefix is the first level of every topic unless the deployment says
// otherwise.
const DefaultPrefix = "tms"

// Leaf is the last level of a device topic.
type Leaf string

// Device topics.
const (
	Up     Leaf = "up"     // to the cloud: batches
	Down   Leaf = "down"   // to the device: acks, commands, time, codes
	Config Leaf = "config" // to the device, retained
	Status Leaf = "status" // to the cloud, retained, also the last will
)

// MaxCode is the longest device code.
const MaxCode = 32

// ValidCode reports whether s can be a device code: 1 to 32 of A-Z a-z 0-9 _ -.
func ValidCode(s string) bool {
	if s == "" || len(s) > MaxCode {
		return false
	}
	for _, c := range []byte(s) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_', c == '-':
		default:
			return false
		}
	}
	return true
}

// ValidPrefix reports whether s can be a prefix: levels of A-Z a-z 0-9 _ -
// joined by slashes, at most 64 bytes.
func ValidPrefix(s string) bool {
	if len(s) > 64 {
		return false
	}
	for level := range strings.SplitSeq(s, "/") {
		if !ValidCode(level) {
			return false
		}
	}
	return true
}

// Device is the topic of a device.
func Device(prefix, code string, l Leaf) string {
	return prefix + "/device/" + code + "/" + string(l)
}

// ParseDevice splits a device topic. It fails for anything else, wildcards
// included.
func ParseDevice(prefix, t string) (code string, l Leaf, err error) {
	rest, ok := strings.CutPrefix(t, prefix+"/device/")
	if !ok {
		return "", "", fmt.Errorf("not a device topic")
	}
	code, leaf, ok := strings.Cut(rest, "/")
	if !ok || !ValidCode(code) {
		return "", "", fmt.Errorf("not a device topic")
	}
	switch l := Leaf(leaf); l {
	case Up, Down, Config, Status:
		return code, l, nil
	}
	return "", "", fmt.Errorf("not a device topic")
}

// ClientID is the MQTT client id of a device.
func ClientID(code string) string { return "dev-" + code }

// DeviceMay reports whether the device with this code may publish to (write)
// or subscribe to a topic. Everything that is not listed is denied.
func DeviceMay(prefix, code, t string, write bool) bool {
	c, l, err := ParseDevice(prefix, t)
	if err != nil || c != code {
		return false
	}
	if write {
		return l == Up || l == Status
	}
	return l == Down || l == Config
}
