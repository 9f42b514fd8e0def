package scanner

import (
	"bytes"
	"errors"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/postern-io/postern/protocol/gs1"
	"github.com/postern-io/postern/protocol/passcode"
	"github.com/postern-io/postern/protocol/signed"
	"github.com/postern-io/postern/protocol/wire"
)

// maxSubject is how many bytes of text may name a parcel.
const maxSubject = 128

// reading is what a line of a scanner of labels means. Outcome is Accepted,
// Ambiguous, Unreadable or Refused, or "" for a line of nothing.
type reading struct {
	outcome Outcome
	message string
	text    string             // for people; "" of what was refused
	scan    wire.Scan          // of all but refused ones
	event   wire.TrackingEvent // of accepted ones
}

// readLabel reads a line. It depends on nothing but its arguments, and holds
// nothing of a line that may be a code.
func readLabel(raw []byte, c Config) reading {
	taken := int64(0)
	if c.Batch != nil {
		code, at, ok := c.Batch.split(raw)
		switch {
		case !ok && len(bytes.TrimSpace(raw)) == 0:
			return reading{}
		case !ok:
			return reading{outcome: Refused, message: "the line has other columns than the settings name: " + c.Batch.String()}
		}
		raw, taken = code, at
	}
	if isCode(raw) {
		return reading{outcome: Refused, message: "a code of a cabinet is no label: scan the label of the parcel"}
	}
	label, err := gs1.Source{DropsSeparators: strings.HasPrefix(c.Port, inputPrefix)}.Read(raw)
	if errors.Is(err, gs1.ErrEmpty) {
		return reading{}
	}
	r := reading{text: readable(label.Text), scan: wire.Scan{Raw: raw, Symbology: label.Symbology, Post: c.Post, Step: string(c.Step), ScannedAt: taken}}
	if err != nil {
		r.outcome, r.message = Unreadable, "the label cannot be read: scan it again, or another one of the parcel"
		return r
	}
	misread := label.IsMisread()
	if misread {
		label.Certainty, label.Elements = gs1.Ambiguous, nil
	}
	r.scan.Certainty = string(label.Certainty)
	for _, e := range label.Elements {
		if r.scan.Identifiers == nil {
			r.scan.Identifiers = make(map[string]string, len(label.Elements))
		}
		r.scan.Identifiers[e.AI] = e.Value
	}
	subject := subjectOf(label)
	switch {
	case misread:
		r.outcome, r.message = Ambiguous, "the last of the 18 digits does not fit the others, as that of an SSCC does: scan the label again, or another one of the parcel"
	case label.Certainty == gs1.Ambiguous:
		r.outcome, r.message = Ambiguous, "the label can be read in several ways: scan another one of the parcel, or with a scanner that sends separators"
	case len(subject) > maxSubject || !isPrintable(subject):
		r.outcome, r.message = Unreadable, "the label names no parcel: scan the label with the tracking number"
	default:
		r.outcome, r.text = Accepted, subject
		r.event = wire.TrackingEvent{Subject: subject, StatusCode: string(c.Step), Location: c.Post, ScannedAt: taken}
	}
	return r
}

// subjectOf is what events of a label are about: an SSCC as the element that the
// cloud knows it by, a shipment, a consignment, an item with its serial, a
// carrier's number, else the text, of an element string without its separators.
func subjectOf(label gs1.Scan) string {
	switch ai, value := label.Subject(); ai {
	case "00":
		return ai + value
	case "":
		if number := carrierNumber(label); number != "" {
			return number
		}
		if label.Kind == gs1.ElementString {
			value = strings.ReplaceAll(value, string(rune(gs1.Separator)), "")
		}
		return strings.TrimSpace(value)
	default:
		return value
	}
}

// isCode reports whether a line may be a code of a cabinet, whatever a scanner
// puts around it: 6 to 8 digits alone, or the text of a pickup code's symbol or of a
// signed QR code anywhere in it. A keyboard of another layout types its colon as another sign.
// Addresses that let people in are codes, too: every one that is no GS1 link, such as that
// of a parcel's page or of an enrolment, and those with a query or fragment beside.
func isCode(raw []byte) bool {
	text := strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || !unicode.IsPrint(r) || r == utf8.RuneError {
			return -1
		}
		return r
	}, unescape(string(raw)))
	text = strings.ToUpper(text)
	if strings.Contains(text, passcode.Prefix) || signed.IsPass(text) {
		return true
	}
	if strings.Contains(text, "://") && !isLabelLink(raw) {
		return true
	}
	if gs1.HasSymbology(text) {
		text = text[3:]
	}
	for _, prefix := range []string{passcode.Prefix, signed.PassPrefix} {
		if rest, ok := strings.CutPrefix(text, prefix[:2]); ok && rest != "" && !isLetter(rest[0]) && !isDigit(rest[0]) {
			return true
		}
	}
	digits := strings.Map(func(r rune) rune {
		if unicode.IsPunct(r) || unicode.IsSymbol(r) {
			return -1
		}
		return r
	}, text)
	return passcode.Valid(digits) || isSigns(text)
}

// signs are what keyboards type for digits: with Shift where they are typed without, and
// without it where they need it, as in France and Belgium.
const signs = ")!@#$%^&*(" + `&É"'(-È_ÇÀ` + "§"

// isSigns reports whether a text, in capitals, may be a code that was typed as signs.
func isSigns(text string) bool {
	n := utf8.RuneCountInString(text)
	return n >= 6 && n <= 8 && !strings.ContainsFunc(text, func(r rune) bool { return !strings.ContainsRune(signs, r) })
}

// unescape decodes what is percent-encoded in a text.
func unescape(s string) string {
	if out, err := url.PathUnescape(s); err == nil {
		return out
	}
	return s
}

// isLabelLink reports whether a line is a GS1 link and nothing beside.
func isLabelLink(raw []byte) bool {
	text := strings.TrimSpace(string(raw))
	if gs1.HasSymbology(text) {
		text = text[3:]
	}
	u, err := url.Parse(strings.ToValidUTF8(text, "?"))
	if err != nil || u.User != nil || u.Fragment != "" || strings.ContainsFunc(text, unicode.IsSpace) {
		return false
	}
	for member := range u.Query() {
		if member == "" || !isDigit(member[0]) {
			return false
		}
	}
	label, err := gs1.Source{}.Read(raw)
	return err == nil && len(label.Elements) > 0
}

func isPrintable(s string) bool {
	return s != "" && utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}

// readable is a text for people, which a scanner may have sent anything in.
func readable(s string) string {
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '\u00b7'
		}
		return r
	}, strings.ToValidUTF8(s, "\u00b7"))
	if r := []rune(s); len(r) > maxSubject {
		s = string(r[:maxSubject])
	}
	return s
}
