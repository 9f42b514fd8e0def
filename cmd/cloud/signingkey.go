package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"time"

	"github.com/postern-io/postern/cloud/server"
)

// namedHolders bounds how many cabinets a refusal names; status names all.
const namedHolders = 20

// signingKeyStatus says how the keys stand that cabinets trust.
type signingKeyStatus struct{}

func (signingKeyStatus) run(ctx context.Context, s settings, log *slog.Logger, stdout io.Writer) error {
	return withKeys(ctx, s, log, func(srv *server.Server) error {
		current, next := srv.Keys.SigningKeys()
		behind, err := server.ListKeyHolders(ctx, srv)
		if err != nil {
			return err
		}
		rotated := "never"
		if !srv.Keys.Rotated.IsZero() {
			rotated = srv.Keys.Rotated.Format(time.RFC3339)
		}
		if _, err := fmt.Fprintf(stdout, "signing key %s, next %s, last rotation %s\n%d cabinets are not known to trust the next key\n", current, next, rotated, len(behind)); err != nil {
			return err
		}
		_, err = io.WriteString(stdout, holderLines(behind))
		return err
	})
}

// holderLines has a line for each device.
func holderLines(behind []server.KeyHolder) string {
	var b strings.Builder
	for _, h := range behind {
		why := "has not taken its newest configuration"
		switch {
		case h.EnrolsAgain:
			why = "speaks HTTP: it gets the key when it enrols again"
		case h.Unpublished:
			why = "the present keys are not published to it: run signing-key publish"
		}
		seen := "never"
		if !h.LastSeenAt.IsZero() {
			seen = h.LastSeenAt.Format(time.RFC3339)
		}
		fmt.Fprintf(&b, "  %s of business %d, last seen %s: %s\n", h.Code, h.BusinessID, seen, why)
	}
	return b.String()
}

// signingKeyRotate takes the next key into use.
type signingKeyRotate struct {
	Force bool   `help:"Rotate although cabinets would be lost: each of them has to enrol again."`
	To    string `help:"Write the new keys to this file, which must not exist, and leave the present one: for nodes whose keys come from a secret store." placeholder:"FILE"`
}

func (r signingKeyRotate) run(ctx context.Context, s settings, log *slog.Logger, stdout io.Writer) error {
	return withKeys(ctx, s, log, func(srv *server.Server) error {
		behind, err := server.ListKeyHolders(ctx, srv)
		if err != nil {
			return err
		}
		if len(behind) > 0 && !r.Force {
			more := ""
			if n := len(behind) - namedHolders; n > 0 {
				behind, more = behind[:namedHolders], fmt.Sprintf("  and %d more: signing-key status names all\n", n)
			}
			return fmt.Errorf("cabinets would be lost, as they are not known to trust the next key. Let them connect, or give --force and enrol them again:\n%s%s", holderLines(behind), more)
		}
		next := srv.Keys.Rotate(time.Now())
		path := cmp.Or(s.KeysFile, filepath.Join(s.Data, "keys.json"))
		if r.To != "" {
			path, err = r.To, server.WriteKeys(r.To, next)
		} else {
			err = server.ReplaceKeys(path, next)
		}
		if err != nil {
			return err
		}
		current, _ := next.SigningKeys()
		_, err = fmt.Fprintf(stdout, "%s signs with %s: start every node with it, then run signing-key publish. Keep this file: cabinets will not trust the former one\n", path, current)
		return err
	})
}

// signingKeyPublish gives cabinets the present keys.
type signingKeyPublish struct {
	Force bool `help:"Publish although nodes run that sign with another key: cabinets that drop the former key take nothing from them."`
}

func (p signingKeyPublish) run(ctx context.Context, s settings, log *slog.Logger, stdout io.Writer) error {
	return withKeys(ctx, s, log, func(srv *server.Server) error {
		names, err := server.ListFormerSigners(ctx, srv)
		if err != nil {
			return err
		}
		if len(names) > 0 && !p.Force {
			return fmt.Errorf("nodes run that sign with another key: %s. Start them again with the present one, or give --force", strings.Join(names, ", "))
		}
		n, err := server.PublishKeys(ctx, srv)
		if err != nil {
			return fmt.Errorf("%d cabinets have a new configuration, and it is safe to run this again: %w", n, err)
		}
		_, err = fmt.Fprintf(stdout, "%d cabinets have a new configuration with the present keys; signing-key status says which have not taken it\n", n)
		return err
	})
}

// withKeys opens the data of a node.
func withKeys(ctx context.Context, s settings, log *slog.Logger, f func(*server.Server) error) error {
	srv, err := open(ctx, s, log)
	if err == nil {
		err = errors.Join(f(srv), closeAll(srv))
	}
	if err != nil {
		return fmt.Errorf("signing-key: %w", err)
	}
	return nil
}
