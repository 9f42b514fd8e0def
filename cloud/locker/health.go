package locker

import (
	"context"
	"errors"
	"maps"
	"math/bits"
	"slices"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/protocol/wire"
)

// HealthInput asks how a cabinet is.
type HealthInput struct {
	Device cloud.DeviceID `path:"id"`
}

// BoardHealth is a controller board of a cabinet.
type BoardHealth struct {
	Name   string `json:"name"`
	Errors uint64 `json:"errors" doc:"Answers that were bad or did not come, since the agent started"`
}

// LockHealth is what a lock has done since the cabinet's store began. An act is an opening
// of its door by pulses of the lock.
type LockHealth struct {
	GridID    cloud.GridID `json:"grid_id"`
	DoorName  string       `json:"door_name" doc:"As on the door: pickup_locker_code, or grid_code where there is none"`
	Door      uint         `json:"compartment_number"`
	Condition string       `json:"condition" enum:"failing,weak,slow,ok" doc:"failing: the first pulse has not opened the door in the last two acts, or in three of the last eight; weak: in two of the last 32; slow: it opens much later than the cabinet's other doors"`
	Cycles    uint64       `json:"cycles" doc:"Acts that opened the door"`
	Failed    uint64       `json:"failed" doc:"Acts that did not"`
	Acts      int          `json:"last_acts" doc:"How many of the last acts are known, to 32"`
	Troubled  int          `json:"troubled" doc:"Of the last acts, those in which the first pulse did not open the door"`
	OpeningMS uint32       `json:"opening_ms" doc:"From pulse to open door, smoothed over some eight acts"`
}

// Conditions of a lock, the worst first.
const (
	lockFailing = "failing"
	lockWeak    = "weak"
	lockSlow    = "slow"
	lockOK      = "ok"
)

var lockConditions = []string{lockFailing, lockWeak, lockSlow, lockOK}

const (
	recentActs = 0xff // of the bits of an act
	knownActs  = 8    // acts after which the delay of a lock says something
	fewDoors   = 3    // fewer say nothing about what is usual at a cabinet
	slowFloor  = 500  // ms by which a slow door is later than twice the usual
)

// locksOf judges locks by what they have done, the worst first, then by door.
func locksOf(wear []wire.LockWear, cells []cloud.Compartment) []LockHealth {
	var delays []uint32
	of := map[uint]wire.LockWear{}
	for _, w := range wear {
		of[w.Door] = w
		if w.Cycles >= knownActs {
			delays = append(delays, w.DelayMS)
		}
	}
	slices.Sort(delays)
	out := []LockHealth{}
	for _, c := range cells {
		w, ok := of[c.Door]
		if !ok {
			continue
		}
		l := LockHealth{GridID: c.GridID, DoorName: c.Name(), Door: c.Door, Condition: lockOK, Cycles: w.Cycles, Failed: w.Failed, Acts: int(min(w.Acts, 32)), Troubled: bits.OnesCount32(w.Trouble), OpeningMS: w.DelayMS}
		switch {
		case w.Trouble&3 == 3, bits.OnesCount32(w.Trouble&recentActs) >= 3:
			l.Condition = lockFailing
		case l.Troubled >= 2:
			l.Condition = lockWeak
		case w.Cycles >= knownActs && len(delays) >= fewDoors && uint64(w.DelayMS) > slowFloor+2*uint64(delays[len(delays)/2]):
			l.Condition = lockSlow
		}
		out = append(out, l)
	}
	slices.SortStableFunc(out, func(a, b LockHealth) int {
		if n := slices.Index(lockConditions, a.Condition) - slices.Index(lockConditions, b.Condition); n != 0 {
			return n
		}
		return int(a.Door) - int(b.Door)
	})
	return out
}

// TemperatureReading is a sensor of a cabinet.
type TemperatureReading struct {
	Name    string  `json:"name"`
	Celsius float64 `json:"celsius"`
}

// ProgramState is what a cabinet said of its program in its newest status.
type ProgramState struct {
	Version       string  `json:"version" doc:"Empty: it has not said"`
	Platform      *string `json:"platform" doc:"System and processor, such as linux/arm64"`
	TakesUpdates  bool    `json:"takes_updates" doc:"The command update can be sent"`
	OnTrial       bool    `json:"on_trial" doc:"The version is on trial: it has not shown yet that it works"`
	GivenUp       *string `json:"given_up" doc:"Newest version that did not work and was left for the one before"`
	GivenUpReason *string `json:"given_up_reason"`
}

func programState(d cloud.Device) ProgramState {
	text := func(s string) *string {
		if s == "" {
			return nil
		}
		return &s
	}
	p := d.Program
	return ProgramState{Version: d.Firmware, Platform: text(p.Platform), TakesUpdates: p.Updates, OnTrial: p.Trial, GivenUp: text(p.GivenUp), GivenUpReason: text(p.Reason)}
}

// MissingRange are records of a cabinet that will never come, or not yet.
type MissingRange struct {
	Lane    string `json:"lane" doc:"settlement: openings and parcels; telemetry: readings and health"`
	First   uint64 `json:"first" doc:"Sequence number"`
	Last    uint64 `json:"last" doc:"Sequence number; 0: unknown"`
	Missing uint64 `json:"missing" doc:"Records of the range that did not come"`
	Reason  string `json:"reason" doc:"evicted, refused, store_created, store_damaged or store_rolled_back"`
}

// CabinetHealth is what a cabinet reported of itself. Members of a report are null or
// empty while none has come.
type CabinetHealth struct {
	DeviceID      cloud.DeviceID       `json:"device_id"`
	ReportedAt    *string              `json:"reported_at" doc:"By the cabinet's clock; null: no health report is among its newest records"`
	AgentVersion  *string              `json:"agent_version"`
	Program       ProgramState         `json:"program"`
	Clock         *string              `json:"clock" enum:"unset,carried,synced" doc:"carried: over from an earlier start; synced: set by a signed answer"`
	ClockErrorMS  *uint32              `json:"clock_error_ms" doc:"Bound of the error of a synced clock"`
	ClockOffsetMS *int64               `json:"clock_offset_ms" doc:"The cabinet's clock minus the cloud's when its newest records came, with the time on the way"`
	ReceivedAt    *string              `json:"received_at" doc:"When the newest records came"`
	StorePercent  *uint64              `json:"store_percent" doc:"How full the cabinet's store is"`
	StoreBytes    map[string]uint64    `json:"store_bytes" graphql:"JSON" doc:"By lane"`
	Connects      *uint64              `json:"connects" doc:"Connections since the agent started"`
	Resends       *uint64              `json:"resends" doc:"Batches that were sent again since then"`
	Boards        []BoardHealth        `json:"boards"`
	Temperatures  []TemperatureReading `json:"temperatures"`
	Locks         []LockHealth         `json:"locks" doc:"Those that have opened a door, the worst first; about once an hour"`
	Missing       []MissingRange       `json:"missing"`
}

// HealthOutput shows how a cabinet is.
type HealthOutput struct {
	Result bool          `json:"result"`
	Health CabinetHealth `json:"health"`
}

// Bounds of what is looked at for a cabinet's health.
const (
	healthRecords = 2000 // the newest of the telemetry lane
	maxMissing    = 50
)

var (
	laneNames  = map[wire.Lane]string{wire.Settlement: "settlement", wire.Telemetry: "telemetry"}
	clockNames = map[wire.Clock]string{wire.ClockUnset: "unset", wire.ClockCarried: "carried", wire.ClockSynced: "synced"}
)

// FindHealth shows what a cabinet of the caller's business reported of itself last:
// store, link, clock, boards and temperatures, and the records that it could not
// deliver. Error: DEVICE_NOT_FOUND.
func (s staff) FindHealth(ctx context.Context, c cloud.Caller, in HealthInput) (out HealthOutput, err error) {
	err = s.cfg.Store.Look(ctx, func(v cloud.View) error {
		d, err := ours(v, c, in.Device)
		if err != nil {
			return err
		}
		biz, err := v.Business(d.BusinessID)
		if err != nil {
			return err
		}
		h := CabinetHealth{DeviceID: d.ID, Program: programState(d), StoreBytes: map[string]uint64{}, Boards: []BoardHealth{}, Temperatures: []TemperatureReading{}, Locks: []LockHealth{}, Missing: []MissingRange{}}
		if err := h.addReport(v, d, biz.Location()); err != nil {
			return err
		}
		err = h.addMissing(v, d)
		out = HealthOutput{true, h}
		return err
	})
	return out, err
}

// addReport takes over the newest health record, and how the clock stood when the newest
// batch came.
func (h *CabinetHealth) addReport(v cloud.View, d cloud.Device, l *time.Location) error {
	lane, err := v.Lane(d.ID, d.StatusEpoch, wire.Telemetry)
	if errors.Is(err, cloud.ErrNotFound) || err == nil && lane.Next == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	from := uint64(1)
	if lane.Next > healthRecords {
		from = lane.Next - healthRecords
	}
	batches, err := v.Journal(d.ID, d.StatusEpoch, wire.Telemetry, from, lane.Next)
	if err != nil {
		return err
	}
	for i, stored := range slices.Backward(batches) {
		b, err := wire.DecodeBatch(stored.Bytes)
		if err != nil {
			continue // it was checked when it came; a newer version reads it
		}
		if i == len(batches)-1 {
			offset, clock := time.Unix(0, b.Sent.Wall).Sub(stored.ReceivedAt).Milliseconds(), clockNames[b.Sent.Clock]
			h.ClockOffsetMS, h.Clock, h.ReceivedAt = &offset, &clock, cloud.Stamp(stored.ReceivedAt, l)
			if b.Sent.Clock == wire.ClockSynced {
				h.ClockErrorMS = &b.Sent.ErrMS
			}
		}
		for _, raw := range slices.Backward(b.Records) {
			r, err := wire.DecodeRecord(raw)
			if err != nil || r.Kind != wire.KindHealth {
				continue
			}
			var body wire.Health
			if err := wire.Decode(r.Body, &body); err != nil {
				continue
			}
			if h.ReportedAt == nil {
				h.takeReport(r, body, l)
			}
			if body.Locks == nil {
				continue // they stand in an earlier one
			}
			cells, err := v.Compartments(d.ID)
			h.Locks = locksOf(body.Locks, cells)
			return err
		}
	}
	return nil
}

func (h *CabinetHealth) takeReport(r wire.Record, body wire.Health, l *time.Location) {
	h.ReportedAt = cloud.Stamp(time.Unix(0, r.At).UTC(), l)
	number := func(m map[string]uint64, name string) *uint64 {
		n, ok := m[name]
		if !ok {
			return nil
		}
		return &n
	}
	h.StorePercent, h.Connects, h.Resends = number(body.StoreUse, "filled_percent"), number(body.Uplink, "connects"), number(body.Uplink, "resends")
	for i, name := range []string{"settlement", "telemetry"} {
		if n := number(body.StoreUse, []string{"lane0", "lane1"}[i]); n != nil {
			h.StoreBytes[name] = *n
		}
	}
	if version, ok := body.Versions["agent"]; ok {
		h.AgentVersion = &version
	}
	for _, name := range slices.Sorted(maps.Keys(body.Boards)) {
		h.Boards = append(h.Boards, BoardHealth{name, body.Boards[name]})
	}
	for _, name := range slices.Sorted(maps.Keys(body.Temperatures)) {
		h.Temperatures = append(h.Temperatures, TemperatureReading{name, body.Temperatures[name]})
	}
}

// addMissing adds the records that the cabinet's present store could not deliver, the
// newest first.
func (h *CabinetHealth) addMissing(v cloud.View, d cloud.Device) error {
	for _, lane := range []wire.Lane{wire.Settlement, wire.Telemetry} {
		gaps, err := v.Gaps(d.ID, d.StatusEpoch, lane, 0)
		if err != nil {
			return err
		}
		for _, g := range slices.Backward(gaps) {
			if len(h.Missing) < maxMissing && (g.Missing > 0 || g.Last == 0) {
				h.Missing = append(h.Missing, MissingRange{laneNames[lane], g.First, g.Last, g.Missing, g.Reason})
			}
		}
	}
	return nil
}
