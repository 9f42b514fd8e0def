package job

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/check"
)

// Column is a member of an operation's input that a column of a file can fill. Path is
// where it is: recipient.name, packages[0].weight.
type Column struct {
	Path     string
	Required bool
	Member   catalog.Member
}

// maxInside bounds how deep the members of columns lie.
const maxInside = 3

// FlatColumns are the columns of a file with inputs of an operation: its plain members,
// those of objects in it, and those of the first element of its lists of objects.
func FlatColumns(o *catalog.Operation) []Column {
	if known, ok := flatColumns.Load(o); ok {
		return known.([]Column)
	}
	columns := flat("", slices.DeleteFunc(o.Members(), func(m catalog.Member) bool { return m.Place != "" }), true, 0)
	flatColumns.Store(o, columns)
	return columns
}

// flatColumns are the columns of operations that were asked for, which follow from
// types and never change.
var flatColumns sync.Map

func flat(prefix string, members []catalog.Member, required bool, depth int) (out []Column) {
	for _, m := range members {
		t := m.Type
		for t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		path, list := prefix+m.Name, false
		if t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8 {
			for t = t.Elem(); t.Kind() == reflect.Pointer; {
				t = t.Elem()
			}
			list = true
		}
		inner := catalog.BodyMembers(t)
		switch {
		case t.Kind() == reflect.Map || t.Kind() == reflect.Interface || t.Kind() == reflect.Slice || strings.Contains(m.Name, "password"):
		case len(inner) > 0 && t != reflect.TypeFor[time.Time]() && depth < maxInside:
			if list {
				path += "[0]"
			}
			out = append(out, flat(path+".", inner, required && m.Required, depth+1)...)
		case t.Kind() != reflect.Struct:
			out = append(out, Column{path, required && m.Required, m})
		}
	}
	return out
}

// choices are the values of a column's member, nil for any.
func (c Column) choices() []string {
	r := c.Member.Rules()
	if r.Item != nil {
		return r.Item.Enum
	}
	return r.Enum
}

// Label is a member's path in words: Recipient · Name.
func Label(word func(lang, key string, args ...any) string, lang, path string) string {
	var parts []string
	for name := range strings.SplitSeq(path, ".") {
		name, _, _ = strings.Cut(name, "[")
		w := word(lang, "member."+name)
		if w == "member."+name {
			w = strings.ReplaceAll(name, "_", " ")
		}
		parts = append(parts, w)
	}
	return strings.Join(parts, " · ")
}

// ColumnName is what people call a column of a file: its header, or the member in words
// where the header is no more than its path.
func ColumnName(word func(lang, key string, args ...any) string, lang, header, path string) string {
	if path != "" && (header == path || header == strings.ReplaceAll(path, "[0]", "")) {
		return Label(word, lang, path)
	}
	return header
}

// plainHeader is a header as it is compared: small letters and digits of any script.
func plainHeader(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, s)
}

// matched are the members that the columns of a file fill: by what people matched
// before, by path, or by their words in any language. A member is filled once.
func (s *Service) matched(o *catalog.Operation, headers []string, before map[string]string) []string {
	columns := FlatColumns(o)
	by := map[string]string{}
	add := func(key, path string) {
		if old, taken := by[key]; taken && old != path {
			path = "" // it says nothing
		}
		by[key] = path
	}
	for _, c := range columns {
		for _, lang := range s.cfg.Languages {
			add("leaf "+plainHeader(Label(s.cfg.Word, lang, c.Path[strings.LastIndexByte(c.Path, '.')+1:])), c.Path)
		}
		add("leaf "+plainHeader(c.Path[strings.LastIndexByte(c.Path, '.')+1:]), c.Path)
	}
	whole := map[string]string{}
	for _, c := range columns {
		whole[plainHeader(c.Path)] = c.Path
		whole[plainHeader(strings.ReplaceAll(c.Path, "[0]", ""))] = c.Path
		for _, lang := range s.cfg.Languages {
			whole[plainHeader(Label(s.cfg.Word, lang, c.Path))] = c.Path
		}
	}
	known := func(path string) bool {
		return slices.ContainsFunc(columns, func(c Column) bool { return c.Path == path })
	}
	out := make([]string, len(headers))
	for _, find := range []func(h string) string{
		func(h string) string { return before[h] },
		func(h string) string { return whole[h] },
		func(h string) string { return by["leaf "+h] },
	} {
		for i, h := range headers {
			if path := find(plainHeader(h)); out[i] == "" && path != "" && known(path) && !slices.Contains(out, path) {
				out[i] = path
			}
		}
	}
	return out
}

var (
	commaNumber = regexp.MustCompile(`^-?\d+,\d+$`)
	dottedDay   = regexp.MustCompile(`^(\d{1,2})\.(\d{1,2})\.(\d{4})$`)
)

// line is the input of a line of a file. Errors: VALIDATION_FAILED.
func (s *Service) line(j cloud.Job, o *catalog.Operation, cells []string) (map[string]any, error) {
	in := map[string]any{}
	f := check.Fields{}
	columns := FlatColumns(o)
	for i, path := range j.Columns {
		k := slices.IndexFunc(columns, func(c Column) bool { return c.Path == path })
		if path == "" || k < 0 || i >= len(cells) {
			continue
		}
		cell := strings.TrimSpace(cells[i])
		if cell == "" {
			continue
		}
		if !utf8.ValidString(cell) {
			f.Say(path, check.MessageUTF8)
			continue
		}
		put(in, path, cellReader{s.cfg}.cellValue(columns[k], cell))
	}
	return in, f.Err()
}

// cellReader reads cells.
type cellReader struct{ cfg Config }

// cellValue is a cell as JSON has its member; a text of another form stays one, which the
// operation then names.
func (r cellReader) cellValue(c Column, cell string) any {
	t := c.Member.Type
	list := false
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		list = list || t.Kind() == reflect.Slice
		t = t.Elem()
	}
	if list {
		var out []any
		for part := range strings.FieldsFuncSeq(cell, func(c rune) bool { return c == ';' || c == '\n' || c == '|' }) {
			if part = strings.TrimSpace(part); part != "" {
				out = append(out, r.scalarValue(c, t, part))
			}
		}
		return out
	}
	return r.scalarValue(c, t, cell)
}

func (r cellReader) scalarValue(c Column, t reflect.Type, cell string) any {
	for _, v := range c.choices() { // as it is, or in words
		if strings.EqualFold(v, cell) {
			return v
		}
		for _, lang := range r.cfg.Languages {
			if strings.EqualFold(r.cfg.Word(lang, "value."+v), cell) {
				return v
			}
		}
	}
	switch {
	case t.Kind() == reflect.String && c.Member.Rules().Format == "country" && r.cfg.Country != nil:
		return r.cfg.Country(cell)
	case t.Kind() == reflect.String:
		if m := dottedDay.FindStringSubmatch(cell); m != nil && c.Member.Rules().Format == "date" {
			if day, err := time.Parse("2.1.2006", cell); err == nil {
				return day.Format(time.DateOnly)
			}
		}
		return cell
	case t.Kind() == reflect.Bool:
		for _, lang := range r.cfg.Languages {
			for key, v := range map[string]bool{"work.yes": true, "work.no": false} {
				if strings.EqualFold(r.cfg.Word(lang, key), cell) {
					return v
				}
			}
		}
		if v, err := strconv.ParseBool(cell); err == nil {
			return v
		}
		return cell
	}
	if commaNumber.MatchString(cell) {
		cell = strings.Replace(cell, ",", ".", 1)
	}
	if (cell[0] == '-' || cell[0] >= '0' && cell[0] <= '9') && json.Valid([]byte(cell)) {
		return json.Number(cell)
	}
	return cell
}

// put sets a member at a path.
func put(in map[string]any, path string, v any) {
	name, rest, deeper := strings.Cut(path, ".")
	if !deeper {
		in[name] = v
		return
	}
	name, list := strings.CutSuffix(name, "[0]")
	if list {
		elements, _ := in[name].([]any)
		if elements == nil {
			elements = []any{map[string]any{}}
			in[name] = elements
		}
		put(elements[0].(map[string]any), rest, v)
		return
	}
	inner, _ := in[name].(map[string]any)
	if inner == nil {
		inner = map[string]any{}
		in[name] = inner
	}
	put(inner, rest, v)
}

// Decode is a file as text: UTF-8, UTF-16 by its mark or its zeros, else Windows-1252.
func Decode(raw []byte) string {
	wide := func(raw []byte, order func(b []byte) uint16) string {
		units := make([]uint16, 0, len(raw)/2)
		for ; len(raw) > 1; raw = raw[2:] {
			units = append(units, order(raw))
		}
		return string(utf16.Decode(units))
	}
	little := func(b []byte) uint16 { return uint16(b[0]) | uint16(b[1])<<8 }
	big := func(b []byte) uint16 { return uint16(b[1]) | uint16(b[0])<<8 }
	switch {
	case bytes.HasPrefix(raw, []byte("\xef\xbb\xbf")):
		raw = raw[3:]
	case bytes.HasPrefix(raw, []byte("\xff\xfe")):
		return wide(raw[2:], little)
	case bytes.HasPrefix(raw, []byte("\xfe\xff")):
		return wide(raw[2:], big)
	case len(raw) > 3 && raw[1] == 0 && raw[3] == 0:
		return wide(raw, little)
	case len(raw) > 3 && raw[0] == 0 && raw[2] == 0:
		return wide(raw, big)
	}
	if utf8.Valid(raw) {
		return string(raw)
	}
	out, err := charmap.Windows1252.NewDecoder().Bytes(raw)
	if err != nil {
		return strings.ToValidUTF8(string(raw), "�")
	}
	return string(out)
}

// maxFileColumns is the most columns of a file.
const maxFileColumns = 200

// Parse reads the lines of a CSV file, parted by comma, semicolon or tab as its first
// line is. Empty lines are left out; an apostrophe before a sign that begins a formula
// is not part of a cell. Errors: FILE_UNREADABLE, FILE_EMPTY, FILE_TOO_LONG, FILE_TOO_WIDE.
func Parse(raw []byte) (headers []string, lines [][]string, err error) {
	text := Decode(raw)
	first, _, _ := strings.Cut(text, "\n")
	r := csv.NewReader(strings.NewReader(text))
	for _, sep := range ";\t" {
		if strings.Count(first, string(sep)) > strings.Count(first, string(r.Comma)) {
			r.Comma = sep
		}
	}
	r.FieldsPerRecord, r.LazyQuotes = -1, true
	for {
		cells, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, nil, cloud.E(cloud.Invalid, "FILE_UNREADABLE")
		}
		if !slices.ContainsFunc(cells, func(c string) bool { return strings.TrimSpace(c) != "" }) {
			continue
		}
		for i, c := range cells {
			if c = strings.ReplaceAll(c, "\x00", ""); len(c) > 1 && c[0] == '\'' && strings.ContainsRune("=+-@\t\r", rune(c[1])) {
				c = c[1:]
			}
			cells[i] = c
		}
		if headers == nil {
			headers = cells
			continue
		}
		if len(cells) > len(headers) {
			cells = cells[:len(headers)]
		}
		if lines = append(lines, cells); len(lines) > MaxLines {
			return nil, nil, cloud.E(cloud.Invalid, "FILE_TOO_LONG", MaxLines)
		}
	}
	if len(headers) > maxFileColumns {
		return nil, nil, cloud.E(cloud.Invalid, "FILE_TOO_WIDE", maxFileColumns)
	}
	if len(lines) == 0 {
		return nil, nil, cloud.E(cloud.Invalid, "FILE_EMPTY")
	}
	return headers, lines, nil
}

// ImportInput is a file with new records.
type ImportInput struct {
	Noun string `json:"noun" required:"true" max:"40" pattern:"^[a-z_]+$" doc:"Kind of the records: order, customer"`
	Name string `json:"name" max:"200" line:"true" doc:"Name of the file"`
	File []byte `body:"file" doc:"CSV with a line of headers, in UTF-8, UTF-16 or Windows-1252, of at most 20,000 lines"`
}

// Import makes a job of a file's lines and checks them; nothing else is written.
// Errors: VALIDATION_FAILED, JOB_NEEDS_PERSON, FILE_UNREADABLE, FILE_EMPTY,
// FILE_TOO_LONG, those of the operation's rights.
func (s *Service) Import(ctx context.Context, c cloud.Caller, in ImportInput) (Output, error) {
	if err := person(ctx); err != nil {
		return Output{}, err
	}
	n := s.table.Noun(in.Noun)
	f := check.Fields{}
	if n == nil || n.Create == "" {
		f.Say("noun", "There is no such kind of record.")
		return Output{}, f.Err()
	}
	n, o, err := s.operation(in.Noun, n.Create)
	if err != nil {
		return Output{}, err
	}
	if err := s.cfg.Pipeline.May(ctx, o, c); err != nil {
		return Output{}, err
	}
	headers, lines, err := Parse(in.File)
	if err != nil {
		return Output{}, err
	}
	if len(lines) > o.Many {
		return Output{}, cloud.E(cloud.Invalid, "FILE_TOO_LONG", o.Many)
	}
	j, err := s.begun(ctx, c, n.Name, o.Name)
	if err != nil {
		return Output{}, err
	}
	before := map[string]string{}
	if err := s.cfg.Store.Look(ctx, func(v cloud.View) error {
		list, err := cloud.All(v, cloud.FileColumn{Kept: cloud.Kept[cloud.FileColumnID]{BusinessID: j.BusinessID}, Noun: n.Name})
		for _, x := range list {
			before[x.Header] = x.Path
		}
		return err
	}); err != nil {
		return Output{}, err
	}
	sum := sha256.Sum256(in.File)
	j.FileHash = hex.EncodeToString(sum[:16])
	if j.File = strings.TrimSpace(in.Name); j.File == "" {
		j.File = "file.csv"
	}
	j.Headers, j.Columns = headers, s.matched(o, headers, before)
	items := make([]item, len(lines))
	for i, cells := range lines {
		items[i].Cells = cells
	}
	return s.save(ctx, c, j, items)
}

// checkedFile is the operation of an import that was checked and not started. Error:
// JOB_STATE_CONFLICT.
func checkedFile(table *catalog.Catalog, j cloud.Job) (*catalog.Operation, error) {
	o := table.Find(j.Operation)
	if j.Status != cloud.JobChecked || j.File == "" || o == nil {
		return nil, cloud.E(cloud.Conflict, "JOB_STATE_CONFLICT", j.Status)
	}
	return o, nil
}

// ColumnsInput matches the columns of a file anew.
type ColumnsInput struct {
	ID      string   `path:"id" json:"-" doc:"job_id"`
	Columns []string `json:"columns" required:"true" max:"200" rows:"true" doc:"Member that each column fills, by path, in the order of headers; empty for none"`
}

// Match matches the columns of a file that was not started, and checks its lines again.
// Errors: JOB_NOT_FOUND, JOB_STATE_CONFLICT, VALIDATION_FAILED.
func (s *Service) Match(ctx context.Context, c cloud.Caller, in ColumnsInput) (Output, error) {
	return s.change(ctx, c, in.ID, func(_ cloud.View, j *cloud.Job, _ cloud.JobCount, ch *cloud.Changes) error {
		o, err := checkedFile(s.table, *j)
		if err != nil {
			return err
		}
		f := check.Fields{}
		known := FlatColumns(o)
		for i, path := range in.Columns {
			switch {
			case i >= len(j.Headers):
				f.Say("columns", "The file has fewer columns.")
			case path == "":
			case !isColumn(known, path):
				f.Say("columns", "One of these is no member that a file can fill.")
			case slices.Contains(in.Columns[:i], path):
				f.Say("columns", "Two columns fill the same member.")
			}
		}
		if err := f.Err(); err != nil {
			return err
		}
		j.Columns = append(slices.Clone(in.Columns), make([]string, len(j.Headers)-len(in.Columns))...)
		j.Status, j.Digest = cloud.JobChecking, ""
		ch.UncheckJobs = []string{j.ID}
		return nil
	})
}

// MendInput changes a line of a file.
type MendInput struct {
	ID    string   `path:"id" json:"-" doc:"job_id"`
	Row   int      `path:"row" json:"-" doc:"Number of the row, from 1"`
	Cells []string `json:"cells" required:"true" max:"200" rows:"true" doc:"All cells of the line, in the order of headers"`
}

// Mend changes a line of a file that was not started and checks it at once. Errors:
// JOB_NOT_FOUND, JOB_STATE_CONFLICT, VALIDATION_FAILED.
func (s *Service) Mend(ctx context.Context, c cloud.Caller, in MendInput) (Output, error) {
	var j cloud.Job
	if err := s.cfg.Store.Look(ctx, func(v cloud.View) (err error) { j, err = own(v, c, in.ID); return err }); err != nil {
		return Output{}, err
	}
	conflict := cloud.E(cloud.Conflict, "JOB_STATE_CONFLICT", j.Status)
	n := s.table.Noun(j.Noun)
	o, err := checkedFile(s.table, j)
	if err == nil && n == nil {
		err = conflict
	}
	if err != nil {
		return Output{}, err
	}
	f := check.Fields{}
	if len(in.Cells) > len(j.Headers) {
		f.Say("cells", "The file has fewer columns.")
	}
	if err := f.Err(); err != nil {
		return Output{}, err
	}
	raw, err := json.Marshal(item{Cells: in.Cells})
	if err != nil {
		return Output{}, err
	}
	row := cloud.JobRow{JobID: j.ID, Row: in.Row, Input: raw}
	who, err := s.caller(ctx, j, o)
	if err != nil {
		return Output{}, err
	}
	// Outside of the decision that stores it, as checks of other rows are.
	found, err := s.try(context.WithoutCancel(ctx), j, n, o, who, row)
	if err != nil {
		return Output{}, err
	}
	if row.Checked, err = json.Marshal(found); err != nil {
		return Output{}, err
	}
	row.Bad = found.Code != ""
	out, err := s.change(ctx, c, in.ID, func(v cloud.View, now *cloud.Job, _ cloud.JobCount, ch *cloud.Changes) error {
		if now.Status != cloud.JobChecked || !slices.Equal(now.Columns, j.Columns) {
			return conflict
		}
		if _, err := v.JobRow(j.ID, in.Row); errors.Is(err, cloud.ErrNotFound) {
			return missing()
		} else if err != nil {
			return err
		}
		now.Digest = s.digest(now.Digest, row)
		ch.JobRows = []cloud.JobRow{row}
		return nil
	})
	if err != nil {
		return out, err
	}
	return s.Find(ctx, c, ByID{in.ID})
}

// remember keeps how the columns of a file that is started are matched.
func (s *Service) remember(v cloud.View, j cloud.Job, ch *cloud.Changes) error {
	seen := map[string]bool{}
	for i, h := range j.Headers {
		header := plainHeader(h)
		if header == "" || len(header) > 200 || seen[header] {
			continue
		}
		seen[header] = true
		like := cloud.FileColumn{Kept: cloud.Kept[cloud.FileColumnID]{BusinessID: j.BusinessID}, Noun: j.Noun, Header: header}
		old, err := cloud.All(v, like)
		if err != nil {
			return err
		}
		x := like
		now := time.Now().UTC()
		if len(old) > 0 {
			x = old[0]
			x.Touch(now)
		} else {
			id, err := v.NewID(cloud.FileColumnIDs)
			if err != nil {
				return err
			}
			x.Begin(id, j.BusinessID, now)
		}
		x.Path = j.Columns[i]
		ch.Rows = append(ch.Rows, x)
	}
	return nil
}
