package scanner

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/postern-io/postern/protocol/wire"
)

// Batch is how a scanner that keeps its scans, and sends them once it is docked, writes each
// of them. Nothing changes it.
//
//	columns  code, DD/MM/YYYY, HH:mm:ss
//	line     00340123450000000017,29/11/2026,14:03:20
type Batch struct {
	columns   []string
	code      int    // column of the label
	layout    string // of the columns with the time, joined by spaces, as time.Parse takes it
	separator []byte
	zone      *time.Location
}

// Columns of a batch scanner that hold no part of a time.
const (
	columnCode    = "code"
	columnIgnored = "-"
)

const (
	maxColumns       = 8
	defaultSeparator = ","
	columnForms      = `name the columns of a line: "code" for the label, once; patterns of YYYY or YY, MM, DD, HH, mm and ss for the time, such as "DD/MM/YYYY"; "-" for what does not count`
)

// times are the words of a pattern, and those of time.Parse.
var times = strings.NewReplacer("YYYY", "2006", "YY", "06", "MM", "01", "DD", "02", "HH", "15", "mm", "04", "ss", "05")

// ParseBatch reads the settings of a batch scanner: the columns of its lines, what stands
// between them ("" is a comma), and the time zone of its clock, an IANA name ("" is that of
// the machine).
func ParseBatch(columns []string, separator, zone string) (*Batch, error) {
	b := &Batch{columns: columns, code: slices.Index(columns, columnCode), separator: []byte(separator)}
	if separator == "" {
		b.separator = []byte(defaultSeparator)
	}
	var errs []error
	if len(b.separator) != 1 || strings.Contains("\r\n\t\"", separator) && separator != "" {
		errs = append(errs, fmt.Errorf("separator %q: use one byte, such as a comma or semicolon, and no quote or end of a line", separator))
	}
	var patterns []string
	for _, c := range columns {
		if c != columnCode && c != columnIgnored {
			patterns = append(patterns, c)
		}
	}
	all := strings.Join(patterns, " ")
	b.layout = times.Replace(all)
	if b.code < 0 || slices.Index(columns[b.code+1:], columnCode) >= 0 || len(columns) > maxColumns {
		errs = append(errs, fmt.Errorf("columns %q: %s", columns, columnForms))
	} else if err := checkPattern(all); err != nil {
		errs = append(errs, fmt.Errorf("columns %q: %w: %s", columns, err, columnForms))
	}
	var err error
	if b.zone, err = time.LoadLocation(zone); err != nil {
		errs = append(errs, fmt.Errorf("timezone %q: use a name such as Europe/Berlin", zone))
	}
	if zone == "" {
		b.zone = time.Local
	}
	return b, errors.Join(errs...)
}

// checkPattern reports a time that is not complete, has a part twice, or holds what
// time.Parse would take for a part of one.
func checkPattern(all string) error {
	rest := all
	for _, part := range []string{"YYYY", "YY", "MM", "DD", "HH", "mm", "ss"} {
		n := strings.Count(rest, part)
		if n > 1 || n == 0 && part != "YYYY" && part != "YY" && part != "ss" {
			return fmt.Errorf("%s stands there %d times", part, n)
		}
		rest = strings.ReplaceAll(rest, part, "")
	}
	switch {
	case !strings.Contains(all, "YY"):
		return errors.New("the time has no year")
	case strings.Count(all, "YY") > 2:
		return errors.New("the year stands there twice")
	case strings.ContainsFunc(rest, func(r rune) bool {
		return isDigit(byte(min(r, 0x7f))) || isLetter(byte(min(r, 0x7f))) && r != 'T' || r == '_' || r > 0x7e
	}):
		return fmt.Errorf("%q is in no pattern", strings.TrimSpace(rest))
	}
	return nil
}

// String is the columns in words.
func (b *Batch) String() string { return strings.Join(b.columns, string(b.separator)) }

// split cuts a line into the label and when it was scanned, in unix nanoseconds, or
// wire.ScannedUnknown where the time cannot be read; false for a line that has too few columns
// or no label. A label may hold the separator.
func (b *Batch) split(line []byte) (code []byte, at int64, ok bool) {
	fields := bytes.Split(line, b.separator)
	more := len(fields) - len(b.columns)
	if more < 0 {
		return nil, 0, false
	}
	var written []string
	for i, c := range b.columns {
		switch {
		case c == columnCode:
			code = unquote(bytes.Join(fields[i:i+more+1], b.separator))
		case c == columnIgnored:
		case i > b.code:
			written = append(written, string(unquote(fields[i+more])))
		default:
			written = append(written, string(unquote(fields[i])))
		}
	}
	at = wire.ScannedUnknown
	if t, err := time.ParseInLocation(b.layout, strings.Join(written, " "), b.zone); err == nil && t.Year() >= minYear && t.Year() <= maxYear {
		at = t.UnixNano()
	}
	return code, at, len(code) > 0
}

// Years of a scanner's clock that was set.
const minYear, maxYear = 2000, 2200

// unquote is a column without spaces and quotes around it.
func unquote(field []byte) []byte {
	field = bytes.TrimSpace(field)
	if n := len(field); n >= 2 && field[0] == '"' && field[n-1] == '"' {
		field = bytes.ReplaceAll(field[1:n-1], []byte(`""`), []byte(`"`))
	}
	return field
}
