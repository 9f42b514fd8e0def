package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/server"
	"github.com/postern-io/postern/cloud/setup"
	"github.com/postern-io/postern/cmd/internal/cli"
	"github.com/postern-io/postern/internal/bundle"
	"github.com/postern-io/postern/internal/wholefile"
)

// open opens a node's data without serving. It makes no new data.
func open(ctx context.Context, s settings, log *slog.Logger) (*server.Server, error) {
	if err := s.hasData(); err != nil {
		return nil, err
	}
	return server.New(ctx, s.server(log))
}

// hasData fails where no cloud has started yet: a program that looks makes none.
func (s settings) hasData() error {
	first := "keys.json"
	switch {
	case s.KeysFile != "" && s.Database != "":
		return nil
	case s.KeysFile != "":
		first = "postern.db"
	}
	_, err := os.Stat(filepath.Join(s.Data, first))
	if _, there := os.Stat(filepath.Join(s.Data, "postern.db")); there == nil && s.Database == "" && errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: there is a database, and no %s beside it: put your saved keys.json back", server.ErrKeysMissing, filepath.Join(s.Data, first))
	}
	if err != nil {
		return fmt.Errorf("there is no data to look at: %w", err)
	}
	return nil
}

func closeAll(srv *server.Server) error {
	return errors.Join(srv.Broker.Close(), srv.Store.Close())
}

// rebuildCommand looks at timelines again.
type rebuildCommand struct {
	Write  bool  `help:"Store what is missing, and put right what differs. Without it nothing is changed."`
	Refold bool  `help:"In place of the journal, fold the timeline of each parcel from its events and print the parcels whose kept status or checkpoint is another. Nodes may run meanwhile. The log says how far it is."`
	After  int64 `help:"With refold: begin behind this parcel, the last of an earlier run." placeholder:"LAST"`
	Most   int   `help:"With refold: look at so many parcels; 0 is all." placeholder:"COUNT"`
}

// run finds what of timelines is missing or differs, and stores it where that is asked for.
func (c rebuildCommand) run(ctx context.Context, s settings, log *slog.Logger, stdout io.Writer) (err error) {
	if !c.Refold && (c.After != 0 || c.Most != 0) || c.After < 0 || c.Most < 0 {
		return errors.New("rebuild: --after and --most are numbers from 0, and go with --refold")
	}
	srv, err := open(ctx, s, log)
	if err != nil {
		return fmt.Errorf("rebuild: %w", err)
	}
	defer func() { err = errors.Join(err, closeAll(srv)) }()
	var found any
	if c.Refold {
		found, err = server.RefoldTimelines(ctx, srv.Store, server.Refold{Write: c.Write, After: cloud.ShipmentID(c.After), Most: c.Most, Progress: func(f server.Refolded) {
			log.Info("timelines are folded", "parcels", f.Parcels, "different", f.Different, "last", int64(f.Last))
		}})
	} else {
		found, err = srv.Rebuild(ctx, c.Write)
	}
	if err != nil {
		return err
	}
	e := json.NewEncoder(stdout)
	e.SetIndent("", "  ")
	return e.Encode(found)
}

// supportBundle collects what helps to understand a node.
func supportBundle(ctx context.Context, s settings, file string, log *slog.Logger, stdout io.Writer) (err error) {
	srv, err := open(ctx, s, log)
	if err != nil {
		return fmt.Errorf("support-bundle: %w", err)
	}
	defer func() { err = errors.Join(err, closeAll(srv)) }()
	b := bundle.New(time.Now().UTC())
	b.AddAbout("cloud", cli.Version())
	b.AddJSON("settings.json", map[string]any{"settings": s, "database_set": s.Database != ""})
	devices, err := deviceFacts(ctx, srv)
	if err != nil {
		return fmt.Errorf("support-bundle: %w", err)
	}
	b.AddJSON("devices.json", devices)
	wal, err := srv.Store.WALSize()
	if err != nil {
		return fmt.Errorf("support-bundle: %w", err)
	}
	waiting, err := srv.Store.OutboxWaiting(ctx)
	if err != nil {
		return fmt.Errorf("support-bundle: %w", err)
	}
	b.AddJSON("store.json", map[string]any{"wal_bytes": wal, "outbox_waiting": waiting})
	raw, err := b.Bytes()
	if err != nil {
		return err
	}
	if err := wholefile.Replace(file, raw); err != nil {
		return err
	}
	_, err = fmt.Fprintln(stdout, "wrote", file)
	return err
}

// deviceFact is a device without its secrets.
type deviceFact struct {
	ID            cloud.DeviceID  `json:"device_id"`
	Code          string          `json:"device_code"`
	Type          string          `json:"device_type"`
	Disabled      bool            `json:"disabled"`
	EnrolledAt    time.Time       `json:"enrolled_at"`
	ConfigVersion uint64          `json:"config_version"`
	CodesHeld     uint64          `json:"codes_held"`
	Journal       json.RawMessage `json:"journal"`
}

func deviceFacts(ctx context.Context, srv *server.Server) ([]deviceFact, error) {
	out := []deviceFact{}
	const page = 500
	for after := cloud.DeviceID(0); ; {
		devices, err := srv.Store.ListAllDevices(ctx, after, page)
		if err != nil {
			return nil, fmt.Errorf("list devices: %w", err)
		}
		for _, d := range devices {
			after = d.ID
			stats, err := srv.Store.JournalStats(ctx, d.ID)
			if err != nil {
				return nil, fmt.Errorf("add up journal of %s: %w", d.Code, err)
			}
			journal, err := json.Marshal(stats)
			if err != nil {
				return nil, err
			}
			out = append(out, deviceFact{d.ID, d.Code, d.Type, d.Disabled, d.EnrolledAt, d.ConfigVersion, d.CodesHeld, journal})
		}
		if len(devices) < page {
			return out, nil
		}
	}
}

// adminReset removes a second factor at the machine.
type adminReset struct {
	Email string `required:"" help:"Of the person." placeholder:"EMAIL"`
	Code  string `help:"Code of the business, where several have a person with this email." placeholder:"CODE"`
}

func (a adminReset) run(ctx context.Context, s settings, log *slog.Logger, stdout io.Writer) (err error) {
	srv, err := open(ctx, s, log)
	if err != nil {
		return fmt.Errorf("admin reset: %w", err)
	}
	defer func() { err = errors.Join(err, closeAll(srv)) }()
	made, err := srv.Setup.Reset(ctx, a.Email, a.Code)
	switch {
	case errors.Is(err, cloud.ErrNotFound):
		return fmt.Errorf("admin reset: no account has the email %s; the emails are in GET /api/v1/users", a.Email)
	case errors.Is(err, setup.ErrWhich):
		return fmt.Errorf("admin reset: several businesses have %s; choose one by --code", a.Email)
	case err != nil:
		return fmt.Errorf("admin reset: %w", err)
	}
	_, err = fmt.Fprintf(stdout, "%s has no second factor, no passkeys and no sessions any more; the password stays\n", made.Account.Email)
	return err
}
