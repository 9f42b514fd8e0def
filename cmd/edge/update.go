package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"

	"github.com/postern-io/postern/cmd/internal/cli"
	"github.com/postern-io/postern/edge/access"
	"github.com/postern-io/postern/edge/origin"
	"github.com/postern-io/postern/edge/update"
)

// installUpdate takes an update from a file.
type installUpdate struct {
	File string `arg:"" help:"The artefact, as release sign writes it; - is standard input."`
}

func (i installUpdate) run(s settings, stdout, stderr io.Writer) error {
	log, err := cli.Logger(stderr, s.LogLevel)
	if err != nil {
		return err
	}
	if err := cli.CheckOwner(s.Data); err != nil {
		return fmt.Errorf("install-update: %w", err)
	}
	v, err := openVersions(s, log)
	if err != nil {
		return fmt.Errorf("install-update: %w", err)
	}
	file := io.Reader(os.Stdin)
	if i.File != "-" {
		f, err := os.Open(i.File)
		if err != nil {
			return fmt.Errorf("install-update: %w", err)
		}
		defer f.Close()
		file = f
	}
	m, err := v.Install(file)
	if err != nil {
		return fmt.Errorf("install-update %s: %w", i.File, err)
	}
	_, err = fmt.Fprintf(stdout, "version %s is installed; it is tried when the agent is launched again\n", m.Version)
	return err
}

// remoteUpdates takes updates by command, and ends the agent for its launcher to start them.
type remoteUpdates struct {
	*update.Remote
	end atomic.Pointer[context.CancelFunc] // of the cabinet that runs
}

// newOrigin is the cloud that the cabinet was enrolled at, by HTTPS.
func newOrigin(secrets access.Secrets, roots *tls.Config) *origin.Cloud {
	return origin.New(secrets.CloudURL, &http.Transport{TLSClientConfig: roots, Proxy: http.ProxyFromEnvironment, TLSHandshakeTimeout: enrolWait, DisableKeepAlives: true})
}

func newRemote(s settings, cloud *origin.Cloud, log *slog.Logger) (*remoteUpdates, error) {
	v, err := openVersions(s, log)
	if err != nil {
		return nil, err
	}
	return &remoteUpdates{Remote: update.NewRemote(v, cloud)}, nil
}

// Restart ends the cabinet in order, as a signal does.
func (r *remoteUpdates) Restart() {
	if end := r.end.Load(); end != nil {
		(*end)()
	}
}

func versionsFolder(s settings) string { return filepath.Join(s.Data, "versions") }

// openVersions opens the agent's programs beside this one.
func openVersions(s settings, log *slog.Logger) (*update.Versions, error) {
	secrets, err := readSecrets(s.Secrets)
	if err != nil {
		return nil, err
	}
	return update.New(update.Config{Dir: versionsFolder(s), Keys: secrets.ReleaseKeys, Packaged: cli.Version(), System: runtime.GOOS, Arch: runtime.GOARCH, Log: log})
}
