package account

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
)

// AuditChoice chooses lines of the audit trail.
type AuditChoice struct {
	Actor  string `query:"actor" max:"80" doc:"Such as account:12, device:FRONT-01 or anonymous"`
	Action string `query:"action" max:"80" doc:"Such as logged_in or orders.cancel; with actor only beside a target"`
	Target string `query:"target" max:"200" doc:"Such as account:12 or order_id=120045"`
	From   string `query:"from" format:"moment" graphql:"DateTime"`
	To     string `query:"to" format:"moment" graphql:"DateTime" doc:"Not included"`
}

// AuditInput asks for a part of the audit trail.
type AuditInput struct {
	AuditChoice
	check.LongKeyset
}

// AuditLine is who did what to what.
type AuditLine struct {
	ID        int64          `json:"id" graphql:"Long!"`
	At        *string        `json:"at"`
	Actor     string         `json:"actor"`
	ActorName *string        `json:"actor_name" doc:"Of an account, an operator of the platform too"`
	Action    string         `json:"action"`
	Target    string         `json:"target"`
	Operation string         `json:"operation" doc:"Empty when it was no call of the interface"`
	Surface   string         `json:"surface"`
	IP        string         `json:"ip"`
	Outcome   string         `json:"outcome" doc:"done, or the code of the refusal"`
	RequestID string         `json:"request_id"`
	PassID    *cloud.PassID  `json:"pass_id" doc:"Of the pass by which an operator of the platform did it"`
	Details   map[string]any `json:"details" graphql:"JSON" doc:"What else was kept; never a secret"`
}

// AuditOutput is a part of the audit trail, newest first.
type AuditOutput struct {
	Result bool `json:"result"`
	check.PageOutput
	Lines []AuditLine `json:"lines"`
}

// filter is what a choice asks for. Errors: VALIDATION_FAILED.
func (in AuditChoice) filter(b cloud.Business) (cloud.AuditFilter, error) {
	f := newFields()
	out := cloud.AuditFilter{BusinessID: b.ID, Actor: in.Actor, Action: in.Action, Target: in.Target}
	out.From, out.To = check.Moment(in.From, b.Location()), check.Moment(in.To, b.Location())
	if in.Actor != "" && in.Action != "" && in.Target == "" {
		f.Add("action", "Give a target too, or only one of actor and action.")
	}
	return out, f.Err()
}

// naming names the accounts of lines.
type naming struct {
	v     cloud.View
	b     cloud.Business
	names map[string]*string
}

func (n *naming) show(a cloud.AuditLine) AuditLine {
	out := AuditLine{ID: a.N, At: cloud.Stamp(a.At, n.b.Location()), Actor: a.Actor, ActorName: n.name(a.Actor), Action: a.Action, Target: a.Target, Details: map[string]any{}}
	_ = json.Unmarshal([]byte(a.Detail), &out.Details) // of ours, or empty
	for name, to := range map[string]*string{"operation": &out.Operation, "surface": &out.Surface, "ip": &out.IP, "outcome": &out.Outcome, "request_id": &out.RequestID} {
		*to, _ = out.Details[name].(string)
		delete(out.Details, name)
	}
	if id, ok := out.Details["pass_id"].(float64); ok {
		out.PassID = new(cloud.PassID(id))
		delete(out.Details, "pass_id")
	}
	if out.Details == nil {
		out.Details = map[string]any{}
	}
	return out
}

// name is that of an account of the business, or of an operator of the platform; nil
// for others.
func (n *naming) name(actor string) *string {
	if known, ok := n.names[actor]; ok {
		return known
	}
	var out *string
	if id, err := strconv.ParseInt(strings.TrimPrefix(actor, "account:"), 10, 64); err == nil {
		if a, err := n.v.Account(cloud.AccountID(id)); err == nil && (a.BusinessID == n.b.ID || a.Type == cloud.PlatformAdmin) {
			out = &a.Name
		}
	}
	n.names[actor] = out
	return out
}

// audits reads a part of the trail.
func (s *Access) audits(ctx context.Context, c cloud.Caller, in AuditChoice, page cloud.Page) (lines []AuditLine, listed cloud.Listed, err error) {
	err = s.cfg.Store.Look(ctx, func(v cloud.View) error {
		b, err := businessOf(v, c)
		if err != nil {
			return err
		}
		f, err := in.filter(b)
		if err != nil {
			return err
		}
		f.Page = page
		if a, err := v.Account(c.Account.ID); err != nil || !a.Enabled || c.Pass == 0 && a.Type != c.Account.Type { // a file is read for long
			return errors.Join(err, cloud.E(cloud.Forbidden, "FORBIDDEN"))
		}
		if c.Pass != 0 {
			if p, err := cloud.Find(v, cloud.PlatformPass{ID: c.Pass}); err != nil || !p.Live(time.Now()) {
				return errors.Join(err, cloud.E(cloud.Unauthenticated, "TOKEN_INVALID"))
			}
		}
		list, found, err := v.Audits(f)
		n := naming{v, b, map[string]*string{}}
		lines, listed = []AuditLine{}, found
		for _, a := range list {
			lines = append(lines, n.show(a))
		}
		return err
	})
	return lines, listed, err
}

// ListAudits lists a part of the audit trail of the caller's business, newest first.
// Error: VALIDATION_FAILED.
func (s *Access) ListAudits(ctx context.Context, c cloud.Caller, in AuditInput) (out AuditOutput, err error) {
	page, err := in.Part(in, "-at")
	if err != nil {
		return out, err
	}
	lines, listed, err := s.audits(ctx, c, in.AuditChoice, page)
	return AuditOutput{Result: err == nil, PageOutput: in.Output(in, listed), Lines: lines}, err
}

// ExportInput asks for a file of the audit trail.
type ExportInput struct {
	AuditChoice
	Format string `query:"format" enum:"csv,jsonl" default:"csv" doc:"jsonl has one JSON object a line"`
}

const (
	exportStep = 500 // lines that are read at once
	exportTime = 10 * time.Second
)

// ExportAudits is the audit trail of the caller's business as a file, newest first,
// read step by step while it is sent. Error: VALIDATION_FAILED.
func (s *Access) ExportAudits(ctx context.Context, c cloud.Caller, in ExportInput) (io.ReadCloser, error) {
	r := &exporting{s: s, ctx: context.WithoutCancel(ctx), c: c, in: in, page: cloud.Page{Sort: "at", Down: true, Limit: exportStep}}
	if in.Format != "jsonl" {
		r.row([]string{"id", "at", "actor", "actor_name", "action", "target", "operation", "surface", "ip", "outcome", "request_id", "details", "pass_id"})
	}
	return r, r.fill()
}

// exporting is a file that is read from the database as it goes.
type exporting struct {
	s    *Access
	ctx  context.Context
	c    cloud.Caller
	in   ExportInput
	page cloud.Page
	over bool
	text bytes.Buffer
}

func (e *exporting) Read(to []byte) (int, error) {
	if e.text.Len() == 0 && !e.over {
		if err := e.fill(); err != nil {
			return 0, err
		}
	}
	return e.text.Read(to)
}

func (e *exporting) Close() error { return nil }

func (e *exporting) fill() error {
	ctx, cancel := context.WithTimeout(e.ctx, exportTime)
	defer cancel()
	lines, listed, err := e.s.audits(ctx, e.c, e.in.AuditChoice, e.page)
	if err != nil {
		return err
	}
	for _, l := range lines {
		if e.in.Format == "jsonl" {
			raw, err := json.Marshal(l)
			if err != nil {
				return err
			}
			e.text.Write(append(raw, '\n'))
			continue
		}
		details, err := json.Marshal(l.Details)
		if err != nil {
			return err
		}
		at, name, pass := "", "", ""
		if l.PassID != nil {
			pass = strconv.FormatInt(int64(*l.PassID), 10)
		}
		if l.At != nil {
			at = *l.At
		}
		if l.ActorName != nil {
			name = *l.ActorName
		}
		e.row([]string{strconv.FormatInt(l.ID, 10), at, l.Actor, name, l.Action, l.Target, l.Operation, l.Surface, l.IP, l.Outcome, l.RequestID, string(details), pass})
	}
	e.page.After, e.over = listed.Next, listed.Next == nil
	return nil
}

// row writes a line of CSV. Spreadsheets run what begins like a formula, so such
// cells begin with an apostrophe.
func (e *exporting) row(cells []string) {
	for i, c := range cells {
		if c != "" && strings.ContainsRune("=+-@\t\r", rune(c[0])) {
			cells[i] = "'" + c
		}
	}
	w := csv.NewWriter(&e.text)
	_ = w.Write(cells) // to memory
	w.Flush()
}
