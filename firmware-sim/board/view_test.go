package board

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/protocol/lockbus"
)

func TestTheViewShowsDoorsLocksAndBoxesAsTheyAre(t *testing.T) {
	t.Parallel()
	onBench(t, small(lockbus.CU48), func(c *Cabinet, _ *master) {
		require.True(t, c.View().Powered)
		for _, d := range c.View().Doors {
			require.Equal(t, DoorView{Number: d.Number, Items: []string{}}, d)
		}
		require.ErrorIs(t, c.Put(1, "PK-1"), ErrShut)
		require.NoError(t, c.Force(1))
		require.NoError(t, c.Put(1, "PK-1"))
		require.NoError(t, c.Jam(2))
		c.PowerOff()
		v := c.View()
		require.False(t, v.Powered)
		require.Equal(t, DoorView{Number: 1, Open: true, Items: []string{"PK-1"}}, v.Doors[0])
		require.Equal(t, DoorView{Number: 2, Jammed: true, Items: []string{}}, v.Doors[1])
		v.Doors[0].Items[0] = "changed"
		require.Equal(t, []string{"PK-1"}, c.View().Doors[0].Items, "a view is the caller's own")
		c.PowerOn()
		require.NoError(t, c.CloseDoor(1))
		require.NoError(t, c.Free(2))
		time.Sleep(time.Second)
		v = c.View()
		require.True(t, v.Powered)
		require.Equal(t, DoorView{Number: 1, Items: []string{"PK-1"}}, v.Doors[0])
		require.False(t, v.Doors[1].Jammed)
		last := c.Newest(2, Opened, Closed, ItemIn)
		require.Equal(t, []FactKind{ItemIn, Closed}, []FactKind{last[0].Kind, last[1].Kind})
		require.Len(t, c.Newest(9, Opened), 1)
		require.Empty(t, c.Newest(9, ItemOut))

		// A hand takes out through an open door only, and takes all.
		items, err := c.TakeOut(1)
		require.ErrorIs(t, err, ErrShut)
		require.Empty(t, items)
		require.NoError(t, c.Force(1))
		require.NoError(t, c.Put(1, "PK-2"))
		items, err = c.TakeOut(1)
		require.NoError(t, err)
		require.Equal(t, []string{"PK-1", "PK-2"}, items)
		require.Empty(t, c.View().Doors[0].Items)
	})
}
