package agent

import (
	"encoding/base64"
	"encoding/hex"
	"slices"
	"time"

	"github.com/postern-io/postern/edge"
	"github.com/postern-io/postern/edge/access"
	"github.com/postern-io/postern/edge/locker"
	"github.com/postern-io/postern/internal/bundle"
	"github.com/postern-io/postern/protocol/wire"
)

// supportStatus is what a support bundle says of the cabinet's present: counts and states, and
// nothing of deliveries, people or what staff have written.
type supportStatus struct {
	At            time.Time         `json:"at"`
	Version       string            `json:"agent_version"`
	Boot          uint64            `json:"boot"`
	UptimeS       uint64            `json:"uptime_s"`
	Connected     bool              `json:"connected"`
	Clock         wire.Clock        `json:"clock"`
	ClockErrMS    uint32            `json:"clock_error_ms"`
	ConfigVersion uint64            `json:"config_version"`
	CodeList      uint64            `json:"code_list"`
	MemoryLost    bool              `json:"memory_lost"`
	Boards        map[string]string `json:"boards"`
	Update        *wire.UpdateState `json:"update,omitempty"`
	Doors         []supportDoor     `json:"doors"`
	Exceptions    []supportFault    `json:"open_exceptions"`
}

type supportDoor struct {
	Door    uint   `json:"door"`
	Board   string `json:"board"`
	Channel uint   `json:"channel"`
	State   string `json:"state"`
	InUse   bool   `json:"in_use"` // a delivery lies behind it, or an opening runs
	Blocked bool   `json:"blocked"`
	Wear    any    `json:"lock,omitempty"`
}

type supportFault struct {
	Type     string `json:"type"`
	Severity string `json:"severity"`
	Door     uint   `json:"door,omitempty"`
}

// bundle is a support bundle of at most max bytes: the log is cut until it fits.
func (x *diagnoser) bundle(max int) (file []byte, err error) {
	for log := maxLog; ; log /= 2 {
		if file, err = x.bundleWith(x.log.newest(log)); err != nil || len(file) <= max || log == 0 {
			return file, err
		}
	}
}

func (x *diagnoser) bundleWith(log []byte) ([]byte, error) {
	a := x.agent
	b := bundle.New(x.wallNow())
	s := a.loop.State()
	b.Hide(append(secretTexts(a.cfg.Secrets), privateTexts(&s)...)...)
	b.AddAbout("edge", x.version())
	if a.cfg.Facts != nil {
		b.AddFacts(a.cfg.Facts())
	}
	b.AddJSON("status.json", x.supportStatus())
	b.AddJSON("health.json", a.healthBody())
	b.AddJSON("boards.json", x.boardsNow())
	if learned, err := a.learned(); err == nil && len(learned) > 0 {
		b.AddJSON("learned.json", learned)
	}
	p := a.store.Present()
	b.AddJSON("store.json", map[string]any{"filled_percent": a.store.Filled(), "use_bytes": p.Use, "waiting_records": p.Backlog})
	b.Add("log.jsonl", log)
	return b.Bytes()
}

func (x *diagnoser) supportStatus() supportStatus {
	a := x.agent
	s, st, now := a.loop.State(), a.status(), a.Now()
	out := supportStatus{At: x.wallNow(), Version: x.version(), Boot: st.Boot, UptimeS: st.UptimeS, Connected: a.link.Connected(), Clock: now.Clock, ClockErrMS: now.ErrMS, ConfigVersion: st.ConfigVersion,
		CodeList: st.CodeList, MemoryLost: st.Lost, Boards: st.Boards, Update: st.Update, Doors: []supportDoor{}, Exceptions: []supportFault{}}
	where := places(s.Config)
	wear := map[uint]wire.LockWear{}
	for _, w := range s.Wear() {
		wear[w.Door] = w
	}
	for _, d := range st.Doors {
		place := where[edge.DoorNumber(d.Door)]
		y := supportDoor{Door: d.Door, Board: place.Board, Channel: place.Channel, State: d.State, InUse: st.Contents[d.Door] != "" || d.OpeningID != "", Blocked: st.Blocked[d.Door] != ""}
		if w, ok := wear[d.Door]; ok {
			y.Wear = w
		}
		out.Doors = append(out.Doors, y)
	}
	for _, e := range st.Exceptions {
		out.Exceptions = append(out.Exceptions, supportFault{e.Type, e.Severity, e.Door})
	}
	return out
}

// privateTexts are what the cabinet knows of deliveries, and the token of the answer itself: no
// line of the log should have them.
func privateTexts(s *locker.State) (out []string) {
	if d := s.Meta.Diagnosis; d != nil {
		out = append(out, tokenOf(d.Upload.Path))
	}
	for ref, d := range s.Deliveries {
		out = append(out, ref)
		for _, packages := range d.Doors {
			out = append(out, packages...)
		}
	}
	for _, d := range s.Doors {
		out = append(out, d.Delivery)
	}
	for _, e := range s.Codes {
		out = append(out, e.DeliveryRef)
	}
	return slices.DeleteFunc(out, func(s string) bool { return len(s) < leastHidden })
}

// leastHidden is how long a secret is, at least: shorter texts stand everywhere.
const leastHidden = 8

// secretTexts are the forms in which the cabinet's secrets could stand in a text.
func secretTexts(s access.Secrets) []string {
	out := []string{s.DeviceSecret}
	for _, raw := range [][]byte{s.CodeSalt, s.CodeKey, s.DeviceKey} {
		if len(raw) > 0 {
			out = append(out, hex.EncodeToString(raw), base64.StdEncoding.EncodeToString(raw), base64.RawStdEncoding.EncodeToString(raw), base64.URLEncoding.EncodeToString(raw), base64.RawURLEncoding.EncodeToString(raw), string(raw))
		}
	}
	return slices.DeleteFunc(out, func(s string) bool { return len(s) < leastHidden })
}
