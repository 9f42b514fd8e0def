package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"filippo.io/age"

	"github.com/postern-io/postern/cloud/backup"
	"github.com/postern-io/postern/cloud/object"
	"github.com/postern-io/postern/cloud/server"
	"github.com/postern-io/postern/cloud/store"
	"github.com/postern-io/postern/cmd/internal/cli"
)

// backupSettings say where backups go and how many are kept.
type backupSettings struct {
	Folder    string         `yaml:"folder" json:"folder"`
	Bucket    bucketSettings `yaml:"bucket" json:"bucket"`
	Every     string         `yaml:"every" json:"every"`
	Keep      int            `yaml:"keep" json:"keep"`
	Recipient string         `yaml:"recipient" json:"recipient"` // age1…, of the keys file
}

// Bounds of settings of backups.
const (
	usualBackup = 15 * time.Minute
	leastBackup = time.Minute
	usualKept   = 96
)

// checkBackup fills in what follows from the settings of backups. Nothing is connected to.
func (s *settings) checkBackup(bad func(string, ...any)) {
	b := s.Backup
	s.backup.Folder, s.backup.Bucket, s.backup.Keep = b.Folder, b.Bucket.check("backup.bucket", bad), b.Keep
	if b.Folder != "" && s.backup.Bucket != nil {
		bad("backup: set either folder or bucket")
	}
	if b.Keep < 1 {
		bad("backup.keep %d: keep one at least", b.Keep)
	}
	every, err := time.ParseDuration(b.Every)
	if err != nil || every != 0 && every < leastBackup {
		bad("backup.every %q: use a time such as 15m, at least %s, or 0s for none by itself", b.Every, leastBackup)
	}
	s.backup.Every = every
	if b.Recipient == "" {
		return
	}
	if s.backup.Recipients, err = age.ParseRecipients(strings.NewReader(b.Recipient)); err != nil {
		bad("backup.recipient: use the public key that age-keygen prints, age1…")
	}
}

// backupCommand takes a backup, or lists them.
type backupCommand struct {
	Folder string `arg:"" optional:"" help:"Folder to write to, in place of the one, or the bucket, of the settings."`
	List   bool   `help:"List the whole backups that are there, and take none."`
	Verify string `help:"Read a backup whole and compare it with its manifest; newest is the newest." placeholder:"ID"`
}

// target is where backups go.
func (s settings) target(ctx context.Context, folder string) (object.Store, error) {
	c := s.server(nil).Backup
	if folder != "" {
		c.Folder, c.Bucket = folder, nil
	}
	t, err := c.Open(ctx, s.Data)
	if t == nil && err == nil {
		err = errors.New("name a folder, or set backup.folder or backup.bucket")
	}
	return t, err
}

func (b backupCommand) run(ctx context.Context, s settings, log *slog.Logger, stdout io.Writer) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("backup: %w", err)
		}
	}()
	if b.List || b.Verify != "" {
		target, err := s.target(ctx, b.Folder)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, target.Close()) }()
		if b.List {
			return listBackups(ctx, target, stdout)
		}
		return b.verify(ctx, s, target, stdout)
	}
	if err := s.hasData(); err != nil {
		return err
	}
	target, err := s.target(ctx, b.Folder)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, target.Close()) }()
	srv, err := open(ctx, s, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeAll(srv)) }()
	taker := srv.NewBackups(target)
	m, err := taker.Take(ctx)
	if err != nil {
		return err
	}
	keys := "without the keys file: keep " + cmp.Or(s.KeysFile, filepath.Join(s.Data, "keys.json")) + " in another place, a restore asks for it"
	if m.Keys != nil {
		keys = "with the keys file for the recipient"
	}
	if _, err := fmt.Fprintf(stdout, "took backup %s: database %d bytes, %d files of %d bytes, read back whole; %s\n", m.ID, m.Database.Size, m.Uploads, m.Bytes, keys); err != nil {
		return err
	}
	return taker.Prune(ctx)
}

func listBackups(ctx context.Context, target object.Store, stdout io.Writer) error {
	list, err := backup.List(ctx, target)
	if err != nil {
		return err
	}
	for _, m := range list {
		note := ""
		if backup.IsAhead(m.ID, time.Now().Add(backup.GraceAhead)) {
			note = ", dated later than now: it does not count"
		}
		if _, err := fmt.Fprintf(stdout, "%s  %s  release %s, %s, %d files, keys %t%s\n", m.ID, m.TakenAt.Format(time.RFC3339), m.Release, m.Dump.Engine, m.Uploads, m.Keys != nil, note); err != nil {
			return err
		}
	}
	if len(list) == 0 {
		return backup.ErrNone
	}
	return nil
}

// findBackup gives the manifest of a backup; "" is the newest. It prints which ones are left
// out for that, with the flag that chooses one of them.
func findBackup(ctx context.Context, target object.Store, id, flag string, stdout io.Writer) (backup.Manifest, error) {
	if id != "" {
		return backup.Find(ctx, target, id)
	}
	m, ahead, err := backup.FindNewest(ctx, target, time.Now())
	if err == nil && len(ahead) > 0 {
		_, err = fmt.Fprintf(stdout, "left out, as dated later than now, %s: %s; choose one by %s ID\n", time.Now().UTC().Format(time.RFC3339), backup.NameSome(ahead), flag)
	}
	return m, err
}

func (b backupCommand) verify(ctx context.Context, s settings, target object.Store, stdout io.Writer) error {
	id := b.Verify
	if id == "newest" {
		id = ""
	}
	m, err := findBackup(ctx, target, id, "--verify", stdout)
	if err != nil {
		return err
	}
	if err := backup.Verify(ctx, target, m, filepath.Join(s.Data, "spool")); err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "backup %s of %s is whole\n", m.ID, m.TakenAt.Format(time.RFC3339))
	return err
}

// restoreCommand makes a cloud from a backup.
type restoreCommand struct {
	Folder   string `arg:"" optional:"" help:"Folder with backups, in place of the one, or the bucket, of the settings."`
	ID       string `help:"Of the backup. Default: the newest whole one that is not dated later than now." placeholder:"ID"`
	Identity string `help:"File with the private key that decrypts the keys file (age)." placeholder:"FILE"`
	Keys     string `help:"The keys file, where the backup has none." placeholder:"FILE"`
}

func (r restoreCommand) run(ctx context.Context, s settings, log *slog.Logger, stdout io.Writer) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("restore: %w", err)
		}
	}()
	source, err := s.target(ctx, r.Folder)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	found, err := findBackup(ctx, source, r.ID, "--id", stdout)
	if err != nil {
		return err
	}
	cfg := backup.RestoreConfig{Source: source, ID: found.ID, KeysDigest: server.KeysDigest, KeysFile: filepath.Join(s.Data, "keys.json"), Database: store.Config{URL: s.Database, Dir: s.Data}}
	if r.Keys == "" && r.Identity == "" {
		r.Keys = s.KeysFile
	}
	if r.Keys != "" {
		if cfg.Keys, err = os.ReadFile(r.Keys); err != nil {
			return err
		}
	}
	if r.Identity != "" {
		if err := cli.CheckSecret(r.Identity); err != nil {
			return err
		}
		f, err := os.Open(r.Identity)
		if err != nil {
			return err
		}
		cfg.Identities, err = age.ParseIdentities(f)
		if err := errors.Join(err, f.Close()); err != nil {
			return fmt.Errorf("%s holds no private key of age", r.Identity)
		}
	}
	if err := os.MkdirAll(s.Data, 0o700); err != nil {
		return err
	}
	files, err := s.server(log).FilesStore(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, files.Close()) }()
	due := progress()
	cfg.Files, cfg.Progress = files, func(done, all int) {
		if due() {
			log.Info("restoring files", "files", done, "of", all)
		}
	}
	m, err := backup.Restore(ctx, cfg)
	if errors.Is(err, backup.ErrKeys) {
		return fmt.Errorf("%w; name it by --keys, or its recipient's private key by --identity", err)
	}
	if err != nil {
		return err
	}
	srv, err := server.New(ctx, s.server(log)) // brings the tables to this release, and compares the keys
	if err != nil {
		return fmt.Errorf("the backup is restored, and does not start: %w", err)
	}
	if err := closeAll(srv); err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "restored backup %s: the state of %s with %d files, in %s; it starts\n", m.ID, m.TakenAt.Format(time.RFC3339), m.Uploads, s.Data)
	return err
}

// recoveredCommand lets a database go on that went back by other means than restoreCommand.
type recoveredCommand struct {
	At time.Time `arg:"" help:"The moment whose state the database holds, with its zone: 2026-11-28T03:15:00Z. An earlier one does no harm."`
}

func (r recoveredCommand) run(ctx context.Context, s settings, log *slog.Logger, stdout io.Writer) error {
	if r.At.After(time.Now()) {
		return fmt.Errorf("recovered: %s is not past", r.At.Format(time.RFC3339))
	}
	if err := s.hasData(); err != nil {
		return err
	}
	cfg := s.server(log)
	cfg.Recovered = r.At
	srv, err := server.New(ctx, cfg)
	if err != nil {
		return fmt.Errorf("recovered: %w", err)
	}
	if err := closeAll(srv); err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "the database goes on from its state of %s: ids, numbers of events and versions of orders to cabinets continue above those that were given since\n", r.At.Format(time.RFC3339))
	return err
}
