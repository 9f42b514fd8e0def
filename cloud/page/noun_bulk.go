package page

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/csv"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/job"
	"github.com/postern-io/postern/cloud/locale"
)

// Verbs over many records, and the page of a job. What a job does is said in package
// job; a page prepares one, shows what its check found, starts it, and follows it.

const (
	jobsPath  = ConsolePath + "/jobs"
	jobPath   = jobsPath + "/{id}"
	jobRows   = jobPath + "/rows.csv"
	manyPath  = ConsolePath + "/{noun}/many"
	checkWait = 1500 * time.Millisecond // for which a page waits for a short check
)

// manyForm is the form of a verb over many records.
type manyForm struct {
	workFrame
	Noun    *catalog.Noun
	Heading string
	Back    string
	Action  string
	Records string // how many, in words
	Hidden  []pair
	Fields  []formField
	Risk    string
}

// bulkVerbs are the verbs of a noun that a visitor may do to many.
func (p nounPages) bulkVerbs(c context.Context, v visitor, n *catalog.Noun) (out []choice) {
	if !p.mayAny(c, v, "jobs.create") || n.ID == "" || n.List == "" || p.cfg.Catalog.Find(n.List).Target() != "" {
		return nil
	}
	for _, o := range n.Verbs {
		if p.cfg.Catalog.Find(o).Many > 0 && p.may(c, v, o) {
			out = append(out, choice{Value: verbPath(n, o), Text: label(v.Lang, o)})
		}
	}
	return out
}

// many shows the form of a verb over many records, or prepares the job.
func (p jobPages) many(ctx *fasthttp.RequestCtx) {
	c, cancel := context.WithTimeout(context.Background(), readTime)
	defer cancel()
	v, n, ok := p.nounAt(c, ctx)
	if !ok {
		return
	}
	args := ctx.QueryArgs()
	operation := p.verbOf(n, string(args.Peek("verb")))
	if o := p.cfg.Catalog.Find(operation); o == nil || o.Many == 0 {
		p.missing(ctx)
		return
	}
	o := p.cfg.Catalog.Find(operation)
	if err := p.cfg.Pipeline.May(c, o, v.c); err != nil {
		p.refused(ctx, v, err)
		return
	}
	all := len(args.Peek("all")) > 0
	var ids []string
	for _, x := range args.PeekMulti("id") {
		ids = append(ids, string(x))
	}
	filter := changed(ctx, map[string]string{"verb": "", "all": "", "id": "", "cursor": "", "lang": "", "column": ""})
	out := manyForm{workFrame: p.work(ctx, v, label(v.Lang, operation)), Noun: n, Heading: label(v.Lang, operation), Action: string(ctx.Path()) + "?" + string(ctx.URI().QueryString()), Back: ConsolePath + "/" + n.Path + "?" + filter, Risk: string(o.Risk)}
	out.Records = v.T("bulk.records", len(ids))
	if all {
		out.Records = v.T("bulk.allmatch")
	}
	m := &maker{p: p.nounPages, of: operation, f: v.frame, c: c, ctx: ctx, v: v, values: map[string]string{}, rows: map[string]int{}, refs: p.references(c, ctx, v)}
	target, _ := n.About(o)
	members := slices.DeleteFunc(formMembers(o, target), func(m catalog.Member) bool { return isSecret(m.Name) })
	again := func(problem string, status int) {
		out.Problem, out.Fields = problem, m.fields("", members)
		p.show(ctx, status, "many.html", out)
	}
	seal := newSealer(p.kit, ctx, string(ctx.Path()))
	switch {
	case !all && len(ids) == 0:
		again(v.T("bulk.none"), fasthttp.StatusUnprocessableEntity)
		return
	case !ctx.IsPost():
		again("", fasthttp.StatusOK)
		return
	case !ownForm(ctx, &forStaff):
		again(v.T("console.expired"), fasthttp.StatusForbidden)
		return
	case !m.sent(ctx.PostArgs(), seal) || m.edit(ctx.PostArgs()):
		again("", fasthttp.StatusOK)
		return
	}
	raw, _ := json.Marshal(m.input("", members)) // of plain values
	in := map[string]any{"noun": n.Name, "operation": operation, "input": json.RawMessage(raw)}
	if all {
		in["all"], in["filter"] = true, filter
	} else {
		in["ids"] = ids
	}
	p.prepared(c, ctx, v, "jobs.create", in, func(problem string) { again(problem, fasthttp.StatusUnprocessableEntity) })
}

// prepared makes a job and leads to its page.
func (p jobPages) prepared(c context.Context, ctx *fasthttp.RequestCtx, v visitor, operation string, in map[string]any, again func(problem string)) {
	who := visitorCaller(p.kit, ctx, v)
	a, err := p.answerTo(c, who, operation, in, catalog.Key{})
	if err != nil {
		text, fields, known := p.explain(v.Lang, err)
		if !known {
			p.trouble(ctx, err)
			return
		}
		again(addFields(v.Lang, text, fields))
		return
	}
	answer, err := asObject(a.Body)
	if err != nil {
		p.trouble(ctx, err)
		return
	}
	seeOther(ctx, jobsPath+"/"+url.PathEscape(plainText(at(answer, "job.job_id")))+"?wait=1")
}

// jobPage is the page of a job.
type jobPage struct {
	workFrame
	ID, Heading, Noun string
	NounPath          string
	State             shown
	Running           bool   // it goes on: the page follows it
	Says              string // how far it is
	Reached, Total    int    // of the bar
	Reason            string
	Facts             []fact
	Good, Failed      int
	Digest            string
	Type              string // what a person types to start; "" for nothing
	Start             string // text of the button; "" where it cannot be started
	Cancels, Retries  bool
	Problems          []jobProblem
	MoreProblems      int
	Tables            []jobTable
	Columns           []columnPick
	Bad               string // address of the bad lines as a file; "" when there are none
	Result            string
	Risk              string
}

// jobProblem is what is wrong with a member in some rows.
type jobProblem struct {
	ID, Column, Path string
	Rows             int
	Messages         []string
	Fills            bool     // a value can be set for all of them
	Choices          []string // of the value; none for any
}

// jobTable are rows of a job.
type jobTable struct {
	Title string
	Rows  []jobLine
	More  int
	Bad   bool
	Mends bool // its rows have a form
}

type jobLine struct {
	Row     int
	Title   string
	To      string
	Message string
	Changes []change
	Errors  []cellProblem
	Cells   []cellField // of a line that can be mended
}

type cellProblem struct{ Message, Choices string }

type cellField struct{ Name, ID, Value, Problem string }

// columnPick is a column of a file with the members that it can fill.
type columnPick struct {
	Name, ID string
	Choices  []choice
}

const jobShown = 50 // rows of a table on a job's page

// jobAt is a job of a request with its visitor; otherwise what to show instead has been
// shown.
func (p jobPages) jobAt(c context.Context, ctx *fasthttp.RequestCtx) (v visitor, id string, j map[string]any, ok bool) {
	if v, ok = p.worker(c, ctx); !ok {
		return v, "", nil, false
	}
	id, _ = ctx.UserValue("id").(string)
	id = unescape(id)
	for end := time.Now().Add(checkWait); ; {
		answer, err := p.read(c, ctx, v, "jobs.find", map[string]any{"id": id})
		if err != nil {
			p.refused(ctx, v, err)
			return v, id, nil, false
		}
		j, _ = answer["job"].(map[string]any)
		if len(ctx.QueryArgs().Peek("wait")) == 0 || j["status"] != cloud.JobChecking && j["status"] != cloud.JobQueued || time.Now().After(end) {
			return v, id, j, true
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// showJob shows a job.
func (p jobPages) showJob(ctx *fasthttp.RequestCtx) {
	c, cancel := context.WithTimeout(context.Background(), readTime)
	defer cancel()
	if v, id, j, ok := p.jobAt(c, ctx); ok {
		p.job(c, ctx, v, id, j, "", fasthttp.StatusOK)
	}
}

func number(v any) int {
	n, _ := strconv.Atoi(plainText(v))
	return n
}

func (p jobPages) job(c context.Context, ctx *fasthttp.RequestCtx, v visitor, id string, j map[string]any, problem string, status int) {
	out, err := p.jobData(c, ctx, v, id, j)
	if err != nil {
		p.refused(ctx, v, err)
		return
	}
	if out.Problem = problem; out.Running {
		followTopics(p.kit, ctx, &out.frame, "job:"+url.PathEscape(id))
	}
	p.show(ctx, status, "job.html", out)
}

// readJob is what the page of a job shows now.
func (p jobPages) readJob(c context.Context, ctx *fasthttp.RequestCtx, v visitor, id string) (jobPage, error) {
	answer, err := p.read(c, ctx, v, "jobs.find", map[string]any{"id": id})
	if err != nil {
		return jobPage{}, err
	}
	j, _ := answer["job"].(map[string]any)
	return p.jobData(c, ctx, v, id, j)
}

func (p jobPages) jobData(c context.Context, ctx *fasthttp.RequestCtx, v visitor, id string, j map[string]any) (jobPage, error) {
	operation, state := plainText(j["operation"]), plainText(j["status"])
	n, o := p.cfg.Catalog.Noun(plainText(j["noun"])), p.cfg.Catalog.Find(operation)
	file := plainText(j["file_name"])
	out := jobPage{ID: id, Heading: label(v.Lang, operation), State: stateShown(v.frame, "job", state), Total: number(j["total"]), Good: number(j["good"]), Failed: number(j["failed"]), Digest: plainText(j["digest"]), Reason: outside(plainText(j["reason"]), maxValue)}
	if file != "" {
		out.Heading = v.T("bulk.import") + ": " + outside(file, maxValue)
	}
	out.workFrame = p.work(ctx, v, out.Heading)
	if n != nil {
		out.Noun, out.NounPath = v.T("noun."+n.Name), ConsolePath+"/"+n.Path
	}
	if o != nil {
		out.Risk = string(o.Risk)
	}
	for _, name := range []string{"created_by", "created_at", "started_at", "finished_at"} {
		if s := p.value(v.frame, name, j[name], ""); s.Text != "" {
			out.Facts = append(out.Facts, fact{memberWords(v.Lang, name), s})
		}
	}
	refused := number(j["refused"])
	switch state {
	case cloud.JobChecking:
		out.Running, out.Reached, out.Says = true, number(j["checked"]), v.T("bulk.checking", number(j["checked"]), out.Total)
	case cloud.JobChecked:
		out.Reached, out.Says = out.Total, v.T("bulk.found", out.Good, refused)
		if out.Good > 0 && p.may(c, v, "jobs.start") {
			out.Start = v.T("bulk.start", out.Good)
			if out.Good > job.TypedOver {
				out.Type = strconv.Itoa(out.Good)
			}
		}
	default:
		out.Running = state == cloud.JobQueued || state == cloud.JobProcessing
		out.Reached = number(j["succeeded"]) + out.Failed
		out.Says = v.T("bulk.progress", number(j["succeeded"]), out.Total, out.Failed)
		out.Result = jobsPath + "/" + url.PathEscape(id) + "/rows.csv"
	}
	out.Cancels = plainText(j["finished_at"]) == "" && p.may(c, v, "jobs.cancel")
	out.Retries = plainText(j["finished_at"]) != "" && plainText(j["started_at"]) != "" && (out.Failed > 0 || out.Reached+refused < out.Total) && p.may(c, v, "jobs.retry")
	if refused+out.Failed > 0 && file != "" && !out.Running {
		out.Bad = jobsPath + "/" + url.PathEscape(id) + "/rows.csv?state=bad"
	}
	tables := []jobTable{{Title: "bulk.failed", Bad: true}, {Title: "bulk.refused", Bad: true}, {Title: "bulk.donerows"}}
	states := []string{"failed", "refused", "done"}
	if state == cloud.JobChecked {
		tables, states = []jobTable{{Title: "bulk.refused", Bad: true}, {Title: "bulk.firstgood"}}, []string{"refused", "open"}
	}
	if refused > 1 && state == cloud.JobChecked {
		if err := p.addProblems(c, ctx, v, id, &out); err != nil {
			return jobPage{}, err
		}
	}
	var headers, names []string
	list, _ := j["headers"].([]any)
	columns, _ := j["columns"].([]any)
	for i, h := range list {
		headers = append(headers, plainText(h))
		names = append(names, job.ColumnName(locale.Word, v.Lang, headers[i], plainText(at(columns, strconv.Itoa(i)))))
	}
	for i, t := range tables {
		if state == cloud.JobChecking {
			break
		}
		answer, err := p.read(c, ctx, v, "jobs.rows", map[string]any{"id": id, "state": states[i], "per_page": jobShown})
		if err != nil {
			return jobPage{}, err
		}
		rows, _ := answer["rows"].([]any)
		t.Title, t.More = v.T(t.Title), number(answer["total"])-len(rows)
		t.Mends = state == cloud.JobChecked && t.Bad && file != ""
		for _, x := range rows {
			r, _ := x.(map[string]any)
			t.Rows = append(t.Rows, p.jobLine(v.frame, n, r, names, t.Mends))
		}
		if len(t.Rows) > 0 {
			out.Tables = append(out.Tables, t)
		}
	}
	if file != "" && state == cloud.JobChecked && o != nil {
		for i, h := range headers {
			pick := columnPick{Name: outside(h, maxValue), ID: "c-" + strconv.Itoa(i)}
			for _, f := range job.FlatColumns(o) {
				pick.Choices = append(pick.Choices, choice{f.Path, job.Label(locale.Word, v.Lang, f.Path), i < len(columns) && plainText(columns[i]) == f.Path})
			}
			out.Columns = append(out.Columns, pick)
		}
	}
	return out, nil
}

// addProblems adds what is wrong with several rows, to be mended for all of them.
func (p jobPages) addProblems(c context.Context, ctx *fasthttp.RequestCtx, v visitor, id string, out *jobPage) error {
	answer, err := run[job.ProblemsOutput](c, ctx, p.kit, v, "jobs.problems", map[string]any{"id": id})
	if err != nil {
		return err
	}
	fills := p.may(c, v, "jobs.fill")
	for i, x := range answer.Problems {
		y := jobProblem{ID: "p-" + strconv.Itoa(i), Column: outside(x.Column, maxValue), Path: x.Path, Rows: x.Rows, Fills: fills && x.Fills && x.Rows > 1, Choices: x.Choices}
		for _, m := range x.Messages {
			y.Messages = append(y.Messages, outside(namedOnce(x.Column, m), maxValue))
		}
		out.Problems = append(out.Problems, y)
	}
	out.MoreProblems = answer.Omitted
	return nil
}

// jobLine is a row of a job, with fields where it can be mended.
func (p jobPages) jobLine(f frame, n *catalog.Noun, r map[string]any, columns []string, mends bool) jobLine {
	l := jobLine{Row: number(r["row"]), Title: outside(plainText(r["title"]), maxValue), Message: outside(plainText(r["message"]), 2*maxValue)}
	if id := plainText(r["record_id"]); n != nil && id != "" {
		l.To = recordAddress(n, map[string]any{n.ID: id})
	}
	errors, _ := r["errors"].([]any)
	problems := map[string]string{}
	for _, x := range errors {
		e, _ := x.(map[string]any)
		c := cellProblem{Message: outside(namedOnce(plainText(e["column"]), plainText(e["message"])), maxValue)}
		choices, _ := e["choices"].([]any)
		var names []string
		for _, c := range choices[:min(len(choices), 20)] {
			names = append(names, plainText(c))
		}
		c.Choices = strings.Join(names, ", ")
		problems[plainText(e["column"])] = c.Message
		l.Errors = append(l.Errors, c)
	}
	cells, _ := r["cells"].([]any)
	if len(l.Errors) > 0 { // they say it
		l.Message = ""
	}
	changes, _ := r["changes"].([]any)
	for _, x := range changes {
		e, _ := x.(map[string]any)
		name := plainText(e["member"])
		side := func(v any) *string {
			if s := p.value(f, name, v, "").Text; s != "" {
				return &s
			}
			return nil
		}
		l.Changes = append(l.Changes, change{memberWords(f.Lang, name), side(e["before"]), side(e["after"])})
	}
	if l.Title == "" {
		var first []string
		for _, x := range cells[:min(len(cells), 3)] {
			first = append(first, plainText(x))
		}
		l.Title = outside(strings.Join(first, " · "), maxValue)
	}
	for i, h := range columns {
		if !mends {
			break
		}
		c := cellField{Name: outside(h, maxValue), ID: "m-" + strconv.Itoa(l.Row) + "-" + strconv.Itoa(i), Problem: problems[h]}
		if i < len(cells) {
			c.Value = plainText(cells[i])
		}
		l.Cells = append(l.Cells, c)
	}
	return l
}

// changeJob starts, cancels, retries or mends a job.
func (p jobPages) changeJob(ctx *fasthttp.RequestCtx) {
	c, cancel := context.WithTimeout(context.Background(), readTime)
	defer cancel()
	v, id, j, ok := p.jobAt(c, ctx)
	if !ok {
		return
	}
	if !ownForm(ctx, &forStaff) {
		p.job(c, ctx, v, id, j, v.T("console.expired"), fasthttp.StatusForbidden)
		return
	}
	args := ctx.PostArgs()
	in, operation := map[string]any{"id": id}, ""
	texts := func(name string) []any {
		out := []any{}
		for _, x := range args.PeekMulti(name) {
			out = append(out, string(x))
		}
		return out
	}
	switch do := string(args.Peek("do")); do {
	case "start":
		operation, in["digest"] = "jobs.start", string(args.Peek("digest"))
		if n, err := strconv.Atoi(strings.TrimSpace(string(args.Peek("count")))); err == nil {
			in["count"] = json.Number(strconv.Itoa(n))
		}
	case "cancel", "retry":
		operation = "jobs." + do
	case "columns":
		operation, in["columns"] = "jobs.columns", texts("column")
	case "mend":
		operation, in["row"], in["cells"] = "jobs.mend", string(args.Peek("row")), texts("cell")
	case "fill":
		operation, in["path"], in["value"] = "jobs.fill", string(args.Peek("path")), string(args.Peek("value"))
	default:
		p.missing(ctx)
		return
	}
	who := visitorCaller(p.kit, ctx, v)
	if _, err := p.answerTo(c, who, operation, in, catalog.Key{Value: rand.Text(), Address: "page job", Request: requestOf(in), Always: true}); err != nil {
		text, fields, known := p.explain(v.Lang, err)
		if !known {
			p.trouble(ctx, err)
			return
		}
		for _, words := range fields {
			text += " " + words
		}
		p.job(c, ctx, v, id, j, text, statusFor(err))
		return
	}
	seeOther(ctx, jobsPath+"/"+url.PathEscape(id)+"?wait=1")
}

// jobCSV streams what became of a job's rows, or its bad lines as they can be imported
// again.
func (p jobPages) jobCSV(ctx *fasthttp.RequestCtx) {
	c, cancel := context.WithTimeout(context.Background(), readTime)
	defer cancel()
	v, id, j, ok := p.jobAt(c, ctx)
	if !ok {
		return
	}
	bad := string(ctx.QueryArgs().Peek("state")) == "bad" && plainText(j["file_name"]) != ""
	var head []string
	list, _ := j["headers"].([]any)
	states := []string{""}
	if bad {
		states = []string{"refused", "failed"}
		for _, h := range list {
			head = append(head, plainText(h))
		}
	} else {
		for _, name := range []string{"row", "title"} {
			head = append(head, memberWords(v.Lang, name))
		}
		head = append(head, v.T("bulk.state"))
	}
	head = append(head, v.T("bulk.reason"))
	who := visitorCaller(p.kit, ctx, v)
	ctx.SetContentType("text/csv; charset=utf-8")
	ctx.Response.Header.Set("Content-Disposition", `attachment; filename="`+map[bool]string{true: "bad-rows", false: "job"}[bad]+"-"+time.Now().In(v.Zone).Format("2006-01-02")+`.csv"`)
	ctx.SetBodyStreamWriter(func(w *bufio.Writer) {
		out := csv.NewWriter(w)
		write := func(cells []string) {
			for i := range cells {
				cells[i] = noFormula(cells[i])
			}
			_ = out.Write(cells)
		}
		write(slices.Clone(head))
		for _, state := range states {
			in := map[string]any{"id": id, "per_page": csvPage}
			if state != "" {
				in["state"] = state
			}
			for {
				c, cancel := context.WithTimeout(context.Background(), readTime)
				a, err := p.answerTo(c, who, "jobs.rows", in, catalog.Key{})
				cancel()
				var answer map[string]any
				if err == nil {
					answer, err = asObject(a.Body)
				}
				if err != nil {
					p.log.Warn("rows of a job as CSV ended early", "err", err)
					write([]string{v.T("bulk.cut")})
					out.Flush()
					return
				}
				rows, _ := answer["rows"].([]any)
				for _, x := range rows {
					r, _ := x.(map[string]any)
					write(csvLine(v, r, bad, len(list)))
				}
				out.Flush()
				next := plainText(answer["next_cursor"])
				if w.Flush() != nil {
					return
				}
				if next == "" || len(rows) == 0 {
					break
				}
				in["cursor"] = next
			}
		}
	})
}

// csvLine is a row of a job in a file: its cells and the reason, or what became of it.
func csvLine(v visitor, r map[string]any, bad bool, width int) []string {
	reason := plainText(r["message"])
	errors, _ := r["errors"].([]any)
	if len(errors) > 0 { // they say it
		reason = ""
	}
	for _, x := range errors {
		e, _ := x.(map[string]any)
		reason += " " + namedOnce(plainText(e["column"]), plainText(e["message"]))
	}
	reason = strings.TrimSpace(reason)
	if !bad {
		return []string{plainText(r["row"]), plainText(r["title"]), v.V("value", plainText(r["row_state"])), reason}
	}
	line := make([]string, width)
	cells, _ := r["cells"].([]any)
	for i, x := range cells[:min(len(cells), width)] {
		line[i] = plainText(x)
	}
	return append(line, reason)
}
