package otep

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

func (r *reader) subject(v value) error {
	m, err := v.members()
	if err != nil {
		return err
	}
	r.members(subjectShape, m, spot{-1, "subject.", -1})
	s := &r.timeline.Subject
	check := func(name string, read func(value) bool) {
		if v := find(m, name); !v.isNull() && !read(v) {
			r.report.add("V09", "subject."+name, -1, name)
		}
	}
	if !slices.ContainsFunc(identifiers, func(name string) bool { return !find(m, name).isNull() }) {
		r.report.add("V08", "subject", -1)
		return nil
	}
	check("tracking_number", func(v value) bool { return number(v, &s.TrackingNumber, isTracking) })
	check("order_id", func(v value) bool { return id(v, &s.OrderID) })
	check("package_id", func(v value) bool { return id(v, &s.PackageID) })
	check("external_tracking_number", func(v value) bool { return number(v, &s.ExternalTrackingNumber, isExternal) })
	check("gs1_sscc", func(v value) bool { return sscc(v, &s.SSCC) })
	check("piece_id", func(v value) bool { return number(v, &s.PieceID, isPrintable) })
	return nil
}

var identifiers = []string{"tracking_number", "order_id", "package_id", "external_tracking_number", "gs1_sscc", "piece_id"}

// number reads an identifier of letters, trimmed.
func number(v value, to *string, valid func(string) bool) bool {
	s, ok := v.text()
	s = strings.TrimSpace(s)
	if !ok || s == "" || !valid(s) {
		return false
	}
	*to = s
	return true
}

// isTracking holds when nothing but the allowed characters is there to trim.
func isTracking(s string) bool {
	return len(s) <= maxName && strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") == ""
}

func isExternal(s string) bool { return utf8.RuneCountInString(s) <= maxName && isPrintable(s) }

func isPrintable(s string) bool { return strings.IndexFunc(s, unicode.IsControl) < 0 }

// id reads a number of the platform, 1 or more.
func id(v value, to *int64) bool {
	n, ok := v.whole()
	if !ok || n < 1 {
		return false
	}
	*to = n
	return true
}

// sscc reads a serial shipping container code: 18 digits, the last one a GS1
// check digit, perhaps with the application identifier 00 before them.
func sscc(v value, to *string) bool {
	s, _ := v.text()
	if len(s) == 20 {
		s = strings.TrimPrefix(s, "00")
	}
	if !IsSSCC(s) {
		return false
	}
	*to = s
	return true
}
