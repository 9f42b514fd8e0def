package job

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/check"
)

// Most problems of a job that are listed, and messages of one.
const (
	maxProblems = 50
	maxMessages = 3
)

// ProblemView is what is wrong with a member in some of a job's rows.
type ProblemView struct {
	Column   string   `json:"column" doc:"Header of the column; the member in words where there is none, or where it is the path; empty for what is wrong with a row as a whole"`
	Path     string   `json:"path"`
	Messages []string `json:"messages" doc:"At most three that differ"`
	Choices  []string `json:"choices" doc:"Values that are allowed, where they are few"`
	Rows     int      `json:"rows" doc:"How many rows have it"`
	First    int      `json:"first_row" doc:"Number of the first of them"`
	Fills    bool     `json:"fills" doc:"true: jobs.fill sets the member in all of them"`
}

// ProblemsOutput lists problems, those of most rows first.
type ProblemsOutput struct {
	Result   bool          `json:"result"`
	Problems []ProblemView `json:"problems"`
	Omitted  int           `json:"omitted" doc:"Further problems, each of no more rows than the last one"`
}

// GraphQLName is the name of the type in GraphQL.
func (ProblemView) GraphQLName() string { return "BulkJobProblem" }

// GraphQLName is the name of the type in GraphQL.
func (ProblemsOutput) GraphQLName() string { return "BulkJobProblems" }

// Problems counts what is wrong with the rows that the check refused, by member. A row
// with several problems counts in each. Error: JOB_NOT_FOUND.
func (s *Service) Problems(ctx context.Context, c cloud.Caller, in ByID) (ProblemsOutput, error) {
	out := ProblemsOutput{Problems: []ProblemView{}}
	err := s.cfg.Store.Look(ctx, func(v cloud.View) error {
		j, err := own(v, c, in.ID)
		if err != nil {
			return err
		}
		rows, err := v.JobRows(j.ID)
		if err != nil {
			return err
		}
		out.Problems = problems(s.cfg, s.table.Find(j.Operation), c.Language, j, rows)
		return nil
	})
	if err != nil {
		return ProblemsOutput{}, err
	}
	out.Result = true
	slices.SortStableFunc(out.Problems, func(a, b ProblemView) int { return cmp.Or(b.Rows-a.Rows, a.First-b.First) })
	if more := len(out.Problems) - maxProblems; more > 0 {
		out.Problems, out.Omitted = out.Problems[:maxProblems], more
	}
	return out, nil
}

func problems(cfg Config, o *catalog.Operation, lang string, j cloud.Job, rows []cloud.JobRow) []ProblemView {
	var known []Column // that a value can be set in
	if o != nil && j.File != "" {
		known = FlatColumns(o)
	}
	found := map[string]*ProblemView{}
	for _, r := range rows {
		o := refused(r)
		for _, path := range o.paths() {
			p := found[path]
			if p == nil {
				p = &ProblemView{Path: path, Messages: []string{}, First: r.Row}
				if path != "" {
					p.Column = column(cfg, lang, j, path)
				}
				p.Choices, p.Fills = choices(cfg, lang, known, path), isColumn(known, path)
				found[path] = p
			}
			p.Rows++
			for _, m := range o.messages(cfg, lang, path, p.Column) {
				if len(p.Messages) < maxMessages && !slices.Contains(p.Messages, m) {
					p.Messages = append(p.Messages, m)
				}
			}
		}
	}
	out := make([]ProblemView, 0, len(found))
	for _, path := range slices.Sorted(maps.Keys(found)) {
		out = append(out, *found[path])
	}
	return out
}

// refused is what the check found of a row that it refused, nil of any other.
func refused(r cloud.JobRow) *outcome {
	var o outcome
	if !r.Bad || r.Result != nil || json.Unmarshal(r.Checked, &o) != nil {
		return nil
	}
	return &o
}

// paths are the members with which something is wrong; "" is the row as a whole, where no
// member is named.
func (o *outcome) paths() []string {
	switch {
	case o == nil:
		return nil
	case len(o.Errors) == 0:
		return []string{""}
	}
	return slices.Sorted(maps.Keys(o.Errors))
}

// FillInput sets one member in all rows that have a problem with it.
type FillInput struct {
	ID    string `path:"id" json:"-" doc:"job_id"`
	Path  string `json:"path" required:"true" max:"200" line:"true" doc:"Of the member, as jobs.problems names it"`
	Value string `json:"value" required:"true" max:"1000" doc:"What a cell of the column would say"`
}

// Fill sets a member in every line of a file that the check refused for it, and checks
// those lines again; a member that no column fills gets one. Nothing has been started
// then. Errors: JOB_NOT_FOUND, JOB_STATE_CONFLICT, VALIDATION_FAILED.
func (s *Service) Fill(ctx context.Context, c cloud.Caller, in FillInput) (Output, error) {
	return s.change(ctx, c, in.ID, func(v cloud.View, j *cloud.Job, n cloud.JobCount, ch *cloud.Changes) error {
		o, err := checkedFile(s.table, *j)
		if err != nil {
			return err
		}
		f := check.Fields{}
		if !isColumn(FlatColumns(o), in.Path) {
			f.Say("path", "This is no member that a file can fill.")
			return f.Err()
		}
		rows, err := v.JobRows(j.ID)
		if err != nil {
			return err
		}
		at := slices.Index(j.Columns, in.Path)
		if at < 0 {
			at = len(j.Headers)
			j.Headers = append(slices.Clone(j.Headers), Label(s.cfg.Word, j.Language, in.Path))
			j.Columns = append(slices.Clone(j.Columns), in.Path)
		}
		for _, r := range rows {
			if !slices.Contains(refused(r).paths(), in.Path) {
				continue
			}
			var x item
			if err := json.Unmarshal(r.Input, &x); err != nil {
				return err
			}
			if short := at + 1 - len(x.Cells); short > 0 {
				x.Cells = append(x.Cells, make([]string, short)...)
			}
			x.Cells[at] = in.Value
			if r.Input, err = json.Marshal(x); err != nil {
				return err
			}
			r.Checked, r.Bad = nil, false
			ch.JobRows = append(ch.JobRows, r)
		}
		if len(ch.JobRows) == 0 {
			f.Say("path", "No row has a problem with this member.")
			return f.Err()
		}
		j.Status, j.Digest = cloud.JobChecking, ""
		return nil
	})
}
