package kiosk

import (
	"errors"
	"fmt"
	"math"
	"net/mail"
	"regexp"
	"strconv"
	"unicode"
	"unicode/utf8"
)

// Operator is who runs the cabinet, as its page names them. Every field may be empty.
type Operator struct {
	Name  string `yaml:"name" json:"name,omitempty"`   // at most 40 characters
	Phone string `yaml:"phone" json:"phone,omitempty"` // as people dial it, with spaces
	Email string `yaml:"email" json:"email,omitempty"`
	Color string `yaml:"color" json:"color,omitempty"` // of main buttons: #rrggbb, dark enough for light text
}

const (
	maxName     = 40
	minContrast = 4.5       // of text on the colour, as WCAG 2.2 AA asks
	onColor     = "#fffdf9" // text on the colour
)

var (
	phoneForm = regexp.MustCompile(`^\+?[0-9][0-9 ()./-]{1,30}[0-9]$`)
	colorForm = regexp.MustCompile(`^#[0-9a-fA-F]{6}$`)
)

// Check reports everything wrong, each with what is allowed.
func (o Operator) Check() error {
	var errs []error
	bad := func(format string, a ...any) { errs = append(errs, fmt.Errorf(format, a...)) }
	if !utf8.ValidString(o.Name) || utf8.RuneCountInString(o.Name) > maxName || hasControl(o.Name) {
		bad("kiosk.name %q: use at most %d printable characters", o.Name, maxName)
	}
	if o.Phone != "" && !phoneForm.MatchString(o.Phone) {
		bad("kiosk.phone %q: use 3 to 32 digits, spaces and ( ) . / -, after a + or none", o.Phone)
	}
	if a, err := mail.ParseAddress(o.Email); o.Email != "" && (err != nil || a.Address != o.Email || len(o.Email) > 60) {
		bad("kiosk.email %q: use one address of at most 60 characters, such as help@example.com", o.Email)
	}
	if o.Color != "" {
		switch {
		case !colorForm.MatchString(o.Color):
			bad("kiosk.color %q: use #rrggbb, such as #14493f", o.Color)
		case contrast(o.Color, onColor) < minContrast:
			bad("kiosk.color %q: light text on it has a contrast of %.1f:1; use a darker colour, with %.1f:1 at least", o.Color, contrast(o.Color, onColor), minContrast)
		}
	}
	return errors.Join(errs...)
}

func hasControl(s string) bool {
	for _, r := range s {
		if !unicode.IsPrint(r) {
			return true
		}
	}
	return false
}

// contrast is that of two colours #rrggbb, from 1 to 21, as WCAG 2.2 defines it.
func contrast(a, b string) float64 {
	x, y := luminance(a), luminance(b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

// luminance is that of a colour #rrggbb, from 0 to 1.
func luminance(color string) float64 {
	sum := 0.0
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		n, _ := strconv.ParseUint(color[1+2*i:3+2*i], 16, 8) // callers checked the form
		c := float64(n) / 255
		if c <= 0.04045 {
			c /= 12.92
		} else {
			c = math.Pow((c+0.055)/1.055, 2.4)
		}
		sum += weight * c
	}
	return sum
}
