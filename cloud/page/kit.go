package page

import (
	"context"
	"html/template"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/page/chart"
)

// kitPath is the page of the design system: every part that pages are made of, in each of
// its states, drawn by the templates of the pages.
const kitPath = ConsolePath + "/kit"

// kitPage has what is shown of each part. Its records are made up.
type kitPage struct {
	workFrame
	Chips   []pageLink
	States  []shown
	Values  []shown
	Figures []figure
	Table   nounTable
	Filters []filter
	Fields  []formField
	Story   []storyLine
	Todos   []todo
	Charts  []template.HTML
	Board   board
	Chat    *chatPanel
}

// showKit shows the design system to staff.
func (p drawnPages) showKit(ctx *fasthttp.RequestCtx) {
	c, cancel := context.WithTimeout(context.Background(), readTime)
	defer cancel()
	v, ok := p.visitor(c, ctx)
	if !ok {
		return
	}
	p.show(ctx, fasthttp.StatusOK, "kit.html", makeKit(p.work(ctx, v, v.T("kit.title"))))
}

// kitMoment is the time of everything that the kit shows: its page is the same each day.
var kitMoment = time.Date(2026, 11, 20, 17, 12, 0, 0, time.UTC)

func makeKit(f workFrame) kitPage {
	f.Kit = []string{"chat"}
	at := f.timeAt(kitMoment, kitMoment.Add(12*time.Minute))
	long := "Saint-Germain-en-Laye International Parcel Collection Point, Building 12, Entrance B"
	out := kitPage{workFrame: f}
	out.Chips = []pageLink{{"#chips", f.T("todo.all"), true}, {"#chips", f.T("todo.mine"), false}, {"#chips", f.T("todo.snoozed"), false}}
	for _, state := range []string{"online", "overdue", "offline", "reserved", "retired"} {
		out.States = append(out.States, stateShown(f.frame, "value", state))
	}
	out.Values = []shown{{Text: "LD-000000042"}, {Text: "LD-000000042", To: "#values"}, {At: at}, {Text: f.T("work.yes"), Is: "yesno", Yes: true}, {Text: f.T("work.no"), Is: "yesno"}, {}, {Text: long}}
	out.Figures = []figure{{Name: f.T("home.delivered"), Value: "1,204", Of: f.T("home.of", "1,380"), Part: 1204, Whole: 1380, To: "#figures"}, {Name: f.T("home.waiting"), Value: "38", Note: f.T("home.overdue", "2"), Tone: "warn"}, {Name: f.T("home.free"), Value: "0", Of: f.T("home.of", "64"), Whole: 64}}
	out.Table = nounTable{Caption: f.T("kit.table"), Columns: []column{{Text: memberWords(f.Lang, "device_name"), Sort: "#tables", Sorted: "ascending"}, {Text: memberWords(f.Lang, "severity"), Sort: "#tables"}, {Text: memberWords(f.Lang, "since")}}}
	for i, s := range out.States[:3] {
		name := []string{"Front St Lobby", long, "مركز التسليم"}[i]
		out.Table.Rows = append(out.Table.Rows, tableRow{To: "#tables", Cells: []shown{{Text: name}, s, {At: at}}})
	}
	out.Filters = []filter{{Name: "kit_search", Label: f.T("work.search"), Kind: "search"}, {Name: "kit_kind", Label: memberWords(f.Lang, "kind"), Kind: "choices", Choices: []choice{{"a", f.V("value", "exception"), true}, {"b", f.V("value", "overdue"), false}}}, {Name: "kit_date", Label: memberWords(f.Lang, "date"), Kind: "date", Value: "2026-11-20"}, {Name: "kit_number", Label: memberWords(f.Lang, "hours"), Kind: "number", Value: "4"}}
	field := func(name, kind string, change func(*formField)) {
		x := formField{Name: "kit_" + name, ID: "f-kit-" + name, Label: memberWords(f.Lang, "note"), Kind: kind}
		if change != nil {
			change(&x)
		}
		out.Fields = append(out.Fields, x)
	}
	choices := []choice{{"a", f.V("value", "high"), true}, {"b", f.V("value", "medium"), false}}
	field("text", "text", func(x *formField) {
		x.Value, x.Required, x.Hint = "Sam Lee", true, f.T("work.default", "Sam")
	})
	field("wrong", "text", func(x *formField) { x.Value, x.Problem = "x", f.T("work.fields") })
	field("long", "long", func(x *formField) { x.Value = long })
	field("number", "number", func(x *formField) { x.Value, x.Min, x.Max = "4", "0", "720" })
	field("choice", "choices", func(x *formField) { x.Choices, x.Label = choices, memberWords(f.Lang, "severity") })
	field("date", "date", func(x *formField) { x.Value, x.Label = "2026-11-20", memberWords(f.Lang, "date") })
	field("secret", "secret", nil)
	field("picks", "picks", func(x *formField) { x.Choices, x.Label = choices, memberWords(f.Lang, "kind") })
	field("group", "group", func(x *formField) {
		x.Fields = []formField{{Name: "kit_group.a", ID: "f-kit-group-a", Label: memberWords(f.Lang, "hours"), Kind: "number"}, {Name: "kit_group.b", ID: "f-kit-group-b", Label: memberWords(f.Lang, "note"), Kind: "text"}}
	})
	field("rows", "rows", func(x *formField) {
		x.Rows = [][]formField{{{Name: "kit_rows[0].a", ID: "f-kit-rows-0-a", Label: memberWords(f.Lang, "note"), Kind: "text"}}}
	})
	out.Story = []storyLine{{At: at, Icon: "parcel", What: f.V("opening", "ended"), More: "Front St Lobby · A03", State: out.States[0], To: "#story"}, {At: at, Icon: "webhook", What: "locker_delivery.delivered", State: out.States[1]}, {Icon: "eye", What: long}}
	for i, tone := range []string{"bad", "warn", "calm"} {
		x := todo{ID: "kit-todo-" + strconv.Itoa(i), Path: "#todo", Icon: []string{"door", "plug", "shield"}[i], Tone: tone, Headline: []string{"Front St Lobby, A03", long, "Hold order 120045"}[i], Next: f.T("todo.title"), Severity: []string{"high", "medium", "low"}[i], Since: at}
		if i == 1 {
			x.Owner, x.Note, x.Until = "Sam Lee", "The technician comes at three", at
		}
		x.Steps = []verbLink{{To: "#todo", Text: label(f.Lang, "smart_lockers.devices.open")}, {To: "#todo", Text: label(f.Lang, "work_items.note")}}[:2-i%2]
		out.Todos = append(out.Todos, x)
	}
	out.Charts = kitCharts(f.frame)
	out.Board = board{frame: f.frame, Cabinets: kitCabinets(f.frame)}
	out.Chat = kitChat(f.frame)
	return out
}

// kitCharts are the kinds of charts, with a value that is missing and with none at all.
func kitCharts(f frame) (out []template.HTML) {
	for _, kind := range []chart.Kind{chart.Bars, chart.Stack, chart.Line, ""} {
		c := chart.Chart{ID: "kit-chart-" + string(kind), Kind: kind, Title: f.T("report.deliveries"), Sentence: f.T("report.deliveries.said", "83", "70"), Heading: f.T("report.hour"), Table: f.T("report.table"), Format: f.number}
		if kind == "" {
			c.Sentence = f.T("report.hours.none")
			out = append(out, c.HTML())
			continue
		}
		for _, s := range [][2]string{{"report.deposits"}, {"report.collections"}, {"report.failed", "bad"}} {
			c.Series = append(c.Series, chart.Series{Name: f.T(s[0]), Tone: s[1]})
		}
		for i := range 9 {
			third := float64(i % 3)
			if i == 4 && kind == chart.Line {
				third = math.NaN()
			}
			addCategory(&c, chart.Category{Text: strconv.Itoa(8+i) + ":00", Short: strconv.Itoa(8 + i)}, float64(3+i*i%7), float64(2+i*3%5), third)
		}
		out = append(out, c.HTML())
	}
	return out
}

// kitCabinets are a cabinet with a door in each state, and one without a connection.
func kitCabinets(f frame) []cabinet {
	doors := func(n int) [][]door {
		out := [][]door{{}, {}}
		for i, x := range [][2]string{{"closed", cloud.GridFree}, {"closed", cloud.GridReserved}, {"closed", cloud.GridOccupied}, {"open", cloud.GridOccupied}, {"jammed", cloud.GridBlocked}, {"unknown", cloud.GridOccupied}, {"never", cloud.GridFree}, {"closed", cloud.GridBlocked}, {"closed", cloud.GridCleaning}}[:n] {
			d := door{GridCode: "A0" + strconv.Itoa(i+1), Name: "A-" + strconv.Itoa(i+1), Size: []string{"S", "M", "L"}[i%3], Number: uint(i + 1), Door: x[0], State: x[1], Sign: sign(x[0], x[1])}
			out[i%2] = append(out[i%2], d)
		}
		return slices.DeleteFunc(out, func(c []door) bool { return len(c) == 0 })
	}
	at := f.timeAt(kitMoment, kitMoment.Add(12*time.Minute))
	return []cabinet{{ID: 1, Name: "Front St Lobby", Code: "FRONT-01", Address: "100 Front St W", Online: true, Since: at, Columns: doors(9), Counts: []count{{"grid", cloud.GridFree, 2}, {"grid", cloud.GridOccupied, 3}}},
		{ID: 2, Name: "Old Yard", Code: "YARD-02", Since: at, Columns: doors(4)}}
}

// kitChat are messages of both sides: sent, read, private, changed and deleted.
func kitChat(f frame) *chatPanel {
	row := func(id int64, own bool, text, status string) chatRow {
		return chatRow{ID: cloud.ChatMessageID(id), Own: own, Who: "Ada Moreau", Role: f.V("chatrole", "recipient"), At: f.timeAt(kitMoment, kitMoment.Add(2*time.Hour)), Text: text, Status: status, State: "s"}
	}
	rows := []chatRow{row(1, false, "Which door is it?", "sent"), row(2, true, "A03, to the left.", "read"), row(3, true, "I will look after it.", "delivered"), row(4, false, "", "sent"), row(5, true, "Thank you\nand good day.", "sent")}
	rows[2].Private, rows[3].Deleted, rows[4].Edited = true, true, true
	return &chatPanel{frame: f, Rows: rows}
}
