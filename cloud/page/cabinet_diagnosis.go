package page

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/locale"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/protocol/diagnosis"
)

const (
	listsDiagnoses = "smart_lockers.devices.diagnoses"
	findsDiagnosis = "smart_lockers.diagnoses.find"
	// shownDiagnoses are the diagnoses that a cabinet's page lists.
	shownDiagnoses = 10
)

// diagnosisRow is a diagnosis in the list of a cabinet's page.
type diagnosisRow struct {
	To, Type, State, Text, Note, By string
	At                              *moment
	Current                         bool
}

// diagnosisView is a diagnosis with its answer.
type diagnosisView struct {
	diagnosisRow
	Runs   bool // the answer is still to come
	File   string
	Size   string
	Facts  []reportFact // of a channel test
	Hints  []string
	Moves  []moveRow
	Boards []boardView
}

type moveRow struct{ After, Channel, Bit, Set string }

// boardView is a board in words.
type boardView struct {
	Name, State, Text string
	Facts             []reportFact
	Channels          []channelRow
}

type channelRow struct{ Channel, Door, Switch, Item, State, Text, Edges string }

// diagnosed reports whether a cabinet has a view of its diagnoses for a visitor.
func (p drawnPages) diagnosed(c context.Context, v visitor, d locker.DeviceBody) bool {
	return d.Protocol == cloud.ProtocolMQTT && p.mayAny(c, v, listsDiagnoses)
}

// diagnosis lists the newest diagnoses, and shows the one that the address names, else the
// newest.
func (p drawnPages) diagnosis(c context.Context, ctx *fasthttp.RequestCtx, v visitor, out *standing) error {
	list, err := run[locker.DiagnosesOutput](c, ctx, p.kit, v, listsDiagnoses, map[string]any{"id": int64(out.Cabinet.DeviceID), "per_page": shownDiagnoses})
	if err != nil {
		return fmt.Errorf("list diagnoses of cabinet %d: %w", out.Cabinet.DeviceID, err)
	}
	if len(list.Diagnoses) == 0 {
		return nil
	}
	shown := list.Diagnoses[0].ID
	if of, err := strconv.ParseInt(string(ctx.QueryArgs().Peek("of")), 10, 64); err == nil && slices.ContainsFunc(list.Diagnoses, func(d locker.DiagnosisBody) bool { return int64(d.ID) == of }) {
		shown = cloud.DiagnosisID(of)
	}
	doors := map[cloud.GridID]string{}
	for _, g := range out.Cabinet.Grids {
		doors[g.GridID] = g.DoorName
	}
	for _, d := range list.Diagnoses {
		row := v.diagnosisRow(d, doors)
		row.To, row.Current = fmt.Sprintf("%s?tab=diagnosis&of=%d", out.Here, d.ID), d.ID == shown
		out.Diagnoses = append(out.Diagnoses, row)
	}
	found, err := run[locker.DiagnosisOutput](c, ctx, p.kit, v, findsDiagnosis, map[string]any{"diagnosis_id": int64(shown)})
	if err != nil {
		return fmt.Errorf("find diagnosis %d: %w", shown, err)
	}
	out.Answer = v.diagnosisView(found.Diagnosis, doors)
	return nil
}

func (f frame) diagnosisRow(d locker.DiagnosisBody, doors map[cloud.GridID]string) diagnosisRow {
	r := diagnosisRow{Type: f.V("value", d.Type), State: string(d.State), Text: f.V("diagnosis", string(d.State)), By: outside(d.RequestedBy, maxValue), At: f.stamped(d.RequestedAt)}
	if d.GridID != nil {
		r.Type += " · " + f.T("cab.door", outside(doors[*d.GridID], maxField))
	}
	if d.Note != nil {
		r.Note = f.V("refusal", outside(*d.Note, maxValue))
	}
	return r
}

func (f frame) diagnosisView(d locker.DiagnosisDetail, doors map[cloud.GridID]string) *diagnosisView {
	out := &diagnosisView{diagnosisRow: f.diagnosisRow(d.DiagnosisBody, doors), Runs: d.State == cloud.DiagnosisWaiting || d.State == cloud.DiagnosisRunning}
	if d.FileURL != nil {
		out.File = *d.FileURL
	}
	if d.SizeBytes != nil {
		out.Size = f.T("cab.diag.size", locale.Number(f.Lang, float64((*d.SizeBytes+1023)/1024)))
	}
	if d.Test != nil {
		f.testView(out, *d.Test)
	}
	for _, b := range d.Boards {
		out.Boards = append(out.Boards, f.boardView(b))
	}
	return out
}

// testView says what a channel test has shown, and what may be wrong.
func (f frame) testView(out *diagnosisView, t locker.TestBody) {
	add := func(name, text string) { out.Facts = append(out.Facts, reportFact{name, text}) }
	millis := func(ms *int64) string {
		if ms == nil {
			return "–"
		}
		return f.T("cab.lock.ms", *ms)
	}
	add(f.T("cab.diag.result"), f.V("channeltest", t.Result))
	add(f.T("cab.diag.channel"), fmt.Sprint(t.Channel))
	add(f.T("cab.diag.pulses"), fmt.Sprint(t.Pulses))
	if t.Result == diagnosis.Opened {
		closed := f.T("cab.diag.no")
		if t.Closed {
			closed = f.T("cab.diag.yes")
		}
		add(f.T("cab.diag.delay"), millis(t.DelayMS))
		add(f.T("cab.diag.closed"), closed)
		add(f.T("cab.diag.open"), millis(t.OpenMS))
	}
	var switches []int
	for _, m := range t.Moves {
		out.Moves = append(out.Moves, moveRow{f.T("cab.lock.ms", m.AfterMS), fmt.Sprint(m.Channel), f.V("rawbit", m.Bit), f.bit(&m.Set)})
		if m.Bit == diagnosis.Switch && !slices.Contains(switches, m.Channel) {
			switches = append(switches, m.Channel)
		}
	}
	switch {
	case t.Restarted:
		out.Hints = append(out.Hints, f.T("cab.diag.restarted"))
	case len(switches) == 0:
		out.Hints = append(out.Hints, f.T("cab.diag.still"))
	case !slices.Contains(switches, t.Channel):
		slices.Sort(switches)
		out.Hints = append(out.Hints, f.T("cab.diag.mixed", strings.Trim(fmt.Sprint(switches), "[]"), fmt.Sprint(t.Channel)))
	}
}

func (f frame) boardView(b locker.BoardBody) boardView {
	ago := func(ms *int64) string {
		if ms == nil {
			return "–"
		}
		return f.T("cab.diag.ago", fmt.Sprintf("%.1f", float64(*ms)/1000))
	}
	out := boardView{Name: outside(b.Name, maxField), State: b.State, Text: f.V("boardstate", outside(b.State, maxField))}
	add := func(name, text string) { out.Facts = append(out.Facts, reportFact{name, text}) }
	add(f.T("cab.diag.where"), outside(b.Line, maxField))
	add(f.T("cab.diag.family"), outside(b.Family, maxField))
	add(f.T("cab.diag.address"), fmt.Sprint(b.Address))
	add(f.T("cab.diag.answered"), ago(b.AnsweredMS))
	if b.Error != nil {
		add(f.T("cab.diag.error"), f.V("boardfault", outside(*b.Error, maxField))+", "+ago(b.ErrorMS))
	}
	for _, n := range []struct {
		name  string
		count int64
	}{{f.T("cab.diag.polls"), b.Polls}, {f.T("cab.diag.silent"), b.Silent}, {f.T("cab.diag.damaged"), b.Damaged}, {f.T("cab.diag.pulses"), b.Pulses}} {
		add(n.name, locale.Number(f.Lang, float64(n.count)))
	}
	for _, c := range b.Channels {
		x := channelRow{Channel: fmt.Sprint(c.Channel), Door: "–", Switch: f.bit(c.Switch), Item: f.bit(c.Item), Edges: fmt.Sprint(c.Edges)}
		if c.Door != nil {
			x.Door = fmt.Sprint(*c.Door)
		}
		if c.State != nil {
			x.State, x.Text = *c.State, f.V("door", outside(*c.State, maxField))
		}
		out.Channels = append(out.Channels, x)
	}
	return out
}

// bit is a raw bit as people read it.
func (f frame) bit(b *bool) string {
	switch {
	case b == nil:
		return "–"
	case *b:
		return "1"
	}
	return "0"
}
