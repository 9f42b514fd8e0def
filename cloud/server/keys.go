package server

import (
	"context"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/store"
)

// Keys are the deployment's own secrets. They lie in one file of the data
// folder, mode 0600, made at the first start; the same file on every node.
type Keys struct {
	Signing []byte `json:"signing"` // seed of the Ed25519 key that signs device messages
	Next    []byte `json:"next"`    // seed of the key that will follow; devices pin both
	// Rotated is when Signing was taken into use, zero for the first one.
	Rotated time.Time `json:"rotated,omitzero"`
	Server  []byte    `json:"server"` // keys the digests of device secrets
	Seal    []byte    `json:"seal"`   // encrypts secrets in the database
	// The number of changes of the key that signs webhooks. A higher one on every
	// node takes the next key into use, which was published before, at their start.
	Hooks uint32 `json:"hooks,omitempty"`
}

const keysFile = "keys.json"

// LoadKeys reads the deployment's secrets from dir, making them when there are
// none.
func LoadKeys(dir string) (Keys, error) {
	path := filepath.Join(dir, keysFile)
	k, err := readKeys(path)
	if errors.Is(err, fs.ErrNotExist) {
		return MakeKeys(path)
	}
	return k, err
}

// KeysDigest names a keys file by its content, without giving it away.
func KeysDigest(raw []byte) ([]byte, error) {
	k, err := parseKeys(raw)
	if err != nil {
		return nil, err
	}
	return k.digest(), nil
}

// ErrKeysMissing says that the database belongs to keys that are not where they were.
var ErrKeysMissing = errors.New("the keys are missing")

// keys reads the deployment's secrets, and makes them where the database belongs to none.
// Error: ErrKeysMissing.
func (c Config) keys(ctx context.Context) (Keys, error) {
	if c.KeysFile != "" {
		return readKeys(c.KeysFile)
	}
	path := filepath.Join(c.Dir, keysFile)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		claimed, err := store.IsClaimed(ctx, store.Config{URL: c.Database, Dir: c.Dir, Logger: c.Log})
		if err != nil {
			return Keys{}, fmt.Errorf("open database: %w", err)
		}
		if claimed {
			return Keys{}, fmt.Errorf("%w: there is no %s, and new ones would be other keys than those that the database belongs to. Put your saved %[3]s back, or copy %[3]s from the data folder of a node that uses this database; nothing was written", ErrKeysMissing, path, keysFile)
		}
	}
	return LoadKeys(c.Dir)
}

// keysAge is how old a keys file is that was not made by a start that is under way.
const keysAge = time.Minute

// warnOfLoss warns where the keys in the data folder are older than the database, which a
// start has made anew.
func warnOfLoss(s *Server) {
	path := filepath.Join(s.cfg.Dir, keysFile)
	info, err := os.Stat(path)
	if s.cfg.KeysFile != "" || err != nil || time.Since(info.ModTime()) < keysAge {
		return
	}
	s.Lost = path
	s.log.Warn("the database is new, and the keys are older: if a cloud ran here before, its database is gone. Stop this one, take the new database away, and restore a backup (cloud restore)", "keys", path)
}

func readKeys(path string) (Keys, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return Keys{}, fmt.Errorf("read keys: %w", err)
	}
	k, err := parseKeys(b)
	if err != nil {
		return k, fmt.Errorf("read keys: %s is damaged: %w; put your saved copy of it in its place: what the database seals is read with no others", path, err)
	}
	return k, nil
}

func parseKeys(raw []byte) (k Keys, err error) {
	if err := json.Unmarshal(raw, &k); err != nil {
		return k, err
	}
	for name, v := range map[string][]byte{"signing": k.Signing, "next": k.Next, "server": k.Server, "seal": k.Seal} {
		if len(v) != 32 {
			return k, fmt.Errorf("%s must have 32 bytes, base64", name)
		}
	}
	return k, nil
}

// MakeKeys makes the secrets of a new deployment in a file that must not exist, mode 0600.
func MakeKeys(path string) (Keys, error) {
	var b [4][32]byte
	for i := range b {
		_, _ = rand.Read(b[i][:]) // never fails
	}
	k := Keys{Signing: b[0][:], Next: b[1][:], Server: b[2][:], Seal: b[3][:]}
	return k, WriteKeys(path, k)
}

// WriteKeys keeps secrets in a file that must not exist, mode 0600.
func WriteKeys(path string, k Keys) error {
	raw, err := json.MarshalIndent(k, "", "  ")
	if err != nil {
		return fmt.Errorf("encode keys: %w", err)
	}
	// O_EXCL: of two first starts at once one wins, the other reads its file.
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("keep keys: %w", err)
	}
	_, werr := f.Write(append(raw, '\n'))
	if err := errors.Join(werr, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("keep keys: %w", err)
	}
	return nil
}

// files signs addresses of files, chats the tokens of orders' recipients, links
// the tracking links.
func (k Keys) files() []byte { return k.derived("addresses of files") }
func (k Keys) chats() []byte { return k.derived("tokens of recipients") }

// setup derives one-time addresses; digest names this file without giving it away.
func (k Keys) setup() []byte  { return k.derived("set-up addresses") }
func (k Keys) digest() []byte { return k.derived("name of the keys file") }

// passkeys seals challenges.
func (k Keys) passkeys() []byte { return k.derived("challenges of passkeys") }

// signIn seals logins that are under way at a provider.
func (k Keys) signIn() []byte { return k.derived("logins at sign-in providers") }

// Links makes the secrets of recipients' links.
func (k Keys) Links() cloud.LinkKey { return k.derived("tracking links") }

func (k Keys) derived(purpose string) []byte {
	m := hmac.New(sha256.New, k.Server)
	m.Write([]byte(purpose))
	return m.Sum(nil)
}

// webhookKey signs webhooks (v1a).
func (k Keys) webhookKey() ed25519.PrivateKey { return k.hook(uint64(k.Hooks)) }

func (k Keys) hook(generation uint64) ed25519.PrivateKey {
	purpose := "webhook signatures"
	if generation > 0 {
		purpose += " " + strconv.FormatUint(generation, 10)
	}
	return ed25519.NewKeyFromSeed(k.derived(purpose))
}

// publishedHooks are the public parts of the key that signs webhooks, the next one,
// which receivers know before it is used, and the one before, which what is on its
// way may be signed with.
func (k Keys) publishedHooks() []ed25519.PublicKey {
	g := uint64(k.Hooks)
	out := []ed25519.PublicKey{k.hook(g).Public().(ed25519.PublicKey), k.hook(g + 1).Public().(ed25519.PublicKey)}
	if g > 0 {
		out = append(out, k.hook(g-1).Public().(ed25519.PublicKey))
	}
	return out
}

func (k Keys) signing() ed25519.PrivateKey { return ed25519.NewKeyFromSeed(k.Signing) }

// pinned are the public keys that devices trust.
func (k Keys) pinned() []ed25519.PublicKey {
	return []ed25519.PublicKey{k.signing().Public().(ed25519.PublicKey), ed25519.NewKeyFromSeed(k.Next).Public().(ed25519.PublicKey)}
}
