package signed

import (
	"bytes"
	"crypto/ed25519"
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/protocol/wire"
)

func upBatch() wire.Batch {
	e := wire.Epoch(bytes.Repeat([]byte{1}, 16))
	record := wire.MustEncode(wire.Record{Kind: wire.KindHealth, At: 1, Boot: 1, Mono: 2, Body: wire.MustEncode(wire.Health{})})
	return wire.Batch{Version: wire.Version, Epoch: e, First: 1, Records: []wire.Raw{record}, Sent: wire.Sample{Boot: 1, Mono: 3, Wall: 4}, PrevEpoch: &e,
		Head: wire.FirstHead(e, 0).Next(record), Boots: map[uint64]wire.BootSync{1: {Mono: 1}}}
}

func upStatus() wire.Status {
	return wire.Status{State: wire.Online, At: 1, Boot: 2, Epoch: wire.Epoch{1}, Nonce: []byte{9}, Doors: []wire.DoorStatus{{Door: 1, State: wire.DoorLocked}},
		Count: 3, Snapshot: 1, Contents: map[uint]string{1: "LD-1"}, Generation: 4, Lost: true}
}

// Whatever byte of a message changes, its signature does not verify any more,
// unless the message cannot be read at all. Records are the head's.
func TestSignedMessagesCannotBeChanged(t *testing.T) {
	t.Parallel()
	key, err := NewDeviceKey("CAB-1", bytes.Repeat([]byte{7}, 32))
	require.NoError(t, err)
	b, st := upBatch(), upStatus()
	require.NoError(t, key.SignBatch(&b))
	require.NoError(t, key.SignStatus(&st))
	batch, status := wire.MustEncode(&b), wire.MustEncode(&st)
	require.True(t, VerifyBatch(key.Public(), "CAB-1", batch))
	require.True(t, VerifyStatus(key.Public(), "CAB-1", status, &st))
	require.False(t, VerifyBatch(key.Public(), "CAB-2", batch))
	require.False(t, VerifyStatus(key.Public(), "CAB-2", status, &st))
	_, other := NewSeed()
	require.False(t, VerifyBatch(other, "CAB-1", batch))
	require.False(t, VerifyStatus(nil, "CAB-1", status, &st))
	for i := range batch {
		bad := bytes.Clone(batch)
		bad[i] ^= 1
		if d, err := wire.DecodeBatch(bad); err == nil && bytes.Equal(d.Records[0], b.Records[0]) {
			require.False(t, VerifyBatch(key.Public(), "CAB-1", bad), "byte %d", i)
		}
	}
	for i := range status {
		bad := bytes.Clone(status)
		bad[i] ^= 1
		if d, err := wire.DecodeStatus(bad); err == nil {
			require.False(t, VerifyStatus(key.Public(), "CAB-1", bad, d), "byte %d", i)
		}
	}
	st.Signature, b.Signature = b.Signature, st.Signature
	require.False(t, VerifyBatch(key.Public(), "CAB-1", wire.MustEncode(&b)))
	require.False(t, VerifyStatus(key.Public(), "CAB-1", status, &st))
}

// A key that is published later does not break what is signed today: what is
// unknown is covered as it came.
func TestUnknownKeysAreCoveredBySignatures(t *testing.T) {
	t.Parallel()
	key, err := NewDeviceKey("CAB-1", bytes.Repeat([]byte{7}, 32))
	require.NoError(t, err)
	st := upStatus()
	raw := map[uint64]wire.Raw{}
	require.NoError(t, wire.Decode(wire.MustEncode(&st), &raw))
	raw[40] = wire.MustEncode("later")
	st.Signature = sign(key, wire.MustEncode(raw))
	raw[keyStatusSignature] = wire.MustEncode(st.Signature)
	payload := wire.MustEncode(raw)
	d, err := wire.DecodeStatus(payload)
	require.NoError(t, err)
	require.True(t, VerifyStatus(key.Public(), "CAB-1", payload, d))
}

func sign(k *DeviceKey, bare []byte) []byte {
	return ed25519.Sign(k.private, proof(upProof{Kind: "status", Device: k.device, Bytes: bare}))
}

// Ed25519 is deterministic: these signatures may never change.
func TestUpSignaturesGoldenBytes(t *testing.T) {
	t.Parallel()
	key, err := NewDeviceKey("CAB-1", bytes.Repeat([]byte{7}, 32))
	require.NoError(t, err)
	b, st := upBatch(), upStatus()
	require.NoError(t, key.SignBatch(&b))
	require.NoError(t, key.SignStatus(&st))
	require.Equal(t, goldenBatch, hex.EncodeToString(b.Signature))
	require.Equal(t, goldenStatus, hex.EncodeToString(st.Signature))
}

const (
	goldenBatch  = "f84a0d3d201bdb463dd275d9a40e2e166fc41b4cea12ded75d1396a8b77ed388538afb454138f6d611450168fa97b9923ed63d6d98446265f6a859a3afd20b05"
	goldenStatus = "81b63b09d7095e9e18a74d499f3f24820dd1043070c86054716f128bb571194029729c86fff45710fd11b981b606b495239f7547529b54a030d649bd21bcea0a"
)

func FuzzVerify(f *testing.F) {
	key, err := NewDeviceKey("CAB-1", bytes.Repeat([]byte{7}, 32))
	require.NoError(f, err)
	b, st := upBatch(), upStatus()
	require.NoError(f, key.SignBatch(&b))
	require.NoError(f, key.SignStatus(&st))
	f.Add(wire.MustEncode(&b))
	f.Add(wire.MustEncode(&st))
	f.Fuzz(func(t *testing.T, p []byte) {
		if d, err := wire.DecodeStatus(p); err == nil && VerifyStatus(key.Public(), "CAB-1", p, d) && d.Count != st.Count {
			t.Fatalf("accepted a status that was not signed: %x", p)
		}
		if d, err := wire.DecodeBatch(p); err == nil && VerifyBatch(key.Public(), "CAB-1", p) && d.Head != b.Head {
			t.Fatalf("accepted a batch that was not signed: %x", p)
		}
	})
}

// An answer's signature is for one device, one address and one file.
func TestSignedAnswersCannotBeMoved(t *testing.T) {
	t.Parallel()
	key, err := NewDeviceKey("CAB-1", bytes.Repeat([]byte{7}, 32))
	require.NoError(t, err)
	good := key.SignAnswer("/x", [32]byte{1})
	require.True(t, VerifyAnswer(key.Public(), "CAB-1", "/x", [32]byte{1}, good))
	_, other := NewSeed()
	require.False(t, VerifyAnswer(other, "CAB-1", "/x", [32]byte{1}, good))
	require.False(t, VerifyAnswer(key.Public(), "CAB-2", "/x", [32]byte{1}, good))
	require.False(t, VerifyAnswer(key.Public(), "CAB-1", "/y", [32]byte{1}, good))
	require.False(t, VerifyAnswer(key.Public(), "CAB-1", "/x", [32]byte{2}, good))
	require.False(t, VerifyAnswer(key.Public(), "CAB-1", "/x", [32]byte{1}, nil))
	st := upStatus()
	require.NoError(t, key.SignStatus(&st))
	require.False(t, VerifyAnswer(key.Public(), "CAB-1", "/x", [32]byte{1}, st.Signature))
}
