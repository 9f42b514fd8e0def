package page

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/locale"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/protocol/wire"
)

// layoutPage edits the layout of a cabinet: its compartments as fields, and its doors
// drawn as the fields say, with the labels that they will have. A script draws them
// anew while the user types; without it a button does.
type layoutPage struct {
	frame
	CSRF    string
	Cabinet cabinetName
	Version string // config_version that the layout was drawn from
	Shelves string // codes from left to right, with commas
	Rows    []gridRow
	Drawn   [][]drawnDoor // columns
	Sizes   []string
	Wired   bool // it runs the agent, whose locks are on boards
	Errors  []fieldError
	Saved   bool
}

// gridRow is one compartment as it is typed.
type gridRow struct {
	N                                      int // from 1
	Door, Shelf, Column, Row, Size, Pickup string
	Width, Height, Depth                   string // inside, in cm; all empty: not known
	Board, Channel, Inverted               string // empty: as it is
	Used                                   bool   // it keeps its place and label
	Label                                  string
}

// LayoutPath is where the cabinet's layout is changed.
func (c cabinetName) LayoutPath() string {
	return strings.Replace(layoutPath, "{id:[0-9]+}", strconv.FormatInt(int64(c.ID), 10), 1)
}

// drawnDoor is a compartment where the fields put it; Label is "" for staff doors.
type drawnDoor struct {
	N, Door     int
	Label, Size string
}

const (
	layoutPath = "/console/cabinets/{id:[0-9]+}/layout"
	setsLayout = "smart_lockers.devices.set_layout"
	maxGrids   = 64
)

var layoutSizes = wire.Sizes()

// layoutForm shows the layout as it is.
func (p setupPages) layoutForm(ctx *fasthttp.RequestCtx) {
	c, cancel := context.WithTimeout(context.Background(), readTime)
	defer cancel()
	if !p.limited(ctx) {
		return
	}
	v, d, ok := p.doorsOf(c, ctx, "layout.title")
	if !ok {
		return
	}
	page := layoutOf(d)
	page.Saved = string(ctx.QueryArgs().Peek("saved")) == "yes"
	p.showLayout(ctx, v, fasthttp.StatusOK, d, page)
}

func layoutOf(d locker.DeviceBody) (out layoutPage) {
	out.Version, out.Shelves = strconv.FormatUint(d.ConfigVersion, 10), strings.Join(d.Shelves, ",")
	grids := slices.DeleteFunc(slices.Clone(d.Grids), func(g locker.GridBody) bool { return g.Column == 0 })
	slices.SortFunc(grids, func(a, b locker.GridBody) int {
		if a.ShelfCode != b.ShelfCode {
			return slices.Index(d.Shelves, a.ShelfCode) - slices.Index(d.Shelves, b.ShelfCode)
		}
		return (a.Column-b.Column)*1000 + a.Row - b.Row
	})
	wiring := map[uint]locker.WiringBody{}
	for _, w := range d.Wiring {
		wiring[w.Door] = w
	}
	for _, g := range grids {
		row := gridRow{Door: fmt.Sprint(g.Door), Shelf: g.ShelfCode, Column: fmt.Sprint(g.Column), Row: fmt.Sprint(g.Row), Size: g.Size, Pickup: yesOrNo(g.PickupEnabled)}
		if in := g.Inner; in != nil {
			row.Width, row.Height, row.Depth = fmt.Sprint(in.Width), fmt.Sprint(in.Height), fmt.Sprint(in.Depth)
		}
		if w, known := wiring[g.Door]; known {
			row.Board, row.Channel, row.Inverted = w.Board, fmt.Sprint(w.Channel), yesOrNo(w.Inverted)
		}
		out.Rows = append(out.Rows, row)
	}
	return out
}

func yesOrNo(yes bool) string {
	if yes {
		return "yes"
	}
	return "no"
}

func (p setupPages) showLayout(ctx *fasthttp.RequestCtx, v visitor, status int, d locker.DeviceBody, page layoutPage) {
	used := map[string]bool{}
	for _, g := range d.Grids {
		used[fmt.Sprint(g.Door)] = g.DeliveryID != nil || g.DoorStatus == "open" || g.Occupied != nil && *g.Occupied
	}
	labels := map[int]string{}
	placed := locker.PlaceGrids(page.shelves())
	last := ""
	for _, g := range placed {
		if at := fmt.Sprint(g.Position, "/", g.Column); at != last {
			page.Drawn, last = append(page.Drawn, nil), at
		}
		n := slices.IndexFunc(page.Rows, func(r gridRow) bool { return r.Door == fmt.Sprint(g.Door) }) + 1
		labels[n] = g.Label()
		page.Drawn[len(page.Drawn)-1] = append(page.Drawn[len(page.Drawn)-1], drawnDoor{n, g.Door, g.Label(), g.Size})
	}
	for i := range page.Rows {
		page.Rows[i].N, page.Rows[i].Used, page.Rows[i].Label = i+1, used[page.Rows[i].Door], labels[i+1]
	}
	v.Kit = []string{"layout"}
	page.frame, page.Cabinet, page.Sizes, page.Wired = v.frame, nameCabinet(d.DeviceID, d.DeviceCode, d.DeviceName), layoutSizes, d.Protocol == cloud.ProtocolMQTT
	page.CSRF = p.formToken(ctx, &forStaff)
	p.show(ctx, status, "cabinetlayout.html", page)
}

// shelves are the compartments as the operation takes them, shelves in the order of
// the page and new ones behind; a number that cannot be read is 0.
func (l layoutPage) shelves() (out []locker.LayoutShelf) {
	number := func(s string) int {
		n, _ := strconv.Atoi(strings.TrimSpace(s))
		return max(n, 0)
	}
	for _, code := range strings.Split(l.Shelves, ",") {
		out = append(out, locker.LayoutShelf{Code: code})
	}
	for _, r := range l.Rows {
		at := slices.IndexFunc(out, func(s locker.LayoutShelf) bool { return s.Code == r.Shelf })
		if at < 0 {
			at, out = len(out), append(out, locker.LayoutShelf{Code: r.Shelf})
		}
		g := locker.LayoutGrid{Door: number(r.Door), Column: number(r.Column), Row: number(r.Row), Size: r.Size, PickupEnabled: new(r.Pickup != "no")}
		if r.Width+r.Height+r.Depth != "" {
			g.Inner = &cloud.Inner{Width: number(r.Width), Height: number(r.Height), Depth: number(r.Depth)}
		}
		if r.Board != "" {
			g.Board = &r.Board
		}
		if r.Channel != "" {
			g.Channel = new(number(r.Channel))
		}
		if r.Inverted != "" {
			g.Inverted = new(r.Inverted == "yes")
		}
		out[at].Grids = append(out[at].Grids, g)
	}
	return slices.DeleteFunc(out, func(s locker.LayoutShelf) bool { return len(s.Grids) == 0 })
}

// typedLayout is what the form holds.
func typedLayout(ctx *fasthttp.RequestCtx) (out layoutPage) {
	all := func(name string) (texts []string) {
		for _, b := range ctx.PostArgs().PeekMulti(name) {
			texts = append(texts, strings.TrimSpace(string(b[:min(len(b), 16)])))
		}
		return texts
	}
	field := func(name string) string { return string(ctx.PostArgs().Peek(name)) }
	out.Version, out.Shelves = field("version"), field("shelves")
	doors, shelves, columns, rows, sizes, pickups := all("door"), all("shelf"), all("column"), all("row"), all("size"), all("pickup")
	n := min(len(doors), len(shelves), len(columns), len(rows), len(sizes), len(pickups), maxGrids)
	boards, channels, inverted := all("board"), all("channel"), all("inverted")
	widths, heights, depths := all("width"), all("height"), all("depth")
	measured := min(len(widths), len(heights), len(depths))
	wired := min(len(boards), len(channels), len(inverted))
	for i := range n {
		row := gridRow{Door: doors[i], Shelf: strings.ToUpper(shelves[i]), Column: columns[i], Row: rows[i], Size: sizes[i], Pickup: pickups[i]}
		if i < measured {
			row.Width, row.Height, row.Depth = widths[i], heights[i], depths[i]
		}
		if i < wired {
			row.Board, row.Channel, row.Inverted = boards[i], channels[i], inverted[i]
		}
		out.Rows = append(out.Rows, row)
	}
	return out
}

// changeLayout draws the typed layout anew, with a compartment more or less, or saves
// it.
func (p setupPages) changeLayout(ctx *fasthttp.RequestCtx) {
	c, cancel := context.WithTimeout(context.Background(), readTime)
	defer cancel()
	if !p.limited(ctx) {
		return
	}
	v, d, ok := p.doorsOf(c, ctx, "layout.title")
	if !ok {
		return
	}
	page := typedLayout(ctx)
	if !ownForm(ctx, &forStaff) {
		page.Errors = []fieldError{{"form", v.T("console.expired")}}
		p.showLayout(ctx, v, fasthttp.StatusForbidden, d, page)
		return
	}
	if at, err := strconv.Atoi(string(ctx.PostArgs().Peek("remove"))); err == nil && at >= 1 && at <= len(page.Rows) {
		page.Rows = slices.Delete(page.Rows, at-1, at)
		p.showLayout(ctx, v, fasthttp.StatusOK, d, page)
		return
	}
	switch string(ctx.PostArgs().Peek("do")) {
	case "add":
		page.add()
		fallthrough
	default:
		p.showLayout(ctx, v, fasthttp.StatusOK, d, page)
	case "save":
		p.saveLayout(c, ctx, v, d, page)
	}
}

// add adds a compartment below the last one.
func (l *layoutPage) add() {
	next := gridRow{Door: "1", Shelf: "A", Column: "1", Row: "1", Size: "M", Pickup: "yes"}
	door := 0
	for _, r := range l.Rows {
		n, _ := strconv.Atoi(r.Door)
		door = max(door, n)
	}
	if n := len(l.Rows); n > 0 {
		last := l.Rows[n-1]
		row, _ := strconv.Atoi(last.Row)
		next = gridRow{Door: fmt.Sprint(door + 1), Shelf: last.Shelf, Column: last.Column, Row: fmt.Sprint(row + 1), Size: last.Size, Pickup: "yes", Board: last.Board, Width: last.Width, Height: last.Height, Depth: last.Depth}
		if channel, err := strconv.Atoi(last.Channel); err == nil {
			next.Channel = fmt.Sprint(channel + 1)
		}
	}
	if len(l.Rows) < maxGrids {
		l.Rows = append(l.Rows, next)
	}
}

func (p setupPages) saveLayout(c context.Context, ctx *fasthttp.RequestCtx, v visitor, d locker.DeviceBody, page layoutPage) {
	in := map[string]any{"id": fmt.Sprint(d.DeviceID), "shelves": page.shelves()}
	if n, err := strconv.ParseUint(page.Version, 10, 63); err == nil {
		in["config_version"] = n
	}
	_, err := run[locker.DeviceOutput](c, ctx, p.kit, v, setsLayout, in)
	var shown *cloud.Error
	switch {
	case err == nil:
		seeOther(ctx, cabinetName{ID: d.DeviceID}.LayoutPath()+"?saved=yes")
	case errors.As(err, &shown) && (shown.Kind == cloud.Invalid || shown.Kind == cloud.Conflict):
		page.Errors = layoutErrors(v.Lang, shown)
		p.showLayout(ctx, v, statusOf(shown), d, page)
	default:
		p.refused(ctx, v, err)
	}
}

// layoutErrors are what is wrong with a layout, each text once, with the doors in use.
func layoutErrors(lang string, e *cloud.Error) (out []fieldError) {
	add := func(text string) {
		if !slices.Contains(out, fieldError{"form", text}) {
			out = append(out, fieldError{"form", text})
		}
	}
	if len(e.Fields) == 0 {
		add(locale.Error(lang, e.Code))
	}
	for _, messages := range e.Fields {
		for _, m := range messages {
			add(locale.Field(lang, m))
		}
	}
	if used, ok := e.Details["grids"].([]locker.InUse); ok {
		for _, g := range used {
			add(fmt.Sprintf("%s (%d)", g.DoorName, g.Door))
		}
	}
	slices.SortFunc(out, func(a, b fieldError) int { return strings.Compare(a.Text, b.Text) })
	return out
}
