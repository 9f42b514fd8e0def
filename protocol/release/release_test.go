package release

import (
	"bytes"
	"crypto/ed25519"
	"encoding/hex"
	"flag"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/postern-io/postern/protocol/signed"
	"github.com/postern-io/postern/protocol/wire"
)

var update = flag.Bool("update", false, "write the golden file")

func signer(t testing.TB, seed byte) *signed.Signer {
	t.Helper()
	s, err := signed.NewSigner(ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, 32)))
	require.NoError(t, err)
	return s
}

func keys(s ...*signed.Signer) signed.Keys {
	var all []wire.PinnedKey
	for _, k := range s {
		all = append(all, k.Pinned())
	}
	return signed.PinnedKeys(all)
}

var manifest = Manifest{Product: Edge, Version: "1.4.0-rc.1", System: "linux", Arch: "arm64"}

func artefact(t testing.TB, s *signed.Signer, m Manifest, program []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, Write(&out, s, m, program))
	return out.Bytes()
}

// read is the whole way of a reader.
func read(file []byte, k signed.Keys) (m Manifest, program []byte, err error) {
	r := bytes.NewReader(file)
	if m, _, err = Read(r, k); err != nil {
		return m, nil, err
	}
	var out bytes.Buffer
	err = m.Copy(&out, r)
	return m, out.Bytes(), err
}

// Cabinets read these bytes for as long as they run: they never change.
func TestArtefactGoldenBytes(t *testing.T) {
	t.Parallel()
	name := filepath.Join("testdata", "golden.txt")
	have := hex.Dump(artefact(t, signer(t, 1), manifest, []byte("program")))
	if *update {
		require.NoError(t, os.WriteFile(name, []byte(have), 0o644))
	}
	want, err := os.ReadFile(name)
	require.NoError(t, err)
	require.Equal(t, string(want), have)
}

// No byte of an artefact can change, be missing or be added.
func TestEveryByteOfAnArtefactCounts(t *testing.T) {
	t.Parallel()
	s := signer(t, 1)
	whole := artefact(t, s, manifest, []byte("program"))
	m, program, err := read(whole, keys(signer(t, 2), s))
	require.NoError(t, err)
	require.Equal(t, "program", string(program))
	require.Equal(t, manifest.Version, m.Version)
	for i := range whole {
		bad := bytes.Clone(whole)
		bad[i] ^= 0x40
		_, _, err := read(bad, keys(s))
		require.Error(t, err, "byte %d", i)
		_, _, err = read(whole[:i], keys(s))
		require.ErrorIs(t, err, ErrArtefact, "cut at %d", i)
	}
	_, _, err = read(append(bytes.Clone(whole), 0), keys(s))
	require.ErrorIs(t, err, ErrArtefact)
	_, _, err = read(whole, keys(signer(t, 2)))
	require.ErrorIs(t, err, signed.ErrSignature)
	_, _, err = read(whole, nil)
	require.ErrorIs(t, err, signed.ErrSignature)
}

// The cloud's keys and other purposes sign no program.
func TestOnlyTheReleasePurposeSignsPrograms(t *testing.T) {
	t.Parallel()
	s := signer(t, 1)
	for _, p := range []signed.Purpose{signed.ForCommand, signed.ForConfig, signed.ForTime, signed.ForCodes, signed.ForQR, signed.ForReceipt} {
		m := manifest
		m.Size, m.Digest = 1, make([]byte, 32)
		envelope, err := s.Sign(p, m)
		require.NoError(t, err)
		_, err = Verify(envelope, keys(s))
		require.ErrorIs(t, err, signed.ErrSignature, p)
	}
}

func TestManifestsThatAreRefused(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*Manifest){
		"product": func(m *Manifest) { m.Product = "" }, "system": func(m *Manifest) { m.System = "../x" }, "arch": func(m *Manifest) { m.Arch = "ARM" },
		"no version": func(m *Manifest) { m.Version = "" }, "v": func(m *Manifest) { m.Version = "v1.0.0" }, "short": func(m *Manifest) { m.Version = "1.0" },
		"metadata": func(m *Manifest) { m.Version = "1.0.0+x" }, "path": func(m *Manifest) { m.Version = "1.0.0-../x" },
		"long": func(m *Manifest) { m.Version = "1.0.0-" + string(bytes.Repeat([]byte{'a'}, 64)) },
	} {
		m := manifest
		change(&m)
		require.ErrorIs(t, Write(io.Discard, signer(t, 1), m, []byte("x")), ErrArtefact, name)
	}
	require.ErrorIs(t, Write(io.Discard, signer(t, 1), manifest, nil), ErrArtefact)
}

// Versions are ordered as semantic versioning has it, and a program that is no release
// comes before all.
func TestVersionsAreOrdered(t *testing.T) {
	t.Parallel()
	ordered := []string{"", "0.0.1-rc.1", "0.0.1", "1.4.0-rc.2", "1.4.0-rc.10", "1.4.0", "1.10.0"}
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.IntRange(0, len(ordered)-1).Draw(t, "a"), rapid.IntRange(0, len(ordered)-1).Draw(t, "b")
		require.Equal(t, a > b, IsNewer(ordered[a], ordered[b]), "%q %q", ordered[a], ordered[b])
	})
	require.Equal(t, "1.4.0", VersionOf("v1.4.0"))
	require.Empty(t, VersionOf("dc1f5b96"))
	require.Empty(t, VersionOf("unknown"))
}

func FuzzRead(f *testing.F) {
	s := signer(f, 1)
	whole := artefact(f, s, manifest, []byte("program"))
	f.Add(whole)
	f.Add(whole[:20])
	f.Add([]byte(magic))
	f.Fuzz(func(t *testing.T, file []byte) {
		m, program, err := read(file, keys(s))
		if err == nil && (string(program) != "program" || m.Version != manifest.Version) {
			t.Fatal("another program than the signed one was accepted")
		}
	})
}
