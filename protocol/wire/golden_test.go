package wire

import (
	"bytes"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite the golden bytes")

// message is one message of the link with every field set, so that its bytes
// show every published key.
type message struct {
	name  string
	value any // not a pointer
}

func ptr[T any](v T) *T { return &v }

func epoch(n byte) Epoch { return Epoch(bytes.Repeat([]byte{n}, 16)) }

func headOf(n byte) Head { return Head(bytes.Repeat([]byte{n}, 32)) }

// bodies are the bodies of all record kinds. Their index is not their kind.
func bodies() map[Kind]any {
	return map[Kind]any{
		KindOpeningStarted: OpeningStarted{OpeningID: "op_1", Kind: OpenDeposit, Doors: []uint{1, 2}, CommandID: "cmd", Who: "courier", DeliveryRef: "LD-1", EndsAt: 9, CodeNumber: 4},
		KindDoorOpened:     DoorOpened{OpeningID: "op_1", Door: 2, Pulses: 1},
		KindDoorClosed:     DoorClosed{OpeningID: "op_1", Door: 2, OpenMS: 1500, Item: ItemPresent},
		KindOpeningSettled: OpeningSettled{OpeningID: "op_1", ConfirmedBy: ByDoorClose, Doors: []SettledDoor{{Door: 2, OpenedAt: 3, ClosedAt: 4, Item: ItemAbsent}},
			Packages: []SettledPackage{{Ref: "PK-1", Door: 2, Outcome: Deposited, FailureCode: "F", CodeNumber: 7}}},
		KindOpeningEnded: OpeningEnded{OpeningID: "op_1", Reason: EndOpenFailed},
		KindPickupCompleted: PickupCompleted{DeliveryRef: "LD-1", OpeningID: "op_2", Doors: []uint{2}, StillOpen: true, How: "qr", CodeNumber: 7, ListNumber: 9,
			Left: []uint{3}},
		KindCommandOutcome:  CommandOutcome{CommandID: "cmd", Outcome: OutcomePartial, Doors: map[uint]string{2: DoorOpenFailed}, Reason: "r", Digest: []byte{1}},
		KindExceptionOpened: Exception{ID: "x1", Type: ExItemMissing, Severity: SeverityHigh, Door: 2, Evidence: "e"},
		KindExceptionClosed: Exception{ID: "x1", Type: ExItemMissing, Severity: SeverityHigh, Door: 2, Evidence: "resolved"},
		KindTrackingEvent:   TrackingEvent{Subject: "PK-1", StatusCode: "in_transit", Location: "Dock 3", Extensions: map[string]string{"lane": "4"}},
		KindScan: Scan{Raw: []byte("]C1"), Symbology: "code128", Identifiers: map[string]string{"00": "1"}, Certainty: "exact", Post: "P", Step: "S",
			Repeats: 2},
		KindTelemetry: Measurement{Type: "temperature", Value: 21.5, Unit: "Cel", Door: 2},
		KindHealth: Health{Boards: map[string]uint64{"A": 1}, StoreUse: map[string]uint64{"lane0": 2}, Uplink: map[string]uint64{"batches": 3},
			Temperatures: map[string]float64{"cpu": 50}, Versions: map[string]string{"agent": "1"}, Locks: []LockWear{{Door: 3, Cycles: 900, Failed: 1, Trouble: 5, Acts: 32, DelayMS: 250}}},
		KindCodeAttempt:        CodeAttempt{Outcome: CodeUnknown, Input: "keypad"},
		KindConfigApplied:      ConfigApplied{Version: 3, Result: "ok"},
		KindGap:                Gap{Epoch: epoch(1), Lane: Telemetry, First: 5, Last: 9, Reason: GapEvicted, Counts: map[Kind]uint64{KindScan: 5}, HeadAfter: ptr(headOf(2))},
		KindTamper:             Tamper{What: TamperDoorForced, Door: 2, Count: 4},
		KindRemoval:            Removal{ID: "rm_1", DeliveryRef: "LD-1", OpeningID: "op_1", Door: 2, Outcome: RemovalTaken, Reason: RemovalCollected, CodeNumber: 7, Item: ItemAbsent},
		KindCompartmentBlocked: CompartmentBlocked{BlockID: "blk_1", Door: 2, Reason: BlockDirty, OpeningID: "op_1", Who: "courier"},
	}
}

func sampleRecord() Record {
	return Record{Kind: KindDoorOpened, At: 1795216320000000000, Boot: 3, Mono: 4000, Clock: ClockSynced, ErrMS: 12, Body: MustEncode(bodies()[KindDoorOpened])}
}

func sampleBatch() Batch {
	return Batch{Version: 1, Epoch: epoch(1), Lane: Telemetry, First: 1, Records: []Raw{MustEncode(sampleRecord())},
		Sent: Sample{Boot: 3, Mono: 5000, Wall: 1795216320000000001, Clock: ClockSynced, ErrMS: 12}, PrevEpoch: ptr(epoch(2)), Head: headOf(3),
		Boots: map[uint64]BootSync{2: {Mono: 1, Wall: 2, ErrMS: 3}}}
}

func signedBatch() Batch {
	b := sampleBatch()
	b.Signature = []byte{4}
	return b
}

func sampleConfig() Config {
	return Config{Version: 4, Layout: []LayoutDoor{{Door: 1, Board: "A", Channel: 2, Inverted: true, Size: "M", Display: 7, Label: "A-1"}},
		Hours: []Hours{{Day: 1, Open: "08:00", Close: "20:00"}}, Texts: map[string]string{"welcome": "Hi"},
		Times: DefaultTimes(), Policy: Policy{LocalDropOff: true, OfflineTrust: true, RetainDays: 30}, Codes: CodeParams{MemoryKiB: 8192, Passes: 3},
		Keys: []PinnedKey{{ID: []byte{1}, Key: bytes.Repeat([]byte{9}, 32)}}, Brokers: []string{"ssl://b:8883"}, DeviceCode: "CAB-1"}
}

func sampleCode() CodeEntry {
	return CodeEntry{Number: 7, Op: CodeSet, Kind: CodePickup, Verifier: bytes.Repeat([]byte{5}, 32), DeliveryRef: "LD-1", Doors: []uint{2}, Sizes: []string{"M"},
		Packages: map[uint][]string{2: {"PK-1"}}, NotBefore: 1, NotAfter: 2, Active: ActiveAtSettle}
}

// outgoingCodes are the entries of a delivery that its sender brings.
func outgoingCodes() []CodeEntry {
	drop, holds := sampleCode(), sampleCode()
	drop.Kind, drop.Active, drop.Purpose = CodeDelivery, ActiveNow, PurposeSend
	holds.Number, holds.Kind, holds.Verifier, holds.Purpose = 8, CodeOutgoing, nil, PurposeReturn
	return []CodeEntry{drop, holds}
}

func returnCode() CodeEntry {
	c := sampleCode()
	c.Purpose = PurposeReturn
	return c
}

func signedStatus() Status {
	return Status{State: Online, At: 1, AgentVersion: "v", Instance: []byte{1}, Boot: 3, Epoch: epoch(1), UptimeS: 60, Boards: map[string]string{"A": "online"},
		StoreUse: []uint64{1, 2}, Backlog: []uint64{3, 4}, Ends: []LaneEnd{{Last: 5, Head: headOf(5)}, {Last: 6, Head: headOf(6)}}, ConfigVersion: 4, CodeList: 7,
		Nonce: []byte{8}, Doors: []DoorStatus{{Door: 2, State: DoorOpen, Item: ItemPresent, OpeningID: "op_1", Version: 5}},
		Exceptions: []Exception{{ID: "x1", Type: ExDoorLeftOpen, Severity: SeverityLow}}, Signature: []byte{9}, Count: 10, Snapshot: 1,
		Contents: map[uint]string{2: "LD-1"}, Generation: 11, Lost: true, TypedLocked: 12}
}

func messages() []message {
	code, echo := sampleCode(), signedStatus()
	echo.Echo = []byte{4}
	acked := echo
	acked.Acked = []uint64{4, 6}
	use := acked
	use.Snapshot, use.Blocked, use.Unconfirmed = SnapshotOfUse, map[uint]string{3: "broken"}, []uint{2}
	program := use
	program.Platform, program.Update = "linux/arm64", &UpdateState{Trial: true, GivenUp: "1.4.0", Reason: "r"}
	out := []message{
		{"batch", sampleBatch()},
		{"record", sampleRecord()},
		{"down", Down{Type: DownAck, Body: MustEncode(Ack{Epoch: epoch(1), Next: 1})}},
		{"ack", Ack{Epoch: epoch(1), Lane: Telemetry, Next: 8, Head: headOf(2), Credit: ptr(uint64(0)), ResendFrom: 8, Refused: RefusedFork, RefusedFirst: 9}},
		{"ack of a restored cloud", Ack{Epoch: epoch(1), Lane: Telemetry, Next: 8, Head: headOf(2), Credit: ptr(uint64(0)), ResendFrom: 8, Refused: RefusedFork, RefusedFirst: 9, Holds: []uint64{4, 8}}},
		{"ack without limit", Ack{Epoch: epoch(1), Lane: Settlement, Next: 1, Head: headOf(2)}},
		{"command", Command{CommandID: "0198", DeviceCode: "CAB-1", IssuedAt: 1, ExpiresAt: 2, Versions: map[uint]uint64{2: 5}, Kind: CmdOpenDoors, Body: Raw{0xa0}}},
		{"command of a followed call", Command{CommandID: "0198", DeviceCode: "CAB-1", IssuedAt: 1, ExpiresAt: 2, Versions: map[uint]uint64{2: 5}, Kind: CmdOpenDoors, Body: Raw{0xa0},
			Trace: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}},
		{"open_doors", OpenDoors{OpeningID: "op_1", Kind: OpenReassign, Doors: []uint{2}, SessionSeconds: 600, DeliveryRef: "LD-1", Packages: map[uint][]string{2: {"PK-1"}},
			Code: &code, Light: true, Replaces: "op_0"}},
		{"close_session", CloseSession{OpeningID: "op_1", How: CloseSettle, ConfirmedBy: ByPartnerAPI, Packages: map[uint][]string{3: {"PK1"}}}},
		{"close_session of a delivery", CloseSession{OpeningID: "op_1", How: CloseSettle, ConfirmedBy: ByPartnerAPI, Packages: map[uint][]string{3: {"PK1"}}, DeliveryRef: "LD-1"}},
		{"door_reason", DoorReason{Door: 2, Reason: "dirty"}},
		{"door_reason of a delivery", DoorReason{Door: 2, Reason: "cleared", DeliveryRef: "LD-1"}},
		{"sync_config", SyncConfig{Version: 4}},
		{"update", Update{Version: "1.4.0", URL: "/api/v1/x", Size: 9, Digest: []byte{1}, Signature: []byte{2}}},
		{"diagnosis", Diagnosis{Upload: Upload{Path: "/api/v1/x", Until: 2, Max: 3}}},
		{"channel_test", ChannelTest{OpeningID: "op_1", Kind: OpenStaff, Doors: []uint{2}, SessionSeconds: 120, Upload: Upload{Path: "/api/v1/x", Until: 2, Max: 3}, Occupied: true}},
		{"time", Time{DeviceCode: "CAB-1", Nonce: []byte{1, 2}, ServerTime: 3}},
		{"codes", Codes{DeviceCode: "CAB-1", From: 6, To: 7, Entries: []CodeEntry{code}}},
		{"status", Status{State: Online, At: 1, AgentVersion: "v", Instance: []byte{1}, Boot: 3, Epoch: epoch(1), UptimeS: 60, Boards: map[string]string{"A": "online"},
			StoreUse: []uint64{1, 2}, Backlog: []uint64{3, 4}, Ends: []LaneEnd{{Last: 5, Head: headOf(5)}, {Last: 6, Head: headOf(6)}}, ConfigVersion: 4, CodeList: 7,
			Nonce: []byte{8}, Doors: []DoorStatus{{Door: 2, State: DoorOpen, Item: ItemPresent, OpeningID: "op_1", Version: 5}},
			Exceptions: []Exception{{ID: "x1", Type: ExDoorLeftOpen, Severity: SeverityLow}}}},
		{"status offline", Status{State: Offline, At: 1, Epoch: epoch(1)}},
		{"status signed", signedStatus()},
		{"batch signed", signedBatch()},
		{"codes of a generation", Codes{DeviceCode: "CAB-1", From: 0, To: 7, Entries: []CodeEntry{code}, Generation: 2, Nonce: []byte{3}}},
		{"codes in parts", Codes{DeviceCode: "CAB-1", From: 6, To: 7, Entries: []CodeEntry{code}, Generation: 2, Nonce: []byte{3}, Part: 2, End: 9}},
		{"codes of a parcel to be sent", Codes{DeviceCode: "CAB-1", From: 6, To: 8, Entries: outgoingCodes(), Generation: 2, Nonce: []byte{3}, Part: 2, End: 9}},
		{"open_doors for a parcel to be returned", OpenDoors{OpeningID: "op_1", Kind: OpenReassign, Doors: []uint{2}, SessionSeconds: 600, DeliveryRef: "LD-1", Packages: map[uint][]string{2: {"PK-1"}},
			Code: ptr(returnCode()), Light: true, Replaces: "op_0"}},
		{"time with a challenge", Time{DeviceCode: "CAB-1", Nonce: []byte{1, 2}, ServerTime: 3, Challenge: []byte{4}}},
		{"status with an echo", echo},
		{"status with acknowledgements", acked},
		{"status with what doors are for", use},
		{"status with a program", program},
		{"opening_settled with bounds", OpeningSettled{OpeningID: "op_1", ConfirmedBy: ByTimeoutDoorClosed, Packages: []SettledPackage{{Ref: "PK-1", Door: 2, Outcome: Deposited}},
			Doors: []SettledDoor{{Door: 2, OpenedAt: 3, ClosedAt: 9, Item: ItemAbsent, ClosedAfter: 4, ClosedBefore: 9}}}},
		{"scan of a batch scanner", Scan{Raw: []byte("]C1"), Symbology: "code128", Identifiers: map[string]string{"00": "1"}, Certainty: "exact", Post: "P", Step: "S", Repeats: 1, ScannedAt: 7}},
		{"tracking_event of a batch scanner", TrackingEvent{Subject: "PK-1", StatusCode: "in_transit", Location: "Dock 3", Extensions: map[string]string{"lane": "4"}, ScannedAt: 7}},
		{"config", sampleConfig()},
		{"pass", samplePass()},
		{"pass of staff", staffPass()},
		{"opening_started by a pass", OpeningStarted{OpeningID: "op_1", Kind: OpenDeposit, Doors: []uint{1, 2}, CommandID: LocalCommand, Who: "courier", DeliveryRef: "LD-1", EndsAt: 9, CodeNumber: 4,
			How: PassInput, PassID: bytes.Repeat([]byte{6}, PassIDSize)}},
		{"opening_started in place of another", OpeningStarted{OpeningID: "op_2", Kind: OpenReassign, Doors: []uint{1, 3}, CommandID: LocalCommand, Who: "courier", DeliveryRef: "LD-1", EndsAt: 9, CodeNumber: 4,
			Packages: map[uint][]string{1: {"PK-1"}, 3: {"PK-2"}}}},
	}
	all := bodies()
	for k := KindOpeningStarted; k.IsKnown(); k++ {
		out = append(out, message{"body " + k.String(), all[k]})
	}
	return out
}

// Golden bytes of every message: a published key never changes its meaning, so
// these lines may be added to, never changed.
func TestGoldenBytesOfEveryMessage(t *testing.T) {
	path := filepath.Join("testdata", "golden.txt")
	var got strings.Builder
	for _, m := range messages() {
		fmt.Fprintf(&got, "%s: %s\n", m.name, hex.EncodeToString(MustEncode(m.value)))
	}
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, []byte(got.String()), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got.String())
}

// decodeLike decodes b into a new value of v's type.
func decodeLike(v any, b []byte) (any, error) {
	p := reflect.New(reflect.TypeOf(v))
	err := Decode(b, p.Interface())
	return p.Elem().Interface(), err
}

func TestEveryMessageIsReadBackFromItsGoldenBytes(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(filepath.Join("testdata", "golden.txt"))
	require.NoError(t, err)
	lines := map[string]string{}
	for line := range strings.Lines(string(raw)) {
		name, h, _ := strings.Cut(strings.TrimSpace(line), ": ")
		lines[name] = h
	}
	for _, m := range messages() {
		b, err := hex.DecodeString(lines[m.name])
		require.NoError(t, err)
		got, err := decodeLike(m.value, b)
		require.NoError(t, err, m.name)
		if diff := cmp.Diff(m.value, got, cmpopts.EquateEmpty(), cmpopts.IgnoreUnexported(Sample{}, BootSync{}, LaneEnd{}, DoorStatus{}, LayoutDoor{}, Hours{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", m.name, diff)
		}
		require.Equal(t, b, MustEncode(got), m.name)
	}
}

// Every field of every message is set above: a new key shows in the golden
// bytes, or this test says that it does not.
func TestGoldenMessagesSetEveryField(t *testing.T) {
	t.Parallel()
	partial := map[string]bool{"ack": true, "ack without limit": true, "status with an echo": true, "status with acknowledgements": true, "status with what doors are for": true, "status offline": true, "down": true,
		"status": true, "batch": true, "command": true, "close_session": true, "door_reason": true, "codes": true, "open_doors": true, "codes in parts": true, "codes of a generation": true, "time": true, "status signed": true, "body opening_settled": true, "body scan": true, "body tracking_event": true, "body opening_started": true, "pass of staff": true, "opening_settled with bounds": true, "opening_started by a pass": true, "opening_started in place of another": true} // shown whole by others
	var unset func(path string, v reflect.Value)
	unset = func(path string, v reflect.Value) {
		if v.Kind() != reflect.Struct {
			return
		}
		for i := range v.NumField() {
			f, name := v.Field(i), path+"."+v.Type().Field(i).Name
			if !v.Type().Field(i).IsExported() {
				continue
			}
			if f.IsZero() {
				t.Errorf("%s is not set", name)
			}
			if f.Kind() == reflect.Slice && f.Len() > 0 && !strings.HasSuffix(name, ".Exceptions") {
				unset(name, f.Index(0))
			}
			if f.Kind() == reflect.Pointer && !f.IsNil() {
				f = f.Elem()
			}
			unset(name, f)
		}
	}
	for _, m := range messages() {
		if !partial[m.name] {
			unset(m.name, reflect.ValueOf(m.value))
		}
	}
}
