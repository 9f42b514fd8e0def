package scanner

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/postern-io/postern/protocol/otep"
)

// Use is what a scanner scans.
type Use string

// Uses.
const (
	UseCodes  Use = "codes"  // pickup codes at a cabinet
	UseLabels Use = "labels" // of parcels at a post
)

// Config is one scanner.
type Config struct {
	Name string
	// Port is a serial device, tcp://host:port of a hand terminal that listens, or
	// input: and the path of a keyboard, such as
	// input:/dev/input/by-id/usb-Scanner-event-kbd, or CameraPort.
	Port string
	Baud int // of a serial device; 0 is 9600
	Use  Use
	// Post and Step are of scanners of labels: where it is, and the status code of
	// the events, one of Steps. At a post that has other scanners too they share
	// what is known of repeats.
	Post string
	Step otep.Code
	// Choices are the steps that people choose from at the post's screen, Step among
	// them; none: Step alone.
	Choices []otep.Code
	// Batch is how one that keeps its scans and sends them later writes them; nil: it sends
	// each at once.
	Batch *Batch
	// Repeat is how long the same code at the same post and step is the same scan,
	// counted from the first; 0 is 5 s.
	Repeat time.Duration
}

// Limits of settings.
const (
	MaxPost                = 100 // characters of a post's name
	defaultRepeat          = 5 * time.Second
	minRepeat, maxRepeat   = time.Second, 10 * time.Minute
	minBaud, maxBaud       = 1200, 921600
	defaultBaud            = 9600
	inputPrefix, tcpPrefix = "input:", "tcp://"
	maxName                = 60
	portForms              = "name a serial device such as /dev/serial/by-id/…, tcp://host:port, input:/dev/input/by-id/…-event-kbd, or camera for that of the screen"
)

// Steps are the work steps that a scan alone proves, by the status code of their
// events.
func Steps() []otep.Code {
	return []otep.Code{otep.PickedUp, otep.Received, otep.ArrivalScan, otep.InTransit, otep.PackageOutbound, otep.OutForDelivery}
}

// ParseStep reads a step: a code of Steps, or another accepted spelling of one.
func ParseStep(s string) (otep.Code, error) {
	if c, _, ok := otep.Canonical(s); ok && slices.Contains(Steps(), c) {
		return c, nil
	}
	var words []string
	for _, c := range Steps() {
		words = append(words, string(c))
	}
	return "", fmt.Errorf("step %q: use one of %s", s, strings.Join(words, ", "))
}

func (c Config) withDefaults() Config {
	if c.Repeat == 0 {
		c.Repeat = defaultRepeat
	}
	if c.Baud == 0 {
		c.Baud = defaultBaud
	}
	return c
}

// Check reports everything that is wrong with the scanners of one device, and
// what is allowed.
func Check(all []Config) error {
	var errs []error
	for i, c := range all {
		bad := func(format string, a ...any) {
			errs = append(errs, fmt.Errorf("scanner %q: %w", c.Name, fmt.Errorf(format, a...)))
		}
		if c.Name == "" || len(c.Name) > maxName || slices.ContainsFunc(all[:i], func(o Config) bool { return o.Name == c.Name }) {
			bad("name: give each scanner a name of its own, of 1 to %d bytes", maxName)
		}
		if !validPort(c.Port) {
			bad("port %q: %s", c.Port, portForms)
		} else if slices.ContainsFunc(all[:i], func(o Config) bool { return o.Port == c.Port }) {
			bad("port %q is another scanner's too: one port has one scanner", c.Port)
		}
		if c.Baud != 0 && (c.Baud < minBaud || c.Baud > maxBaud) {
			bad("baud %d: use %d to %d, or 0 for %d", c.Baud, minBaud, maxBaud, defaultBaud)
		}
		if c.Repeat != 0 && (c.Repeat < minRepeat || c.Repeat > maxRepeat) {
			bad("repeat_seconds %v: use %v to %v, or 0 for %v", c.Repeat.Seconds(), minRepeat.Seconds(), maxRepeat.Seconds(), defaultRepeat.Seconds())
		}
		if err := c.checkUse(); err != nil {
			bad("%w", err)
		}
	}
	return errors.Join(errs...)
}

// Purpose says in words what a scanner is for.
func (c Config) Purpose() string {
	if c.Use == UseCodes {
		return "pickup codes"
	}
	c = c.withDefaults()
	text := fmt.Sprintf("labels at %s, step %s, the same within %s is one scan", c.Post, c.Step, c.Repeat)
	if c.Batch != nil {
		text += ", sent later in lines of " + c.Batch.String()
	}
	return text
}

func (c Config) checkUse() error {
	switch c.Use {
	case UseCodes:
		if c.Post != "" || c.Step != "" || len(c.Choices) > 0 || c.Repeat != 0 || c.Batch != nil {
			return errors.New("post, step, steps, batch and repeat_seconds are for use labels; a scanner of codes has none")
		}
		return nil
	case UseLabels:
	default:
		return fmt.Errorf("use %q: use %s or %s", c.Use, UseCodes, UseLabels)
	}
	_, err := ParseStep(string(c.Step))
	if c.Batch != nil && c.Port == CameraPort {
		err = errors.Join(err, errors.New("batch: the camera sends each scan at once"))
	}
	for i, s := range c.Choices {
		if _, bad := ParseStep(string(s)); bad != nil {
			err = errors.Join(err, bad)
		} else if slices.Contains(c.Choices[:i], s) {
			err = errors.Join(err, fmt.Errorf("steps: %s is there twice", s))
		}
	}
	if len(c.Choices) > 0 && !slices.Contains(c.Choices, c.Step) {
		err = errors.Join(err, fmt.Errorf("steps: step %q must be one of them", c.Step))
	}
	if n := len([]rune(c.Post)); strings.TrimSpace(c.Post) == "" || n > MaxPost || !isPrintable(c.Post) {
		err = errors.Join(fmt.Errorf("post %q: name the place at which it scans, in 1 to %d characters", c.Post, MaxPost), err)
	}
	return err
}

func validPort(port string) bool {
	if addr, ok := strings.CutPrefix(port, tcpPrefix); ok {
		host, service, err := net.SplitHostPort(addr)
		return err == nil && host != "" && service != ""
	}
	if path, ok := strings.CutPrefix(port, inputPrefix); ok {
		return strings.HasPrefix(path, "/dev/input/")
	}
	return port != "" && !strings.Contains(port, "://")
}
