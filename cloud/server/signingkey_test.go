package server_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/server"
	"github.com/postern-io/postern/protocol/wire"
)

// Who is known to trust the next key follows from configurations that were taken; a device of
// HTTP has the keys of its enrolment. Publishing ends at any device and goes on.
func TestKeyHolders(t *testing.T) {
	t.Parallel()
	ctx, dir := t.Context(), t.TempDir()
	open := func() *server.Server {
		s, err := server.New(ctx, server.Config{Dir: dir})
		require.NoError(t, err)
		return s
	}
	s := open()
	cfg := server.SandboxConfig{Codes: wire.CodeParams{MemoryKiB: 8, Passes: 1}}
	for _, code := range []string{"CAB-1", "CAB-2", "CAB-3", "CAB-4"} {
		cfg.Devices = append(cfg.Devices, server.SandboxDevice{Code: code, Name: code, Type: "smart_locker", Layout: []wire.LayoutDoor{{Door: 1, Board: "A", Channel: 1, Size: "M"}}})
	}
	box, err := s.Sandbox(ctx, cfg)
	require.NoError(t, err)
	change := func(i int, f func(*cloud.Device)) {
		require.NoError(t, s.Store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
			d, err := v.Device(box.Devices[i].DeviceID)
			f(&d)
			return &cloud.Changes{DeviceChanges: cloud.DeviceChanges{Devices: []cloud.Device{d}}}, err
		}))
	}
	applied := func(i int, version uint64) {
		require.NoError(t, s.Store.Decide(ctx, 0, func(cloud.View) (*cloud.Changes, error) {
			return &cloud.Changes{DeviceChanges: cloud.DeviceChanges{Seen: []cloud.DeviceSeen{{DeviceID: box.Devices[i].DeviceID, Applied: version}}}}, nil
		}))
	}
	behind := func() (out []server.KeyHolder) {
		list, err := server.ListKeyHolders(ctx, s)
		require.NoError(t, err)
		for _, h := range list {
			out = append(out, server.KeyHolder{Code: h.Code, Unpublished: h.Unpublished, EnrolsAgain: h.EnrolsAgain})
		}
		return out
	}
	change(1, func(d *cloud.Device) { d.Protocol = cloud.ProtocolHTTP })
	change(2, func(d *cloud.Device) { d.RetiredAt = time.Now().UTC() })
	change(3, func(d *cloud.Device) { d.SecretMAC, d.CutOffAt = nil, time.Now().UTC() })
	require.Equal(t, []server.KeyHolder{{Code: "CAB-1"}}, behind(), "it has not taken its configuration")
	applied(0, 1)
	require.Empty(t, behind())

	require.NoError(t, server.ReplaceKeys(filepath.Join(dir, "keys.json"), s.Keys.Rotate(time.Now())))
	require.NoError(t, s.Broker.Close())
	require.NoError(t, s.Store.Close())
	s = open()
	require.Equal(t, []server.KeyHolder{{Code: "CAB-1", Unpublished: true}, {Code: "CAB-2", EnrolsAgain: true}}, behind())
	done, cancel := context.WithCancel(ctx)
	cancel()
	_, err = server.PublishKeys(done, s)
	require.Error(t, err)
	n, err := server.PublishKeys(ctx, s)
	require.NoError(t, err)
	require.Equal(t, 2, n, "the one that enrols again too")
	require.Equal(t, []server.KeyHolder{{Code: "CAB-1"}, {Code: "CAB-2", EnrolsAgain: true}}, behind())
	applied(0, 2)
	require.Equal(t, []server.KeyHolder{{Code: "CAB-2", EnrolsAgain: true}}, behind())
	applied(0, 1)
	require.Len(t, behind(), 2, "what the device says counts")
	require.NoError(t, s.Broker.Close())
	require.NoError(t, s.Store.Close())
}

// A host that still has the keys file from before a rotation brings no former key back.
func TestFormerKeysAreNotPublished(t *testing.T) {
	t.Parallel()
	ctx, dir := t.Context(), t.TempDir()
	s, err := server.New(ctx, server.Config{Dir: dir})
	require.NoError(t, err)
	box, err := s.Sandbox(ctx, server.SandboxConfig{Codes: wire.CodeParams{MemoryKiB: 8, Passes: 1}, Devices: []server.SandboxDevice{
		{Code: "CAB-1", Name: "CAB-1", Type: "smart_locker", Layout: []wire.LayoutDoor{{Door: 1, Board: "A", Channel: 1, Size: "M"}}}}})
	require.NoError(t, err)
	former := s.Keys
	s.Keys = former.Rotate(time.Now())
	n, err := server.PublishKeys(ctx, s)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	config := func() (d cloud.Device) {
		require.NoError(t, s.Store.Look(ctx, func(v cloud.View) (err error) { d, err = v.Device(box.Devices[0].DeviceID); return err }))
		return d
	}
	has := config()
	s.Keys = former
	_, err = server.PublishKeys(ctx, s)
	require.ErrorIs(t, err, server.ErrFormerKeys)
	require.Equal(t, has.Config, config().Config)
	require.NoError(t, s.Broker.Close())
	require.NoError(t, s.Store.Close())
}

// A file of keys is the former or the next one, also where it cannot be replaced.
func TestReplaceKeysIsWholeOrNot(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "keys.json")
	k, err := server.MakeKeys(path)
	require.NoError(t, err)
	next := k.Rotate(time.Now())
	require.NoError(t, server.ReplaceKeys(path, next))
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	var read server.Keys
	require.NoError(t, json.Unmarshal(raw, &read))
	require.Equal(t, next, read)
	folder := filepath.Join(dir, "folder.json")
	require.NoError(t, os.MkdirAll(filepath.Join(folder, "x"), 0o700))
	require.Error(t, server.ReplaceKeys(folder, next))
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, 2, "nothing is left over")
	require.Error(t, server.WriteKeys(path, next), "it exists")
}
