// Package release reads and writes update artefacts: a program with a manifest that the
// key of a release has signed. The manifest comes first, so that nothing of a file
// without a good signature is kept.
//
//	0   8 bytes  "PSTNREL1"
//	8   2 bytes  length of the envelope, big-endian, 1 to 1024
//	10           envelope: COSE_Sign1 over the manifest, for the purpose postern/1/release
//	…            program, as long as the manifest says, and nothing behind it
//
// No function keeps state, and all are safe for concurrent use. What a program does, and
// whether its version is wanted, is not judged here.
package release

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"golang.org/x/mod/semver"

	"github.com/postern-io/postern/protocol/signed"
)

// Limits of an artefact.
const (
	MaxEnvelope = 1 << 10
	MaxProgram  = 256 << 20 // bytes
	maxVersion  = 64        // characters
)

// Edge is the product that a cabinet runs.
const Edge = "edge"

const magic = "PSTNREL1"

// ErrArtefact says that a file is no artefact, or not whole.
var ErrArtefact = errors.New("not a whole update artefact")

// Manifest describes a program.
type Manifest struct {
	Product string `cbor:"1,keyasint"`
	Version string `cbor:"2,keyasint"` // semantic version 2.0.0 without build metadata, such as 1.4.0
	System  string `cbor:"3,keyasint"` // as Go names it: linux
	Arch    string `cbor:"4,keyasint"` // as Go names it: amd64, arm64, arm
	Size    int64  `cbor:"5,keyasint"` // bytes, 1 to MaxProgram
	Digest  []byte `cbor:"6,keyasint"` // SHA-256 of the program
}

var name = regexp.MustCompile(`^[a-z0-9]{1,16}$`)

// Check reports what is wrong with m. A version that passes is a file's name, too.
func (m Manifest) Check() error {
	switch {
	case !name.MatchString(m.Product), !name.MatchString(m.System), !name.MatchString(m.Arch):
		return fmt.Errorf("%w: product %q, system %q and arch %q must be 1 to 16 of a-z and 0-9", ErrArtefact, m.Product, m.System, m.Arch)
	case !IsVersion(m.Version):
		return fmt.Errorf("%w: version %q must be a semantic version without build metadata, such as 1.4.0, of at most %d characters", ErrArtefact, m.Version, maxVersion)
	case m.Size < 1 || m.Size > MaxProgram:
		return fmt.Errorf("%w: size %d must be 1 to %d bytes", ErrArtefact, m.Size, MaxProgram)
	case len(m.Digest) != sha256.Size:
		return fmt.Errorf("%w: the digest has %d bytes, want %d", ErrArtefact, len(m.Digest), sha256.Size)
	}
	return nil
}

// IsVersion reports whether a text is a version that a manifest may have.
func IsVersion(version string) bool {
	v := "v" + version
	return len(version) <= maxVersion && semver.IsValid(v) && semver.Canonical(v) == v
}

// VersionOf is the version that a program says of itself, v1.4.0, as a manifest has it, and
// "" for that of a program that is no release.
func VersionOf(program string) string {
	if v := strings.TrimPrefix(program, "v"); IsVersion(v) {
		return v
	}
	return ""
}

// IsNewer reports whether version a comes after b, by semantic versioning. "" comes before
// all.
func IsNewer(a, b string) bool { return semver.Compare("v"+a, "v"+b) > 0 }

// Write writes an artefact: m, with size and digest of the program, signed, and the program.
func Write(w io.Writer, signer *signed.Signer, m Manifest, program []byte) error {
	sum := sha256.Sum256(program)
	m.Size, m.Digest = int64(len(program)), sum[:]
	if err := m.Check(); err != nil {
		return err
	}
	envelope, err := signer.Sign(signed.ForRelease, m)
	if err != nil {
		return err
	}
	_, err = io.Copy(w, io.MultiReader(bytes.NewReader(Head(envelope)), bytes.NewReader(program)))
	return err
}

// Head is what comes before the program in an artefact with this envelope.
func Head(envelope []byte) []byte {
	head := binary.BigEndian.AppendUint16([]byte(magic), uint16(len(envelope)))
	return append(head, envelope...)
}

// Read reads the head of an artefact and verifies it by keys; the program is left in r. The
// errors are ErrArtefact, signed.ErrSignature and those of r.
func Read(r io.Reader, keys signed.Keys) (m Manifest, envelope []byte, err error) {
	var head [len(magic) + 2]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return m, nil, cutOff(err)
	}
	length := int(binary.BigEndian.Uint16(head[len(magic):]))
	if string(head[:len(magic)]) != magic || length < 1 || length > MaxEnvelope {
		return m, nil, fmt.Errorf("%w: it does not begin as one", ErrArtefact)
	}
	envelope = make([]byte, length)
	if _, err := io.ReadFull(r, envelope); err != nil {
		return m, nil, cutOff(err)
	}
	m, err = Verify(envelope, keys)
	return m, envelope, err
}

// Verify opens the manifest of an envelope by keys.
func Verify(envelope []byte, keys signed.Keys) (m Manifest, err error) {
	if err := keys.Open(signed.ForRelease, envelope, &m); err != nil {
		return m, fmt.Errorf("manifest of the update: %w", err)
	}
	return m, m.Check()
}

// Copy copies the program from r, which ends with it, to w. On nil it is the program that m
// describes; on error some of it may have been written.
func (m Manifest) Copy(w io.Writer, r io.Reader) error {
	sum := sha256.New()
	n, err := io.CopyN(io.MultiWriter(w, sum), r, m.Size)
	if err == nil {
		var behind [1]byte
		if _, err := io.ReadFull(r, behind[:]); err == nil {
			return fmt.Errorf("%w: more than the %d bytes of its program", ErrArtefact, m.Size)
		} else if !errors.Is(err, io.EOF) {
			return err
		}
	}
	switch {
	case err != nil && n < m.Size:
		return cutOff(err)
	case err != nil:
		return err
	case !bytes.Equal(sum.Sum(nil), m.Digest):
		return fmt.Errorf("%w: the program is not the one that was signed", ErrArtefact)
	}
	return nil
}

// cutOff names the end of a file that comes too early.
func cutOff(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: it is cut off", ErrArtefact)
	}
	return err
}
