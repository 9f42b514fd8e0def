package kiosk

import (
	"encoding/json"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/edge"
	"github.com/postern-io/postern/edge/locker"
	"github.com/postern-io/postern/protocol/wire"
)

// withParcels is a cabinet with an outgoing delivery behind door 7, which a staff session has
// opened, and one that waits behind door 8.
func withParcels() locker.State {
	s := newState()
	for n, ref := range map[edge.DoorNumber]string{7: "LD-OUT", 8: "LD-STAY"} {
		s.Doors[n] = locker.Door{Number: n, Known: true, Delivery: ref}
		s.Deliveries[ref] = locker.Delivery{Ref: ref, Doors: map[edge.DoorNumber][]string{n: {"PK-SECRET", "PK-TWO"}}}
	}
	out := s.Deliveries["LD-OUT"]
	out.Purpose = wire.PurposeSend
	s.Deliveries["LD-OUT"] = out
	s.Staff = locker.StaffSession{ID: "ss_1", Queue: []edge.DoorNumber{8}, Seen: map[edge.DoorNumber]locker.SeenDoor{7: {OpeningID: "op_1", Delivery: "LD-OUT", Due: locker.DueOutgoing, At: moment.Mono}}}
	return s
}

func TestAStaffSessionSeesWhatIsToBeCollected(t *testing.T) {
	t.Parallel()
	k := newKiosk(&fake{state: withParcels(), answer: locker.Answer{Outcome: wire.CodeOK, Session: "ss_1"}}, io.Discard)
	token := signIn(t, k)
	_, body, _ := call(k, "GET", "/api/staff", "", with(token))
	var v View
	require.NoError(t, json.Unmarshal([]byte(body), &v))
	require.Equal(t, &SessionView{Collect: []CollectView{{DoorPlace{DoorRef{7, "A-1"}, "M"}, locker.DueOutgoing, 2}},
		Opened: []OpenedView{{DoorRef{7, "A-1"}, "op_1", true, true, locker.DueOutgoing, 2, ""}}, Queued: 1}, v.Session)
	_, public, _ := call(k, "GET", "/api/state", "")
	_, program, _ := call(k, "GET", "/api/staff", "", keyed)
	for _, never := range []string{"LD-", "PK-", "ss_1"} {
		require.NotContains(t, body+public+program, never)
	}
	for _, never := range []string{`"collect"`, `"why"`, `"packages"`, `"opened"`} {
		require.NotContains(t, public, never)
		require.NotContains(t, program, never, "nor do programs see it, such as a support bundle")
	}
}

func TestStaffActsNeedTheirSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{state: withParcels(), answer: locker.Answer{Outcome: wire.CodeOK, Session: "ss_1"}}
		k := newKiosk(f, io.Discard)
		const removal = `{"opening_id":"op_1","door":7,"outcome":"taken","removal_reason":"collected"}`
		calls := [][2]string{{"/api/staff/next", "{}"}, {"/api/staff/remove", removal}, {"/api/code", `{"code":"48151623","doors":[7],"queue":true}`}}
		refused := func(token string) {
			t.Helper()
			for _, c := range calls {
				status, _, _ := call(k, "POST", c[0], c[1], with(token))
				require.Equal(t, 401, status, c[0])
			}
		}
		refused("")
		refused(pageKey)
		require.Empty(t, f.asked)
		token := signIn(t, k)
		f.asked, f.answer = nil, locker.Answer{Outcome: wire.CodeOK, OpeningID: "op_2", Doors: []edge.DoorNumber{7}, Session: "ss_2"}
		for _, c := range calls {
			time.Sleep(100 * time.Second) // each is an act that keeps the session
			status, body, _ := call(k, "POST", c[0], c[1], with(token))
			require.Equal(t, 200, status, body)
			require.NotContains(t, body, "ss_")
			require.NotContains(t, body, "staff_token")
		}
		require.Equal(t, []string{"locker.OpenNext {Session:ss_1}", "locker.Remove {Session:ss_2 OpeningID:op_1 Door:7 Outcome:taken Reason:collected}", "queue 48151623[7]"}, f.asked)
		for _, body := range []string{`{"opening_id":"op_1","door":7,"outcome":"taken","removal_reason":"stolen"}`, `{"opening_id":"op_1","door":7,"outcome":"refused","removal_reason":"relay"}`} {
			status, _, _ := call(k, "POST", "/api/staff/remove", body, with(token))
			require.Equal(t, 400, status)
		}
		status, _, _ := call(k, "POST", "/api/code", `{"code":"48151623","queue":true}`, with(token))
		require.Equal(t, 400, status)
		time.Sleep(121 * time.Second)
		refused(token)
	})
}

// A signed QR code of staff begins a session for the page that sent it; a courier's, and
// a code for doors without a session, begin none.
func TestASignedQRCodeOfStaffBeginsASession(t *testing.T) {
	t.Parallel()
	f := &fake{state: newState(), answer: locker.Answer{Outcome: wire.CodeOK, OpeningID: "op_1", Doors: []edge.DoorNumber{7}, Session: "ss_1"}}
	k := newKiosk(f, io.Discard)
	_, body, _ := call(k, "POST", "/api/code", `{"code":"48151623","doors":[7]}`)
	require.NotContains(t, body, "staff_token")
	_, body, _ = call(k, "POST", "/api/scan", `{"text":"PX:1"}`)
	require.Contains(t, body, "staff_token")
	f.answer.Session = ""
	_, body, _ = call(k, "POST", "/api/scan", `{"text":"PX:2"}`)
	require.NotContains(t, body, "staff_token")
}
