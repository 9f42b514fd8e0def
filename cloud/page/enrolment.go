package page

import (
	"context"
	"fmt"
	"html/template"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/cloud/peer"
	"github.com/postern-io/postern/cloud/setup"
	"github.com/postern-io/postern/internal/shell"
	"github.com/postern-io/postern/protocol/wiring"
)

// enrolmentPage leads from a new cabinet to one that is connected: the commands
// to copy, and whether it is there. The one-time token is on it once, in the answer
// to the form that made it.
type enrolmentPage struct {
	frame
	CSRF     string
	Cabinet  cabinetName
	Commands commands
	Line     string // that edge enrol is given; "": the token was shown before
	Code     template.HTML
	Until    *moment
	State    connection
	Sends    bool // the visitor may send a first parcel
}

// cabinetName is a cabinet as its pages name it.
type cabinetName struct {
	ID         cloud.DeviceID
	Code, Name string
}

// nameCabinet is how pages name a cabinet by what others have called it.
func nameCabinet(id cloud.DeviceID, code, name string) cabinetName {
	return cabinetName{id, outside(code, maxValue), outside(name, maxValue)}
}

// Path is where the cabinet's page is.
func (c cabinetName) Path() string { return fmt.Sprintf("%s/%d", cabinetPath, c.ID) }

// command is one line to copy.
type command struct{ Name, Text, Label, Copy, Done string }

// Shown is a command as the page draws it.
func (x enrolmentPage) Shown(name, text string) command {
	return command{name, text, x.T("command.label"), x.T("command.copy"), x.T("command.copied")}
}

// connection is how far a cabinet has come.
type connection struct {
	Enrolled    bool
	Online      bool
	Post        bool // a warehouse post, which has no doors
	Doors, Read int  // compartments, and those whose door was read
}

// Ready reports whether every door has been read; a warehouse post is ready once it is
// connected.
func (c connection) Ready() bool { return c.Online && (c.Post || c.Doors > 0 && c.Read == c.Doors) }

func connectionOf(d locker.DeviceBody) connection {
	c := connection{Enrolled: d.EnrolledAt != nil, Online: d.Status == "online", Post: d.DeviceType == cloud.TypeScanPost, Doors: len(d.Grids)}
	for _, g := range d.Grids {
		if g.DoorStatus != unread {
			c.Read++
		}
	}
	return c
}

const findsDevice = "smart_lockers.devices.find"

// cabinetOf finds the cabinet of a page's path, and the places of the programs
// around it. When it cannot, the visitor has been answered.
func (p setupPages) cabinetOf(c context.Context, ctx *fasthttp.RequestCtx, title string) (v visitor, d locker.DeviceBody, ok bool) {
	if v, ok = p.reader(c, ctx, findsDevice); !ok {
		return v, d, false
	}
	v.Title = v.T(title)
	id, _ := ctx.UserValue("id").(string)
	out, err := run[locker.DeviceOutput](c, ctx, p.kit, v, findsDevice, map[string]any{"id": id})
	if err != nil {
		p.refused(ctx, v, err)
	}
	return v, out.Device, err == nil
}

// doorsOf is cabinetOf for pages about doors: a warehouse post has none, and is refused.
func (p setupPages) doorsOf(c context.Context, ctx *fasthttp.RequestCtx, title string) (v visitor, d locker.DeviceBody, ok bool) {
	if v, d, ok = p.cabinetOf(c, ctx, title); ok && d.DeviceType == cloud.TypeScanPost {
		p.refused(ctx, v, cloud.E(cloud.Conflict, "DEVICE_HAS_NO_DOORS"))
		return v, d, false
	}
	return v, d, ok
}

// connection shows whether a cabinet is connected.
func (p setupPages) connection(ctx *fasthttp.RequestCtx) {
	c, cancel := context.WithTimeout(context.Background(), readTime)
	defer cancel()
	v, d, ok := p.cabinetOf(c, ctx, "enrolment.title")
	if !ok {
		return
	}
	p.show(ctx, fasthttp.StatusOK, "enrolment.html", p.enrolmentPage(c, ctx, v, nameCabinet(d.DeviceID, d.DeviceCode, d.DeviceName), d, ""))
}

// showEnrolment shows a cabinet that was made, or got another token, with that token.
func (p setupPages) showEnrolment(c context.Context, ctx *fasthttp.RequestCtx, v visitor, made setup.EnrolmentOutput) {
	d := made.Device
	v.Title = d.Name
	out := p.enrolmentPage(c, ctx, v, nameCabinet(d.ID, d.Code, d.Name), locker.DeviceBody{DeviceRow: locker.DeviceRow{Protocol: d.Protocol, DeviceType: d.Type}, Grids: make([]locker.GridBody, d.Compartments)}, made.Enrolment.Token)
	out.State = connection{Post: d.Type == cloud.TypeScanPost, Doors: d.Compartments}
	out.Line, out.Until = made.Enrolment.Line, out.Time(stamp(made.Enrolment.ExpiresAt))
	var err error
	if out.Code, err = drawQR(out.Line, "scan"); err != nil {
		p.trouble(ctx, err)
		return
	}
	p.show(ctx, fasthttp.StatusOK, "enrolment.html", out)
}

func (p setupPages) enrolmentPage(c context.Context, ctx *fasthttp.RequestCtx, v visitor, name cabinetName, d locker.DeviceBody, token string) enrolmentPage {
	if d.Protocol == cloud.ProtocolHTTP {
		return enrolmentPage{frame: v.frame, CSRF: p.formToken(ctx, &forStaff), Cabinet: name, State: connectionOf(d), Sends: p.may(c, v, addsProvider), Commands: p.commandsHTTP(ctx, name, token)}
	}
	if d.DeviceType == cloud.TypeScanPost {
		return enrolmentPage{frame: v.frame, CSRF: p.formToken(ctx, &forStaff), Cabinet: name, State: connectionOf(d), Commands: p.commandsPost(ctx, name, token)}
	}
	at := p.places(ctx, name.ID, d.Status == "online")
	return enrolmentPage{frame: v.frame, CSRF: p.formToken(ctx, &forStaff), Cabinet: name, State: connectionOf(d), Sends: p.may(c, v, addsProvider),
		Commands: p.commands(ctx, name, len(d.Grids), at, token)}
}

// commands are what a person types to bring a cabinet up, one line each.
type commands struct {
	Simulator string // "" when no layout has so many doors
	Enrol     string // "" without a token
	Edge      string // "" for a device without the edge agent
}

// commandsHTTP is what a device that speaks HTTP sends to enrol.
func (p setupPages) commandsHTTP(ctx *fasthttp.RequestCtx, name cabinetName, token string) (out commands) {
	if token != "" {
		out.Enrol = shell.Command("curl", "-H", "Content-Type: application/json", "-d", fmt.Sprintf(`{"device_code":%q,"token":%q}`, name.Code, token), p.base(ctx)+"/api/v1/devices/enrol")
	}
	return out
}

// postSettings is the settings file of a warehouse post from which people start.
const postSettings = "configs/edge-post.yaml"

// commandsPost bring a warehouse post up: its scanners stand in a settings file.
func (p setupPages) commandsPost(ctx *fasthttp.RequestCtx, name cabinetName, token string) (out commands) {
	settings := []string{"--config", postSettings}
	out.Edge = shell.Command(p.program(ctx, "edge"), settings...)
	if token != "" {
		out.Enrol = p.enrolBy(ctx, name, token, settings)
	}
	return out
}

// enrolBy is the command by which a device enrols. The token goes by standard input, as
// others of the machine can see the arguments of a program.
func (p setupPages) enrolBy(ctx *fasthttp.RequestCtx, name cabinetName, token string, settings []string) string {
	return shell.Command("echo", p.base(ctx)+" "+name.Code+" "+token) + " | " + shell.Command(p.program(ctx, "edge")+" enrol", settings...)
}

// program is how a program is called on the machine of the visitor.
func (p setupPages) program(ctx *fasthttp.RequestCtx, name string) string {
	if peer.Local(ctx) {
		return p.cfg.Program(name)
	}
	return name
}

func (p setupPages) commands(ctx *fasthttp.RequestCtx, name cabinetName, doors int, at places, token string) (out commands) {
	list := wiring.Templates()
	if i := slices.IndexFunc(list, func(t wiring.Template) bool { return t.Doors() == doors }); i >= 0 {
		var args []string
		if i > 0 {
			args = append(args, "--layout", list[i].Name)
		}
		if at.line != wiring.LineAddress {
			args = append(args, "--tcp", at.line)
		}
		if at.simulator != wiring.SimulatorAddress {
			args = append(args, "--page", at.simulator)
		}
		out.Simulator = shell.Command(p.program(ctx, "firmware-sim"), args...)
	}
	settings := []string{"--data", "data/edge-" + name.Code}
	if at.screen != wiring.ScreenAddress {
		settings = append(settings, "--kiosk-listen", at.screen)
	}
	settings = append(settings, "--line", "tcp://"+at.line)
	out.Edge = shell.Command(p.program(ctx, "edge"), settings...)
	if token != "" {
		out.Enrol = p.enrolBy(ctx, name, token, settings)
	}
	return out
}

// places are where the programs around a cabinet listen on the machine of the
// person who tries it, each as HOST:PORT of the loopback.
type places struct{ line, simulator, screen string }

const (
	placesCookie = "postern_try_"
	placesLife   = 30 * 24 * time.Hour
	triedPorts   = 50 // from the usual one on
)

// places are those that a cabinet's commands named before, else the usual ones, and
// on this machine, for one that is not connected, the next ones that are free: the
// programs of a connected one listen on theirs. A cookie keeps them: they are this
// person's, and no secret.
func (p setupPages) places(ctx *fasthttp.RequestCtx, id cloud.DeviceID, connected bool) places {
	name := placesCookie + strconv.FormatInt(int64(id), 10)
	usual := []string{wiring.LineAddress, wiring.SimulatorAddress, wiring.ScreenAddress}
	ports := strings.Split(string(ctx.Request.Header.Cookie(name)), ".")
	if len(ports) != len(usual) || slices.ContainsFunc(ports, func(s string) bool { n, err := strconv.ParseUint(s, 10, 16); return err != nil || n == 0 }) {
		ports = nil
		for _, address := range usual {
			_, port, _ := net.SplitHostPort(address) // ours
			if peer.Local(ctx) && !connected {
				port = freePort(port)
			}
			ports = append(ports, port)
		}
		if !connected {
			p.setCookie(ctx, name, strings.Join(ports, "."), cabinetPath, placesLife, fasthttp.CookieSameSiteStrictMode)
		}
	}
	at := func(i int) string {
		host, _, _ := net.SplitHostPort(usual[i]) // ours
		return net.JoinHostPort(host, ports[i])
	}
	return places{at(0), at(1), at(2)}
}

// freePort is the first port of this machine's loopback from one on that nothing
// listens on; when all are taken, the first.
func freePort(from string) string {
	first, _ := strconv.Atoi(from) // ours
	for port := first; port < first+triedPorts; port++ {
		ln, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil && ln.Close() == nil {
			return strconv.Itoa(port)
		}
	}
	return from
}
