package backup

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"time"

	"filippo.io/age"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/object"
	"github.com/postern-io/postern/cloud/store"
)

// RestoreConfig says what a cloud is made from and where.
type RestoreConfig struct {
	Source object.Store // backups
	ID     string       // of the backup; empty: the newest of FindNewest
	// The keys file comes from Keys, or is decrypted by Identities, or lies at KeysFile
	// already.
	Keys       []byte
	Identities []age.Identity
	// KeysDigest computes what names a keys file without giving it away, to be compared with
	// Manifest.KeysDigest; nil: it is not compared.
	KeysDigest func(keys []byte) ([]byte, error)
	KeysFile   string       // where it is kept
	Database   store.Config // the place of the database, which must be empty; it needs no Box
	Files      object.Store // of uploaded files
	// Progress is called after each file; nil: not.
	Progress func(done, all int)
}

// Errors of keys files in a restore.
var (
	ErrKeys      = errors.New("the keys file is needed: it is not in the backup, or no identity was given that decrypts it")
	ErrOtherKeys = errors.New("these are not the keys of the backup")
)

// Restore makes a cloud from a backup: keys, files, and last the database, so that one that
// was interrupted is not taken for a cloud and can be made again. Errors: ErrNone,
// ErrUnknown, ErrDamaged, ErrNewer, ErrKeys, ErrOtherKeys, store.ErrNotEmpty.
func Restore(ctx context.Context, cfg RestoreConfig) (m Manifest, err error) {
	if cfg.ID == "" {
		m, _, err = FindNewest(ctx, cfg.Source, time.Now())
	} else {
		m, err = Find(ctx, cfg.Source, cfg.ID)
	}
	if err != nil {
		return m, err
	}
	empty, err := store.IsEmpty(ctx, cfg.Database)
	if err == nil && !empty {
		err = store.ErrNotEmpty
	}
	if err != nil {
		return m, err
	}
	// Read once before anything is written.
	if _, err := readPart(ctx, cfg.Source, m.ID, databaseName, m.Database, io.Discard); err != nil {
		return m, err
	}
	files, err := readFiles(ctx, cfg.Source, m)
	if err != nil {
		return m, err
	}
	if err := cfg.restoreKeys(ctx, m); err != nil {
		return m, err
	}
	if err := cfg.restoreFiles(ctx, files); err != nil {
		return m, err
	}
	return m, openDatabase(ctx, cfg.Source, m, func(r io.Reader) error {
		return store.LoadDump(ctx, cfg.Database, m.Dump, m.TakenAt, r)
	})
}

// restoreKeys writes the keys file, unless the same one is there.
func (cfg RestoreConfig) restoreKeys(ctx context.Context, m Manifest) error {
	have, err := os.ReadFile(cfg.KeysFile)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("read keys file: %w", err)
	}
	there := err == nil
	keys := cfg.Keys
	if keys == nil && m.Keys != nil && len(cfg.Identities) > 0 {
		if keys, err = cfg.decryptKeys(ctx, m); err != nil {
			return err
		}
	}
	if keys == nil && !there {
		return ErrKeys
	}
	if err := cfg.checkKeys(m, keys, have); err != nil {
		return err
	}
	switch {
	case keys == nil:
		return nil
	case there && !sameKeys(have, keys):
		return fmt.Errorf("%s is there and is another one; move it away", cfg.KeysFile)
	case there:
		return nil
	}
	if err := writeSynced(cfg.KeysFile, keys); err != nil {
		return fmt.Errorf("write keys file: %w", err)
	}
	return nil
}

// checkKeys compares keys, or those that are there already, with the backup. Error:
// ErrOtherKeys.
func (cfg RestoreConfig) checkKeys(m Manifest, keys, have []byte) error {
	if cfg.KeysDigest == nil || len(m.KeysDigest) == 0 {
		return nil
	}
	from := "the keys file that was given"
	if keys == nil {
		keys, from = have, cfg.KeysFile
	}
	digest, err := cfg.KeysDigest(keys)
	if err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	if !bytes.Equal(digest, m.KeysDigest) {
		return fmt.Errorf("%w %s: %s; nothing was written. Use the keys.json of the cloud that the backup is of", ErrOtherKeys, m.ID, from)
	}
	return nil
}

// sameKeys reports whether two keys files hold the same, however they are written.
func sameKeys(a, b []byte) bool {
	var x, y map[string]any
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return bytes.Equal(a, b)
	}
	return reflect.DeepEqual(x, y)
}

// writeSynced makes a file that survives a power cut. Error: os.ErrExist.
func writeSynced(name string, body []byte) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(body)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return errors.Join(err, os.Remove(name))
	}
	dir, err := os.Open(filepath.Dir(name))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

func (cfg RestoreConfig) decryptKeys(ctx context.Context, m Manifest) ([]byte, error) {
	var sealed bytes.Buffer
	if _, err := readPart(ctx, cfg.Source, m.ID, keysName, *m.Keys, &sealed); err != nil {
		return nil, err
	}
	r, err := age.Decrypt(&sealed, cfg.Identities...)
	if err != nil {
		return nil, fmt.Errorf("decrypt keys file: %w", err)
	}
	keys, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("decrypt keys file: %w", err)
	}
	return keys, nil
}

func (cfg RestoreConfig) restoreFiles(ctx context.Context, files *fileList) error {
	done := 0
	for _, name := range slices.Sorted(maps.Keys(files.list)) {
		c, err := object.Copy(ctx, cfg.Source, contents+name, cfg.Files, name)
		if errors.Is(err, cloud.ErrNotFound) {
			return fmt.Errorf("%w: the file %s is not there", ErrDamaged, name)
		}
		if err != nil {
			return fmt.Errorf("restore file %s: %w", name, err)
		}
		if hex.EncodeToString(c.SHA256[:]) != files.list[name].SHA256 {
			return fmt.Errorf("%w: the file %s is not what was written", ErrDamaged, name)
		}
		if done++; cfg.Progress != nil {
			cfg.Progress(done, len(files.list))
		}
	}
	return nil
}
