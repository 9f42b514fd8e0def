package e2e

import (
	"context"
	"errors"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/internal/ring"
	"github.com/postern-io/postern/protocol/wire"
)

// publish gives a cabinet a new configuration.
func (w *world) publish(c *cabinet, change func(*wire.Config)) uint64 {
	w.t.Helper()
	var version uint64
	require.NoError(w.t, w.cloud.Store.Decide(context.Background(), w.box.Devices[0].DeviceID, func(v cloud.View) (*cloud.Changes, error) {
		d, err := v.Device(w.box.Devices[0].DeviceID)
		if err != nil {
			return nil, err
		}
		var conf wire.Config
		if err := wire.Decode(d.Config, &conf); err != nil {
			return nil, err
		}
		change(&conf)
		d.ConfigVersion++
		conf.Version, version = d.ConfigVersion, d.ConfigVersion
		d.Config = wire.MustEncode(conf)
		return &cloud.Changes{DeviceChanges: cloud.DeviceChanges{Devices: []cloud.Device{d}}}, nil
	}))
	w.awaits("configuration applied", time.Minute, func() bool { return c.agent.Loop().State().Config.Version == version })
	return version
}

// "It goes back on its own, for addresses and keys only, when these have not
// connected once within 10 minutes", restarts or not; with a good address it stays.
func TestConfigurationWithADeadAddressGoesBackByItself(t *testing.T) {
	ring.SkipUnlessCheck(t, "edge/agent goes back from addresses that fail")
	story(t, func(t *testing.T, w *world, c *cabinet) {
		c.halt()
		c.trial = 20 * time.Minute // settable
		c.reach = func(broker *url.URL) error {
			if broker.Hostname() == "dead" {
				return errors.New("no such host")
			}
			return nil
		}
		c.start()
		w.ready(c)
		w.publish(c, func(conf *wire.Config) {
			conf.Brokers, conf.Texts = []string{"ssl://dead:8883"}, map[string]string{"hello": "hi"}
		})
		for range 3 {
			time.Sleep(5 * time.Minute)
			c.restart(time.Minute)
		}
		results := func() (out []string) {
			c.drained()
			told, _ := kept[wire.ConfigApplied](w, wire.KindConfigApplied)
			for _, a := range told {
				out = append(out, a.Result)
			}
			return out
		}
		require.Equal(t, []string{"ok", "ok"}, results(), "still trying, and not cut off meanwhile")
		w.awaits("went back", 10*time.Minute, func() bool { return len(results()) == 3 })
		require.Contains(t, results()[2], "went back")
		require.Equal(t, "hi", c.agent.Loop().State().Config.Texts["hello"])
		w.ready(c)
		out := w.begin("R-1", "PK-1")
		c.close(out)
		w.delivered("R-1")

		w.publish(c, func(conf *wire.Config) { conf.Brokers = []string{"ssl://alive:8883"} })
		w.awaits("at the new address", time.Minute, func() bool { return c.agent.Link().Broker() == "ssl://alive:8883" })
		w.ready(c)
		time.Sleep(time.Hour)
		// A session that is cut in its first minute goes on at the next address, which
		// is that of the secrets file: only that nothing went back is certain.
		require.Len(t, results(), 4)
		c.restart(time.Second)
		w.ready(c)
		require.Equal(t, "ssl://alive:8883", c.agent.Link().Broker())
		rows, err := w.cloud.Store.ListDeviceExceptions(context.Background(), w.box.Devices[0].DeviceID, 100)
		require.NoError(t, err)
		require.Len(t, rows, 1, "that it went back is for staff")
		require.Equal(t, cloud.DevConfigRefused, rows[0].Type)
		require.False(t, rows[0].ClosedAt.IsZero(), "until a later configuration is applied")
	})
}
