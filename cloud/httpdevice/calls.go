package httpdevice

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/check"
	"github.com/postern-io/postern/cloud/hosted"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/edge"
	rules "github.com/postern-io/postern/edge/locker"
	"github.com/postern-io/postern/protocol/passcode"
	"github.com/postern-io/postern/protocol/signed"
	"github.com/postern-io/postern/protocol/wire"
)

// Route is an address that devices call.
type Route struct {
	Path    string
	MaxBody int // bytes
	Answer  func(context.Context, *fasthttp.RequestCtx) (any, error)
}

const prefix = "/api/v1/devices"

// Routes are the addresses that devices call.
func (s *Service) Routes() []Route {
	json := func(path, method string, f answer) Route {
		return Route{prefix + path, maxBody, s.called(method, maxBody, f)}
	}
	return []Route{
		json("/heartbeat", fasthttp.MethodPost, s.heartbeat),
		json("/commands", fasthttp.MethodGet, s.commands),
		json("/commands/{cmd_id}/ack", fasthttp.MethodPost, s.acknowledge),
		json("/events", fasthttp.MethodPost, s.events),
		json("/doors/report", fasthttp.MethodPost, s.report),
		json("/config", fasthttp.MethodGet, s.config),
		json("/codes/verify", fasthttp.MethodPost, s.verify),
		{prefix + "/photos", maxPhotoBody, s.called(fasthttp.MethodPost, maxPhotoBody, s.photo)},
	}
}

type answer func(ctx context.Context, c *call, r *fasthttp.RequestCtx) (any, error)

// called answers calls of one method whose signatures hold.
func (s *Service) called(method string, most int, f answer) func(context.Context, *fasthttp.RequestCtx) (any, error) {
	return func(ctx context.Context, r *fasthttp.RequestCtx) (any, error) {
		if string(r.Method()) != method {
			return nil, cloud.E(cloud.Malformed, "METHOD_NOT_ALLOWED")
		}
		if len(r.PostBody()) > most {
			return nil, cloud.E(cloud.Malformed, "PAYLOAD_TOO_LARGE")
		}
		c, err := s.authenticate(ctx, r)
		if err != nil {
			return nil, err
		}
		return f(ctx, c, r)
	}
}

// play makes the step of a call. It may call act several times, of which the last one counts: act
// begins its answer anew.
func (s *Service) play(ctx context.Context, c *call, act func(*machine) error) error {
	due, err := s.step(ctx, c.device.ID, c, act)
	if errors.Is(err, cloud.ErrExists) { // its nonce was used
		return errSignature()
	}
	if err == nil {
		s.player.PlaySoon(c.device.ID, due)
	}
	return err
}

// read reads a body into in, and checks it.
func read(r *fasthttp.RequestCtx, in any) error {
	if err := catalog.Decode(r.PostBody(), in); err != nil {
		return err
	}
	return check.Input(in)
}

type heartbeatInput struct {
	Firmware string `json:"firmware" max:"60" doc:"Name and version of the device's program"`
	Nonce    string `json:"nonce" max:"64" doc:"16 to 32 random bytes in base64: the answer has a signed time for them"`
}

// heartbeatOutput answers a heartbeat.
type heartbeatOutput struct {
	Result     bool   `json:"result"`
	ServerTime string `json:"server_time"`
	Pending    int    `json:"pending_commands"`
	Config     uint64 `json:"config_version"`
	// Time is a signed time answer (device-link 4) to the nonce, in base64.
	Time string `json:"time,omitempty"`
}

// heartbeat says that the device is there.
func (s *Service) heartbeat(ctx context.Context, c *call, r *fasthttp.RequestCtx) (any, error) {
	var in heartbeatInput
	if err := read(r, &in); err != nil {
		return nil, err
	}
	nonce, err := base64.StdEncoding.DecodeString(in.Nonce)
	if in.Nonce != "" && (err != nil || len(nonce) < 16 || len(nonce) > 32) {
		f := check.Fields{}
		f.Add("nonce", "Use 16 to 32 random bytes in base64.")
		return nil, f.Err()
	}
	c.firmware = strings.TrimSpace(in.Firmware)
	out := heartbeatOutput{Result: true}
	err = s.play(ctx, c, func(m *machine) error {
		out.Pending, out.Config = len(m.kept.Orders), m.Rules.Config.Version
		return nil
	})
	if err != nil {
		return nil, err
	}
	now := time.Now().UTC()
	out.ServerTime = now.Format(time.RFC3339Nano)
	if len(nonce) > 0 {
		out.Time, err = s.sign(signed.ForTime, wire.Time{DeviceCode: c.device.Code, Nonce: nonce, ServerTime: now.UnixNano()})
	}
	return out, err
}

// command is an order as the device fetches it. What counts is the envelope; the rest is for
// people who look.
type command struct {
	ID        string `json:"cmd_id"`
	Kind      string `json:"kind"`
	ExpiresAt string `json:"expires_at"`
	Envelope  string `json:"envelope"`
}

type commandsOutput struct {
	Result   bool      `json:"result"`
	Commands []command `json:"commands"`
	// Awaits says that a door report is to be sent first: the newest, or another one of how the
	// doors stand now.
	Awaits bool `json:"awaits_report"`
}

// commands gives a device its orders. It waits for some.
func (s *Service) commands(ctx context.Context, c *call, r *fasthttp.RequestCtx) (any, error) {
	f := check.Fields{}
	wait, err := strconv.Atoi(string(r.QueryArgs().Peek("wait")))
	if r.QueryArgs().Has("wait") && (err != nil || wait < 0 || wait > int(maxWait/time.Second)) {
		f.Add("wait", "Use a number of seconds from 0 to 25.")
	}
	reported, err := strconv.ParseUint(string(r.QueryArgs().Peek("seq")), 10, 63)
	if err != nil {
		f.Add("seq", "Use the number of the newest door report of this start, 0 before the first.")
	}
	if err := f.Err(); err != nil {
		return nil, err
	}
	until := time.Now().Add(time.Duration(wait) * time.Second)
	for {
		var out commandsOutput
		var count uint64
		var outdated bool
		err := s.play(ctx, c, func(m *machine) error {
			out, count = commandsOutput{Result: true, Commands: []command{}}, m.kept.Count
			// The device reported a move while this call waited, and would refuse the door's order.
			if outdated = m.kept.Taken > reported; outdated {
				return nil
			}
			if out.Awaits = m.kept.Taken < reported || m.kept.Unread || !m.Rules.Ready; out.Awaits {
				return nil
			}
			m.confirmDone()
			return s.fetch(c, m, &out)
		})
		if err != nil || len(out.Commands) > 0 || out.Awaits || outdated {
			return out, err
		}
		more, err := s.await(ctx, c.device.ID, count, until)
		if err != nil || !more {
			return out, err
		}
		c.once = "" // it counts once
	}
}

// fetch gives orders to the instance that asks. It gives them again when it asks again.
func (s *Service) fetch(c *call, m *machine, out *commandsOutput) error {
	m.dropStale()
	m.kept.Orders = slices.Clone(m.kept.Orders)
	for i := range m.kept.Orders {
		o := &m.kept.Orders[i]
		if m.Now.UnixNano() >= o.Expires || m.isStale(*o) { // one that was given is kept to be answered
			continue
		}
		o.Given = c.instance
		envelope, err := s.envelope(m.Device, m, *o)
		if err != nil {
			return err
		}
		out.Commands = append(out.Commands, command{o.ID, string(o.Kind), time.Unix(0, o.Expires).UTC().Format(time.RFC3339Nano), envelope})
	}
	return nil
}

type acknowledgeInput struct {
	Outcome string `json:"outcome" required:"true" enum:"done,failed,refused" doc:"done: the lock was pulsed. failed: it was, and its hardware says that it held. refused: nothing was done, as for an order that is over or whose signature does not hold."`
}

type resultOutput struct {
	Result bool `json:"result"`
}

// acknowledge takes the outcome of an order. One of an order that is not known changes
// nothing: it was answered before, or its time is over.
func (s *Service) acknowledge(ctx context.Context, c *call, r *fasthttp.RequestCtx) (any, error) {
	var in acknowledgeInput
	if err := read(r, &in); err != nil {
		return nil, err
	}
	id, _ := r.UserValue("cmd_id").(string)
	outcomes := map[string]edge.PulseOutcome{"failed": edge.PulseDenied, "refused": edge.PulseNotSent}
	err := s.play(ctx, c, func(m *machine) error {
		m.kept.Orders = slices.Clone(m.kept.Orders)
		for i := range m.kept.Orders {
			o := &m.kept.Orders[i]
			o.Done = o.Done || in.Outcome == "done" && o.ID == id && o.Given == c.instance && o.Kind == wire.CmdOpenDoors
		}
		m.answerOrders(func(o order) (edge.PulseOutcome, bool) {
			outcome := outcomes[in.Outcome]
			if outcome == edge.PulseNotSent && m.isOpen(o.Door) {
				outcome = edge.PulseRefused // the door tells the rest
			}
			return outcome, o.ID == id && o.Given == c.instance && !o.Done
		})
		return nil
	})
	return resultOutput{true}, err
}

type doorInput struct {
	Door     uint   `json:"door" required:"true" min:"1" doc:"Its compartment_number"`
	State    string `json:"state" required:"true" enum:"open,closed,unknown"`
	Occupied *bool  `json:"occupied" doc:"What a sensor sees inside; left out without one"`
}

type reportInput struct {
	Seq   uint64      `json:"seq" required:"true" min:"1" doc:"Counts the reports of this start, from 1"`
	Doors []doorInput `json:"doors" required:"true" doc:"Every door of the device; one that is left out is unknown, and one that its layout does not have, as before a new layout has come, is passed over"`
}

type reportOutput struct {
	Result bool   `json:"result"`
	Taken  uint64 `json:"taken" doc:"Number of the newest report of this start that was taken"`
}

// report takes how the doors stand. A report that was taken before changes nothing.
func (s *Service) report(ctx context.Context, c *call, r *fasthttp.RequestCtx) (any, error) {
	var in reportInput
	if err := read(r, &in); err != nil {
		return nil, err
	}
	f, seen := check.Fields{}, map[uint]bool{}
	for _, d := range in.Doors {
		if seen[d.Door] {
			f.Add("doors", fmt.Sprintf("Name each door once: door %d is there twice.", d.Door))
		}
		seen[d.Door] = true
	}
	if err := f.Err(); err != nil {
		return nil, err
	}
	out := reportOutput{Result: true}
	err := s.play(ctx, c, func(m *machine) error {
		defer func() { out.Taken = m.kept.Taken }()
		if in.Seq <= m.kept.Taken {
			return nil
		}
		m.kept.Taken, m.kept.Unread, m.read = in.Seq, m.relaid, true // doors of another layout come with the next one
		m.readDoors(in)
		m.confirmDone()
		return m.catchUp() // orders that waited for it, and a configuration
	})
	return out, err
}

// readDoors gives the rules how each door stands, as of now: whatever closed is watched for the
// usual time before it counts, though it was seen a while ago.
func (m *machine) readDoors(in reportInput) {
	for _, l := range m.Rules.Config.Layout {
		n := edge.DoorNumber(l.Door)
		i := slices.IndexFunc(in.Doors, func(d doorInput) bool { return d.Door == l.Door })
		if i < 0 || in.Doors[i].State == "unknown" {
			m.Give(rules.Lost{Doors: []edge.DoorNumber{n}, Mono: m.Last + hosted.Between})
			continue
		}
		open := in.Doors[i].State == "open"
		if open {
			m.refuseMoved(n)
		}
		item := wire.ItemUnknown
		if in := in.Doors[i].Occupied; in != nil {
			item = wire.ItemAbsent
			if *in {
				item = wire.ItemPresent
			}
		}
		m.Give(rules.Reading{Door: n, Open: open, Item: item, Mono: m.Last + hosted.Between})
	}
}

type configOutput struct {
	Result         bool                 `json:"result"`
	Code           string               `json:"device_code"`
	Version        uint64               `json:"config_version"`
	Doors          []configDoor         `json:"doors"`
	SessionSeconds uint32               `json:"session_seconds"`
	OpeningHours   []cloud.OpeningHours `json:"opening_hours"`
}

type configDoor struct {
	Door  uint   `json:"door"`
	Label string `json:"label"`
	Size  string `json:"size"`
}

// config shows what the device has to know of itself.
func (s *Service) config(ctx context.Context, c *call, _ *fasthttp.RequestCtx) (any, error) {
	var out configOutput
	err := s.play(ctx, c, func(m *machine) error {
		out = configOutput{Result: true, Code: c.device.Code, Doors: []configDoor{}}
		out.Version, out.SessionSeconds = m.Rules.Config.Version, m.Rules.Config.Times.WithDefaults().SessionS
		out.OpeningHours = m.Device.Profile.Hours
		for _, l := range m.Rules.Config.Layout {
			out.Doors = append(out.Doors, configDoor{l.Door, l.Label, l.Size})
		}
		return nil
	})
	return out, err
}

type verifyInput struct {
	Code  string `json:"code" required:"true" max:"120" doc:"What was typed, or the text of the symbol that was scanned"`
	Input string `json:"input" required:"true" enum:"keypad,qr"`
	Doors []uint `json:"doors" doc:"Doors that staff chose, for a staff code"`
}

type verifyOutput struct {
	Result    bool   `json:"result"`
	Action    string `json:"action" doc:"open: orders for the doors follow. deny: nothing opens."`
	Doors     []uint `json:"doors"`
	Reason    string `json:"reason,omitempty"`
	OpeningID string `json:"opening_id,omitempty"`
	TriesLeft *int   `json:"tries_left,omitempty"`
	Locked    int    `json:"locked_seconds,omitempty"`
}

// verify checks a code that a person entered. The doors that it opens come as orders.
func (s *Service) verify(ctx context.Context, c *call, r *fasthttp.RequestCtx) (any, error) {
	var in verifyInput
	if err := read(r, &in); err != nil {
		return nil, err
	}
	var out verifyOutput
	if len(in.Doors) > wire.MaxDoors {
		f := check.Fields{}
		f.Add("doors", fmt.Sprintf("Choose at most %d doors.", wire.MaxDoors))
		return nil, f.Err()
	}
	code, budget := strings.TrimSpace(in.Code), rules.BudgetTyped
	switch is := in.Input == "qr"; {
	case is:
		var ok bool
		if code, ok = passcode.ParseQR(c.device.Code, in.Code); !ok {
			code = ""
		}
		budget = rules.BudgetScanned
	case len(code) == passcode.StaffDigits:
		budget = rules.BudgetStaff
	}
	secrets, err := locker.OpenSecrets(s.cfg.Sealer, c.device.SealedCode)
	if err != nil {
		return nil, err
	}
	err = s.play(ctx, c, func(m *machine) error {
		out = verifyOutput{Result: true, Action: "deny", Doors: []uint{}}
		if !passcode.Valid(code) {
			out.Reason = "not_a_code"
			return nil
		}
		if !m.Rules.Ready {
			out.Reason = wire.CodeNotActive
			return nil
		}
		var doors []edge.DoorNumber
		for _, n := range in.Doors {
			doors = append(doors, edge.DoorNumber(n))
		}
		a := m.Give(rules.CodeTried{Verifier: passcode.Verifier(code, secrets.Salt, secrets.Key, m.Rules.Config.Codes), Input: in.Input, Budget: budget, Doors: doors})
		if out.Reason = a.Outcome; a.Outcome == wire.CodeOK && a.OpeningID != "" {
			out.Action, out.Reason, out.OpeningID = "open", "", a.OpeningID
		}
		for _, n := range a.Doors {
			out.Doors = append(out.Doors, uint(n))
		}
		if a.Outcome == wire.CodeUnknown {
			out.TriesLeft = &a.Left
		}
		if a.Until > m.Last {
			out.Locked = int((time.Duration(a.Until-m.Last) + time.Second - 1) / time.Second)
		}
		return nil
	})
	return out, err
}
