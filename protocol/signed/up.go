package signed

import (
	"crypto/ed25519"
	"crypto/rand"
	"fmt"

	"github.com/postern-io/postern/protocol/wire"
)

// ForUp is the purpose of what a device signs with its own key.
const ForUp Purpose = "postern/1/up"

// Keys of the signed messages: where a signature stands, and a batch's records.
const (
	keyBatchRecords    = 5
	keyBatchSignature  = 10
	keyStatusSignature = 17
)

// upProof is what a device signs. Kinds keep a status from passing for a batch.
type upProof struct {
	_       struct{} `cbor:",toarray"`
	Purpose Purpose
	Kind    string // batch, status, answer
	Device  string // device code
	Last    uint64 // sequence number of a batch's last record
	Bytes   []byte // the message without records and signature
}

// DeviceKey is a cabinet's own signing key. Its public half is registered at the
// cloud with a one-time token, so that the owner of a broker between them
// can neither invent nor change what the cabinet says. Safe for concurrent use.
type DeviceKey struct {
	device  string
	private ed25519.PrivateKey
}

// NewDeviceKey uses a 32-byte Ed25519 seed for the device of that code.
func NewDeviceKey(device string, seed []byte) (*DeviceKey, error) {
	if len(seed) != ed25519.SeedSize {
		return nil, fmt.Errorf("device key has %d bytes, want %d", len(seed), ed25519.SeedSize)
	}
	return &DeviceKey{device: device, private: ed25519.NewKeyFromSeed(seed)}, nil
}

// NewSeed makes a random seed and its public key, 32 bytes each.
func NewSeed() (seed, public []byte) {
	pub, private, _ := ed25519.GenerateKey(rand.Reader) // never fails
	return private.Seed(), pub
}

// Public is the half that the cloud knows, 32 bytes.
func (k *DeviceKey) Public() []byte {
	return append([]byte(nil), k.private.Public().(ed25519.PublicKey)...)
}

// SignBatch sets b's signature.
func (k *DeviceKey) SignBatch(b *wire.Batch) error {
	bare := *b
	bare.Records, bare.Signature = nil, nil
	p, err := batchProof(k.device, b.Last(), wire.MustEncode(&bare))
	if err != nil {
		return fmt.Errorf("sign batch: %w", err)
	}
	b.Signature = ed25519.Sign(k.private, p)
	return nil
}

// SignStatus sets st's signature.
func (k *DeviceKey) SignStatus(st *wire.Status) error {
	bare := *st
	bare.Signature = nil
	st.Signature = ed25519.Sign(k.private, proof(upProof{Kind: "status", Device: k.device, Bytes: wire.MustEncode(&bare)}))
	return nil
}

// SignAnswer signs a file that answers a diagnosis: where it goes, and its SHA-256.
func (k *DeviceKey) SignAnswer(path string, digest [32]byte) []byte {
	return ed25519.Sign(k.private, answerProof(k.device, path, digest))
}

// VerifyAnswer reports whether the device signed a file of that digest for that path.
func VerifyAnswer(public []byte, device, path string, digest [32]byte, signature []byte) bool {
	return verify(public, answerProof(device, path, digest), signature)
}

func answerProof(device, path string, digest [32]byte) []byte {
	return proof(upProof{Kind: "answer", Device: device, Bytes: append(digest[:], path...)})
}

// VerifyBatch reports whether the device signed this batch, as it came, whatever
// is wrong with its records. That they fit its head is for the caller to check.
func VerifyBatch(public []byte, device string, payload []byte) bool {
	f, ok := wire.PeekFrame(payload)
	if !ok {
		return false
	}
	p, err := batchProof(device, f.Last(), payload)
	return err == nil && verify(public, p, f.Signature)
}

// VerifyStatus reports whether the device signed this status, as it came.
func VerifyStatus(public []byte, device string, payload []byte, st *wire.Status) bool {
	bare, err := wire.Without(payload, keyStatusSignature)
	return err == nil && verify(public, proof(upProof{Kind: "status", Device: device, Bytes: bare}), st.Signature)
}

func batchProof(device string, last uint64, payload []byte) ([]byte, error) {
	bare, err := wire.Without(payload, keyBatchRecords, keyBatchSignature)
	if err != nil {
		return nil, err
	}
	return proof(upProof{Kind: "batch", Device: device, Last: last, Bytes: bare}), nil
}

func proof(p upProof) []byte {
	p.Purpose = ForUp
	return wire.MustEncode(p)
}

func verify(public, message, signature []byte) bool {
	return len(public) == ed25519.PublicKeySize && len(signature) == ed25519.SignatureSize &&
		ed25519.Verify(ed25519.PublicKey(public), message, signature)
}
