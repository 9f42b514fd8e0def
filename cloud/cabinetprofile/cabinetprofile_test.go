package cabinetprofile_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/cabinetprofile"
	"github.com/postern-io/postern/cloud/check"
	"github.com/postern-io/postern/protocol/wire"
)

// A revision counts changes of settings, and of nothing else.
func TestRevisionCountsChangesOfSettings(t *testing.T) {
	t.Parallel()
	var p cloud.CabinetProfile
	require.NoError(t, cabinetprofile.Fill(cabinetprofile.Input{Name: " Stations ", Session: 300, Sound: 120, Reopen: 60, Notice: "Closed"}, &p))
	require.Equal(t, []any{"Stations", int64(1)}, []any{p.Name, p.Revision})
	change := func(in cabinetprofile.Edit) int64 {
		require.NoError(t, cabinetprofile.Change(in, &p))
		return p.Revision
	}
	require.EqualValues(t, 1, change(cabinetprofile.Edit{Name: new("Stops")}))
	require.EqualValues(t, 1, change(cabinetprofile.Edit{Session: new(300), Notice: new("Closed")}))
	require.EqualValues(t, 2, change(cabinetprofile.Edit{Session: new(301)}))
	require.EqualValues(t, 3, change(cabinetprofile.Edit{Notice: new("")}))
	day := 1
	hours := []check.HoursInput{{Day: &day, Open: "06:00", Close: "22:00"}}
	require.EqualValues(t, 4, change(cabinetprofile.Edit{Hours: &hours}))
	require.EqualValues(t, 4, change(cabinetprofile.Edit{Hours: &hours}))
	require.EqualValues(t, 5, change(cabinetprofile.Edit{Hours: &[]check.HoursInput{}}))
	bad := []check.HoursInput{{Day: &day, Open: "22:00", Close: "06:00"}}
	require.Error(t, cabinetprofile.Change(cabinetprofile.Edit{Hours: &bad}, &p))
	require.Error(t, cabinetprofile.Fill(cabinetprofile.Input{Name: "Stations", Hours: bad}, &p))
}

// Every profile within the bounds is a configuration that a cabinet takes, and is refused
// with what is allowed outside of them.
func TestBoundsAreThoseOfCabinets(t *testing.T) {
	t.Parallel()
	in := func(session, sound, reopen int) error {
		x := cabinetprofile.Input{Name: "Stations", Session: session, Sound: sound, Reopen: reopen}
		if err := check.Input(&x); err != nil {
			return err
		}
		var p cloud.CabinetProfile
		require.NoError(t, cabinetprofile.Fill(x, &p))
		c := wire.Config{Version: 1, Layout: []wire.LayoutDoor{{Door: 1, Board: "A", Channel: 1}}, Codes: wire.CodeParams{MemoryKiB: 8, Passes: 1},
			Times: wire.Times{SessionS: p.Settings.SessionS, LeftOpenSoundS: p.Settings.LeftOpenSoundS, ReopenS: p.Settings.ReopenS}}
		require.NoError(t, c.Check())
		return nil
	}
	for _, good := range [][3]int{{60, 10, 5}, {1800, 3600, 600}, {0, 0, 0}} {
		require.NoError(t, in(good[0], good[1], good[2]), good)
	}
	for _, bad := range [][3]int{{59, 10, 5}, {1801, 10, 5}, {60, 9, 5}, {60, 3601, 5}, {60, 10, 4}, {60, 10, 601}, {-1, 10, 5}} {
		require.Error(t, in(bad[0], bad[1], bad[2]), bad)
	}
	body := cabinetprofile.Row(cloud.CabinetProfile{}, time.UTC)
	require.Equal(t, fmt.Sprint([]int{600, 120, 60}), fmt.Sprint([]int{body.Session, body.Sound, body.Reopen}), "defaults of cabinets")
}
