package wire

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func samplePass() Pass {
	return Pass{DeviceCode: "CAB-1", ID: bytes.Repeat([]byte{6}, PassIDSize), Kind: OpenDeposit, Doors: []uint{2, 3}, NotBefore: 1, NotAfter: 1 + int64(MaxCourierPass),
		DeliveryRef: "LD-1", Packages: map[uint][]string{2: {"PK-1"}, 3: {"PK-2"}}, CodeNumber: 7, Generation: 2}
}

func staffPass() Pass {
	return Pass{DeviceCode: "CAB-1", ID: bytes.Repeat([]byte{6}, PassIDSize), Kind: OpenStaff, Doors: []uint{2}, NotBefore: 1, NotAfter: 1 + int64(MaxStaffPass)}
}

func TestPassesAreChecked(t *testing.T) {
	t.Parallel()
	require.NoError(t, samplePass().Check())
	require.NoError(t, staffPass().Check())
	for name, change := range map[string]func(*Pass){
		"no cabinet":             func(p *Pass) { p.DeviceCode = "" },
		"short id":               func(p *Pass) { p.ID = p.ID[1:] },
		"pickup":                 func(p *Pass) { p.Kind = OpenPickup },
		"no doors":               func(p *Pass) { p.Doors, p.Packages = nil, nil },
		"door twice":             func(p *Pass) { p.Doors = []uint{2, 3, 2} },
		"door 0":                 func(p *Pass) { p.Doors = []uint{2, 3, 0} },
		"eleven doors":           func(p *Pass) { p.Doors = []uint{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11} },
		"packages of other door": func(p *Pass) { p.Packages = map[uint][]string{4: {"PK-1"}} },
		"no packages":            func(p *Pass) { p.Packages = nil },
		"many packages":          func(p *Pass) { p.Packages = map[uint][]string{2: make([]string, MaxPassPackages+1)} },
		"no delivery":            func(p *Pass) { p.DeliveryRef = "" },
		"no entry":               func(p *Pass) { p.CodeNumber = 0 },
		"too long":               func(p *Pass) { p.NotAfter++ },
		"ends before it begins":  func(p *Pass) { p.NotAfter = p.NotBefore },
		"from the beginning":     func(p *Pass) { p.NotBefore, p.NotAfter = -int64(time.Hour), 1 },
		"overflow":               func(p *Pass) { p.NotBefore, p.NotAfter = -1<<63, 1<<62 },
		"staff with a delivery":  func(p *Pass) { *p = staffPass(); p.DeliveryRef = "LD-1" },
		"staff for an hour":      func(p *Pass) { *p = staffPass(); p.NotAfter = int64(time.Hour) },
	} {
		p := samplePass()
		change(&p)
		require.ErrorIs(t, p.Check(), ErrBad, name)
	}
}

func FuzzPass(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		var p Pass
		if err := Decode(b, &p); err != nil {
			require.ErrorIs(t, err, ErrBad)
			return
		}
		if err := p.Check(); err == nil {
			require.LessOrEqual(t, p.NotAfter-p.NotBefore, int64(MaxCourierPass))
			require.Len(t, p.ID, PassIDSize)
		}
		again(t, p)
	})
}
