package order

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
)

// section gives the rows of the tables of one section of the interface's text,
// each as its trimmed cells.
func section(t *testing.T, heading string) (out [][]string) {
	t.Helper()
	b, err := os.ReadFile("../../docs/interface/rest-graphql.md")
	require.NoError(t, err)
	_, text, ok := strings.Cut(string(b), "\n"+heading)
	require.True(t, ok, heading)
	text, _, _ = strings.Cut(text, "\n### ")
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "|") && !strings.HasPrefix(line, "|--") {
			var cells []string
			for cell := range strings.SplitSeq(strings.Trim(line, "|"), "|") {
				cells = append(cells, strings.TrimSpace(cell))
			}
			out = append(out, cells)
		}
	}
	return out[1:] // without the head
}

func TestStatusDictionaryIsThatOfTheText(t *testing.T) {
	t.Parallel()
	var got, want []cloud.OrderState
	for _, c := range section(t, "### 4.3 ") {
		id, err := strconv.Atoi(c[0])
		require.NoError(t, err)
		code, _, _ := strings.Cut(c[7], " ")
		s := cloud.OrderStatus(id).State()
		require.Equal(t, code, string(s.Code), c[1])
		name, _, _ := strings.Cut(c[1], " ")
		want = append(want, cloud.OrderState{ID: cloud.OrderStatus(id), Name: name, Label: c[2], Group: c[3], Terminal: c[4] == "yes", Holdable: c[5] == "yes",
			Assignable: strings.HasPrefix(c[6], "yes"), Code: s.Code, Reason: s.Reason})
		if strings.Contains(c[7], "incident_reason") {
			require.Contains(t, c[7], s.Reason)
		} else {
			require.Empty(t, s.Reason)
		}
	}
	got = cloud.OrderStates()
	require.Equal(t, want, got)
	require.Equal(t, cloud.OrderState{}, cloud.OrderStatus(99).State())
}

func TestOperationsAreThoseOfTheText(t *testing.T) {
	t.Parallel()
	want := map[int]bool{}
	ids := regexp.MustCompile(`\b[1-8]0\d\d\b`)
	for _, c := range section(t, "### 4.5 ") {
		for i := 0; i < len(c); i += 2 {
			for _, id := range ids.FindAllString(c[i], -1) {
				n, err := strconv.Atoi(id)
				require.NoError(t, err)
				want[n] = true
			}
		}
	}
	for id := range want {
		require.NotEmpty(t, operations[id], "%d", id)
	}
	want[orderRenumbered] = true // of the tracking network
	require.Len(t, operations, len(want))
	for _, a := range []Action{actCreate, actEdit, actNote, actWindow, actInstruct, actCancel, actDelete, actHold, actRelease, actReroute, {3043, 5004, 6012}, {3044, 0, 6013}, {3045, 5005, 6014}} {
		for _, c := range []cloud.Caller{{}, {Surface: "web"}, {Surface: "app", Account: cloud.Account{Type: cloud.Customer}}, {Surface: "graphql"}} {
			require.Contains(t, operations, a.Operation(c))
			require.Contains(t, channels, a.Operation(c)/1000)
		}
	}
	require.Equal(t, 3043, Action{3043, 5004, 6012}.Operation(cloud.Caller{Surface: "web"}))
	require.Equal(t, 6012, Action{3043, 5004, 6012}.Operation(cloud.Caller{}))
}

type pair struct{ from, to cloud.OrderStatus }

// textMoves reads the table of moves. The status before planning is any from
// which orders are planned, and that before a third party the one the text
// lists.
func textMoves(t *testing.T) map[pair]bool {
	numbers := regexp.MustCompile(`\d+`)
	read := func(s string) (out statuses) {
		for _, n := range numbers.FindAllString(s, -1) {
			id, err := strconv.Atoi(n)
			require.NoError(t, err)
			require.NotEmpty(t, cloud.OrderStatus(id).String(), s)
			out = append(out, cloud.OrderStatus(id))
		}
		return out
	}
	out := map[pair]bool{}
	add := func(from, to statuses) {
		for _, f := range from {
			for _, x := range to {
				if f != x {
					out[pair{f, x}] = true
				}
			}
		}
	}
	var beforePlanning statuses
	rows := section(t, "### 4.4 ")
	for _, c := range rows {
		if len(c) == 3 && (c[1] == "10" || c[1] == "11") && c[0] != "12" {
			for _, s := range read(c[0]) {
				if s != cloud.OrderRoutePlanned {
					beforePlanning = append(beforePlanning, s)
				}
			}
		}
	}
	for _, c := range rows {
		from, _, _ := strings.Cut(c[0], "(after")
		to, _, _ := strings.Cut(c[1], "`")
		var source statuses
		switch {
		case c[0] == "(create)":
			continue
		case strings.HasPrefix(from, "any non-terminal"):
			_, except, _ := strings.Cut(from, "except")
			for _, s := range cloud.OrderStates() {
				if !s.Terminal && !slices.Contains(read(except), s.ID) {
					source = append(source, s.ID)
				}
			}
		default:
			source = read(from)
		}
		add(source, read(to))
		switch {
		case strings.Contains(to, "remembered"):
			for _, s := range cloud.OrderStates() {
				if !s.Terminal && s.ID != cloud.OrderUnpaid && s.ID != cloud.OrderHold {
					add(source, statuses{s.ID})
				}
			}
		case strings.Contains(to, "state before") && len(read(to)) < 2:
			add(source, beforePlanning)
		}
		if strings.Contains(c[2], "41 follows automatically") {
			add(read(to), statuses{cloud.OrderDelivered})
		}
	}
	return out
}

// Every pair of statuses is a move here exactly when the text has it, but for
// two of ours: a part that was collected while the rest was never brought, and a
// part that a third party delivered.
func TestMovesAreThoseOfTheText(t *testing.T) {
	t.Parallel()
	want := textMoves(t)
	require.Greater(t, len(want), 150)
	require.False(t, want[pair{cloud.OrderInLocker, cloud.OrderPartlyDelivered}])
	want[pair{cloud.OrderInLocker, cloud.OrderPartlyDelivered}] = true
	require.False(t, want[pair{cloud.OrderHandedOver, cloud.OrderPartlyDelivered}])
	want[pair{cloud.OrderHandedOver, cloud.OrderPartlyDelivered}] = true
	// While a carrier has the goods the order follows its events (tracking network, 3).
	for _, from := range []cloud.OrderStatus{13, 32, 40, 42, 43, 44} {
		for _, to := range []cloud.OrderStatus{32, 40, 41, 42, 43, 44, 45, 47} {
			want[pair{from, to}] = true
		}
	}
	triggers := map[Trigger]bool{}
	for _, m := range moves {
		triggers[m.trigger] = true
	}
	for _, from := range cloud.OrderStates() {
		for _, to := range cloud.OrderStates() {
			if from.ID == to.ID {
				continue
			}
			var by []string
			for _, kind := range []cloud.OrderType{cloud.DeliveryOrder, cloud.PickupOrder, cloud.PointToPoint} {
				for _, collected := range []bool{false, true} {
					for trigger := range triggers {
						o := cloud.Order{Type: kind, Status: from.ID, Collected: collected}
						if slices.Contains(planned, from.ID) && slices.Contains(plannable, to.ID) || from.ID == cloud.OrderHandedOver && Resting(to.ID) {
							o.Before = to.ID
						}
						var before cloud.OrderStatus
						if from.ID == cloud.OrderIntercepted && slices.Contains(stoppable, to.ID) {
							before = to.ID
						}
						if rowOf(o, to.ID, trigger, before) != nil {
							by = append(by, fmt.Sprint(trigger))
						}
					}
				}
			}
			require.Equal(t, want[pair{from.ID, to.ID}], len(by) > 0, "%d %s → %d %s by %v", from.ID, from.Name, to.ID, to.Name, by)
		}
	}
}

func TestPackagesAreNumberedFromOne(t *testing.T) {
	t.Parallel()
	require.Equal(t, "SR204518837-2", packageNumber("SR204518837", 1))
}
