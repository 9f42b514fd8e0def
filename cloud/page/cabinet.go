package page

import (
	"context"
	"fmt"
	"net/url"
	"slices"

	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/locale"
	"github.com/postern-io/postern/cloud/locker"
)

// cabinetView is the page of one cabinet.
const cabinetView = "/console/cabinets/{id:[0-9]+}"

// standing is a cabinet as it stands: its doors with a drawer each, its health, and
// what is done to it as a whole.
type standing struct {
	workFrame
	Cabinet locker.DeviceBody
	Here    string
	Tab     string
	Tabs    []pageLink
	Online  bool
	Seen    *moment
	Columns [][]drawerDoor
	Drawers []drawerDoor
	Faults  []cabinetFault
	Report  *cabinetReport // nil: it cannot be read
	History []movement
	Groups  []serviceGroup
	// Diagnoses are the newest, and Answer is the one that is shown; nil: none.
	Diagnoses []diagnosisRow
	Answer    *diagnosisView
}

// pageLink leads to another view of a page.
type pageLink struct {
	To, Text string
	Current  bool
}

// drawerDoor is a door with what its drawer says.
type drawerDoor struct {
	door
	Grid             cloud.GridID
	Lock             string // what the lock says: open, closed, jammed, unknown
	Parcel, ParcelTo string
	Recipient        string
	Since, Due       *moment
	Last             *movement
	Verbs            []verbLink
	History          []movement
}

// movement is an opening in words.
type movement struct {
	At                             *moment
	Kind, By, Reason, State, Doors string
}

type cabinetFault struct {
	Text, Detail string
	At           *moment
}

// cabinetReport is what a cabinet reported of itself, in words.
type cabinetReport struct {
	At      *moment // nil: nothing was reported
	Percent *uint64 // of the store
	Facts   []reportFact
	Locks   []lockRow
	Missing []missingRange
}

// lockRow is a lock as the page of its cabinet judges it.
type lockRow struct{ Door, Condition, Text, Cycles, Failed, Trouble, Opens string }

type reportFact struct{ Name, Text string }

type missingRange struct{ Lane, Range, Reason, Count string }

type serviceGroup struct {
	Title string
	Links []verbLink
}

// doorHistory are the openings that a cabinet's page reads.
const doorHistory = 200

// showStanding shows a cabinet with the tab that the address names.
func (p drawnPages) showStanding(ctx *fasthttp.RequestCtx) {
	c, cancel := context.WithTimeout(context.Background(), readTime)
	defer cancel()
	v, ok := p.reader(c, ctx, findsDevice)
	if !ok {
		return
	}
	out, err := p.standing(c, ctx, v)
	if err != nil {
		p.refused(ctx, v, err)
		return
	}
	topic := fmt.Sprintf("cabinet:%d?tab=%s", out.Cabinet.DeviceID, out.Tab)
	if of := ctx.QueryArgs().GetUintOrZero("of"); of > 0 {
		topic += fmt.Sprintf("&of=%d", of)
	}
	followTopics(p.kit, ctx, &out.frame, topic)
	p.show(ctx, fasthttp.StatusOK, "cabinetpage.html", out)
}

// standing reads a cabinet for the tab of a request.
func (p drawnPages) standing(c context.Context, ctx *fasthttp.RequestCtx, v visitor) (standing, error) {
	id, _ := ctx.UserValue("id").(string)
	found, err := run[locker.DeviceOutput](c, ctx, p.kit, v, findsDevice, map[string]any{"id": id})
	if err != nil {
		return standing{}, err
	}
	d := found.Device
	here := fmt.Sprintf("%s/cabinets/%d", ConsolePath, d.DeviceID)
	d.DeviceName, d.DeviceCode, d.Address = outside(d.DeviceName, maxValue), outside(d.DeviceCode, maxValue), outside(d.Address, maxValue)
	out := standing{workFrame: p.work(ctx, v, d.DeviceName), Cabinet: d, Here: here, Tab: string(ctx.QueryArgs().Peek("tab")), Online: d.Status == cloud.StatusOnline, Seen: v.stamped(d.LastSeenAt)}
	isPost := d.DeviceType == cloud.TypeScanPost
	first, health := "doors", here+"?tab=health"
	if isPost { // it has no doors to show
		first, health = "health", here
	}
	if out.Tab != "health" && out.Tab != "service" && out.Tab != "diagnosis" {
		out.Tab = first
	}
	if err := p.service(c, v, &out); err != nil {
		return standing{}, err
	}
	if out.Tab == "service" && len(out.Groups) == 0 {
		out.Tab = first
	}
	if out.Tab == "diagnosis" && !p.diagnosed(c, v, out.Cabinet) {
		out.Tab = first
	}
	if !isPost {
		out.Tabs = []pageLink{{here, v.T("cab.doors"), out.Tab == "doors"}}
	}
	out.Tabs = append(out.Tabs, pageLink{health, v.T("cab.health"), out.Tab == "health"})
	if p.diagnosed(c, v, out.Cabinet) {
		out.Tabs = append(out.Tabs, pageLink{here + "?tab=diagnosis", v.T("cab.diagnosis"), out.Tab == "diagnosis"})
	}
	if len(out.Groups) > 0 {
		out.Tabs = append(out.Tabs, pageLink{here + "?tab=service", v.T("cab.service"), out.Tab == "service"})
	}
	if !isPost && p.may(c, v, setsLayout) {
		out.Tabs = append(out.Tabs, pageLink{here + "/layout", v.T("layout.title"), false})
	}
	switch out.Tab {
	case "doors":
		err = p.doors(c, ctx, v, &out)
	case "health":
		err = p.health(c, ctx, v, &out)
	case "diagnosis":
		err = p.diagnosis(c, ctx, v, &out)
	}
	return out, err
}

// history are the newest openings of a cabinet, newest first.
func (p drawnPages) history(c context.Context, ctx *fasthttp.RequestCtx, v visitor, id cloud.DeviceID) ([]locker.HistoryLine, error) {
	out, err := run[locker.HistoryOutput](c, ctx, p.kit, v, "smart_lockers.devices.door_reports", map[string]any{"id": int64(id), "per_page": doorHistory})
	return out.Reports, err
}

func (f frame) movement(l locker.HistoryLine) movement {
	m := movement{At: f.stamped(cmpOr(l.OpenedAt, l.RequestedAt)), Kind: f.V("value", l.Kind), By: f.V("value", l.By), State: f.V("opening", l.State)}
	if l.ByName != nil && *l.ByName != "" {
		m.By = outside(*l.ByName, maxValue)
	}
	if l.EndReason != nil {
		m.State = f.V("end", *l.EndReason)
	}
	if l.Reason != nil {
		m.Reason = outside(*l.Reason, maxValue)
	}
	for i, d := range l.Doors {
		if i > 0 {
			m.Doors += ", "
		}
		m.Doors += d.DoorName
	}
	return m
}

func cmpOr(a, b *string) *string {
	if a != nil {
		return a
	}
	return b
}

// doors draws the doors and fills their drawers: what lies behind each, who opened it
// last, and what can be done with the door chosen already.
func (p drawnPages) doors(c context.Context, ctx *fasthttp.RequestCtx, v visitor, out *standing) error {
	lines, err := p.history(c, ctx, v, out.Cabinet.DeviceID)
	if err != nil {
		return fmt.Errorf("list door history: %w", err)
	}
	parcels := p.may(c, v, "smart_lockers.deliveries.find")
	last := ""
	grids := slices.Clone(out.Cabinet.Grids)
	slices.SortStableFunc(grids, func(a, b locker.GridBody) int {
		return (slices.Index(out.Cabinet.Shelves, a.ShelfCode)-slices.Index(out.Cabinet.Shelves, b.ShelfCode))*1000000 + (a.Column-b.Column)*1000 + a.Row - b.Row
	})
	for _, g := range grids {
		status := g.DoorStatus
		blocked := ""
		if g.BlockReason != nil {
			blocked = *g.BlockReason
		}
		state, reason := v.use(g.State, blocked, g.Mismatch != nil && g.Mismatch.OutOfUse)
		guess := state == cloud.GridFree && status == unread
		if !out.Online && status == "closed" {
			status = unread
		}
		x := drawerDoor{Grid: g.GridID, Lock: status, door: door{Guess: guess, GridCode: g.GridCode, Name: g.DoorName, Size: g.Size, Number: g.Door, Door: status, State: state, Sign: sign(status, state), Reason: reason}}
		if g.DeliveryID != nil && parcels {
			found, err := run[locker.StaffDeliveryOutput](c, ctx, p.kit, v, "smart_lockers.deliveries.find", map[string]any{"id": fmt.Sprint(int64(*g.DeliveryID))})
			if err != nil {
				return fmt.Errorf("find delivery %d: %w", *g.DeliveryID, err)
			}
			b := found.Delivery
			x.Parcel, x.ParcelTo, x.Recipient = b.DeliveryNumber, fmt.Sprintf("%s/parcels/%d", ConsolePath, b.DeliveryID), outside(b.RecipientName, maxValue)
			x.Since, x.Due = v.stamped(b.DepositedAt), v.stamped(b.DueAt)
		}
		for _, l := range lines {
			at := slices.IndexFunc(l.Doors, func(d locker.HistoryDoor) bool { return d.GridID == g.GridID })
			if at < 0 || len(x.History) == 5 {
				continue
			}
			x.History = append(x.History, v.movement(l))
			if opened := l.Doors[at].OpenedAt; opened != nil && x.Last == nil {
				last := v.movement(l)
				last.At = v.stamped(opened)
				x.Last = &last
			}
		}
		verb := func(name, operation, risk string, q url.Values, fits bool) {
			off := ""
			if (name == "open" || name == "test_channel") && out.Cabinet.Status == cloud.StatusOffline {
				off = v.T("cab.unreached")
			}
			if fits && p.may(c, v, operation) {
				x.Verbs = append(x.Verbs, verbLink{Off: off, To: out.Here + "/" + name + "?" + q.Encode(), Text: label(v.Lang, operation), Risk: risk, Key: p.cfg.Catalog.Noun("cabinet").Keys[operation]})
			}
		}
		grid := url.Values{"grid_id": {fmt.Sprint(int64(g.GridID))}}
		verb("open", "smart_lockers.devices.open", "", url.Values{"grid_ids": {fmt.Sprint(int64(g.GridID))}}, true)
		verb("opening_qr", "smart_lockers.devices.opening_qr", "", url.Values{"grid_ids": {fmt.Sprint(int64(g.GridID))}}, out.Cabinet.Protocol == cloud.ProtocolMQTT)
		verb("test_channel", "smart_lockers.devices.test_channel", "", grid, out.Cabinet.Protocol == cloud.ProtocolMQTT)
		verb("block", "smart_lockers.grids.block", "", grid, g.State == cloud.GridFree || g.State == cloud.GridCleaning)
		verb("unblock", "smart_lockers.grids.unblock", "", grid, g.State == cloud.GridBlocked || g.Mismatch != nil)
		verb("clear", "smart_lockers.grids.clear", "high", grid, g.DeliveryID != nil || g.State == cloud.GridOccupied || g.Mismatch != nil)
		out.Drawers = append(out.Drawers, x)
		if g.Column > 0 {
			if at := fmt.Sprint(g.ShelfCode, "/", g.Column); at != last {
				out.Columns, last = append(out.Columns, nil), at
			}
			out.Columns[len(out.Columns)-1] = append(out.Columns[len(out.Columns)-1], x)
		}
	}
	return nil
}

// blockReason is why a compartment is blocked, in words: a rule's, or a person's own.
func (f frame) blockReason(reason string) string {
	if w := f.T("block." + reason); w != "block."+reason {
		return w
	}
	return outside(reason, maxValue)
}

// health is how the cabinet is, as the cloud knows it.
func (p drawnPages) health(c context.Context, ctx *fasthttp.RequestCtx, v visitor, out *standing) error {
	for _, x := range out.Cabinet.Exceptions {
		if doors := cloud.ShutDoors(x.Detail); x.Type == cloud.DevDoorShut && len(doors) > 0 { // each with its own time
			for _, d := range doors {
				l := cabinetFault{v.V("exception", x.Type), outside(d.Name, maxValue), v.stamped(x.OpenedAt)}
				if !d.Since.IsZero() {
					l.At = v.Time(d.Since)
				}
				out.Faults = append(out.Faults, l)
			}
			continue
		}
		out.Faults = append(out.Faults, cabinetFault{v.V("exception", x.Type), outside(x.Detail, maxValue), v.stamped(x.OpenedAt)})
	}
	var err error
	if out.Report, err = p.report(c, ctx, v, out.Cabinet.DeviceID); err != nil {
		return err
	}
	lines, err := p.history(c, ctx, v, out.Cabinet.DeviceID)
	if err != nil {
		return fmt.Errorf("list door history: %w", err)
	}
	for _, l := range lines {
		out.History = append(out.History, v.movement(l))
	}
	return nil
}

// report reads the health that a cabinet reported; nil for a visitor without the right.
func (p drawnPages) report(c context.Context, ctx *fasthttp.RequestCtx, v visitor, id cloud.DeviceID) (*cabinetReport, error) {
	if !p.mayAny(c, v, "smart_lockers.devices.health") {
		return nil, nil
	}
	found, err := run[locker.HealthOutput](c, ctx, p.kit, v, "smart_lockers.devices.health", map[string]any{"id": int64(id)})
	if err != nil {
		return nil, fmt.Errorf("find health of cabinet %d: %w", id, err)
	}
	h := found.Health
	out := &cabinetReport{At: v.stamped(h.ReportedAt), Percent: h.StorePercent}
	add := func(name, text string) { out.Facts = append(out.Facts, reportFact{name, text}) }
	if h.Clock != nil {
		text := v.V("clock", *h.Clock)
		if h.ClockErrorMS != nil {
			text += ", " + v.T("cab.clock.within", fmt.Sprint(*h.ClockErrorMS))
		}
		add(v.T("cab.clock"), text)
	}
	if h.ClockOffsetMS != nil {
		add(v.T("cab.offset"), fmt.Sprintf("%+d ms", *h.ClockOffsetMS))
	}
	for _, lane := range []string{"settlement", "telemetry"} {
		if n, ok := h.StoreBytes[lane]; ok {
			add(v.T("cab.stored", v.V("lane", lane)), fmt.Sprintf("%.1f MB", float64(n)/1e6))
		}
	}
	if h.Connects != nil && h.Resends != nil {
		add(v.T("cab.connects"), v.T("cab.resent", fmt.Sprint(*h.Connects), fmt.Sprint(*h.Resends)))
	}
	for _, b := range h.Boards {
		add(v.T("cab.board", outside(b.Name, maxValue)), v.T("cab.errors", fmt.Sprint(b.Errors)))
	}
	for _, t := range h.Temperatures {
		add(v.T("cab.temperature", outside(t.Name, maxValue)), fmt.Sprintf("%.1f °C", t.Celsius))
	}
	if h.AgentVersion != nil {
		add(v.T("cab.agent"), outside(*h.AgentVersion, maxValue))
	}
	for _, l := range h.Locks {
		out.Locks = append(out.Locks, lockRow{Door: outside(l.DoorName, maxField), Condition: l.Condition, Text: v.V("lock", l.Condition), Cycles: locale.Number(v.Lang, float64(l.Cycles)), Failed: fmt.Sprint(l.Failed),
			Trouble: v.T("cab.lock.of", l.Troubled, l.Acts), Opens: v.T("cab.lock.ms", l.OpeningMS)})
	}
	for _, m := range h.Missing {
		x := missingRange{Lane: v.V("lane", m.Lane), Range: fmt.Sprintf("%d – %d", m.First, m.Last), Reason: v.V("gap", m.Reason), Count: fmt.Sprint(m.Missing)}
		if m.Last == 0 {
			x.Range, x.Count = fmt.Sprintf("%d –", m.First), "?"
		}
		out.Missing = append(out.Missing, x)
	}
	return out, nil
}

// service are the forms of what is done to the cabinet as a whole.
func (p drawnPages) service(c context.Context, v visitor, out *standing) error {
	cabinet, err := asObject(out.Cabinet.DeviceRow) // what verbs ask about, without the compartments
	if err != nil {
		return fmt.Errorf("read cabinet %d as a record: %w", out.Cabinet.DeviceID, err)
	}
	group := func(title string, list ...[3]string) {
		g := serviceGroup{Title: title}
		for _, x := range list {
			o := p.cfg.Catalog.Find(x[0])
			notYet, ok := offer(p.kit, c, v, p.cfg.Catalog.Noun("cabinet"), o, cabinet)
			if !ok {
				continue
			}
			text := x[2]
			if text == "" {
				text = label(v.Lang, x[0])
			}
			g.Links = append(g.Links, verbLink{To: out.Here + "/" + x[1], Text: text, Risk: string(o.Risk), Off: notYet})
		}
		if len(g.Links) > 0 {
			out.Groups = append(out.Groups, g)
		}
	}
	if out.Tab == "diagnosis" {
		ask := "smart_lockers.devices.diagnose"
		bundle := [3]string{ask, "diagnose?type=support_bundle", v.T("cab.diag.bundle")}
		if out.Cabinet.DeviceType == cloud.TypeScanPost { // it has no boards
			group(v.T("cab.diagnosis"), bundle)
			return nil
		}
		group(v.T("cab.diagnosis"), [3]string{ask, "diagnose?type=board_view", v.T("cab.diag.view")}, [3]string{"smart_lockers.devices.test_channel", "test_channel", ""}, bundle)
		return nil
	}
	command := "smart_lockers.devices.command"
	commands := [][3]string{{command, "command?type=reboot", v.T("cab.reboot")}, {command, "command?type=sync", v.T("cab.sync")}}
	if out.Cabinet.DeviceType != cloud.TypeScanPost { // no codes are typed at a post
		commands = append(commands, [3]string{command, "command?type=reset_tries", v.T("cab.tries")}, [3]string{"smart_lockers.devices.opening_qr", "opening_qr", ""})
	}
	group(v.T("cab.commands"), commands...)
	group(v.T("cab.hardware"), [3]string{"smart_lockers.devices.edit", "edit", ""}, [3]string{"smart_lockers.devices.renew_token", "renew_token", ""}, [3]string{"smart_lockers.devices.replace_hardware", "replace_hardware", ""},
		[3]string{"smart_lockers.devices.report_stolen", "report_stolen", ""}, [3]string{"smart_lockers.devices.retire", "retire", ""})
	return nil
}
