// Package cli holds what the programs share on their command lines: flags with
// one dash or two, settings files that refuse unknown keys, versions, logs, and
// files with secrets. Nothing here keeps state; every
// function may be called from anywhere.
package cli

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/user"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"
)

// ErrHelp ends a run after the help text was printed.
var ErrHelp = errors.New("help")

// Parse fills grammar, a pointer to kong's struct, from args. Long flags may
// have one dash or two: -version and --version. It returns ErrHelp when the
// help text was asked for and printed; no error ends the process.
func Parse(grammar any, name, description string, args []string, stdout, stderr io.Writer) (*kong.Context, error) {
	// kong would end the process after --help; here it only ends the run.
	asked := false
	parser, err := kong.New(grammar, kong.Name(name), kong.Description(description), kong.Writers(stdout, stderr), kong.Exit(func(int) { asked = true }))
	if err != nil {
		return nil, err
	}
	ctx, err := parser.Parse(twoDashes(args))
	if asked {
		return nil, ErrHelp
	}
	if err != nil {
		return nil, fmt.Errorf("%w (try --help)", err)
	}
	return ctx, nil
}

// twoDashes gives long flags their second dash. The arguments after -- are left alone.
func twoDashes(args []string) []string {
	out := append([]string(nil), args...)
	for i, a := range out {
		if a == "--" {
			break
		}
		if len(a) > 2 && a[0] == '-' && a[1] != '-' && (a[1] < '0' || a[1] > '9') {
			out[i] = "-" + a
		}
	}
	return out
}

// release is what a build names with -ldflags, [[postern-release:1.4.0]]: a mark by which the
// version is found in the program's bytes, too. It never changes while a program runs.
var release string

// Version is the program's own version: the one its build named, or else the
// module's and the revision it was built from.
func Version() string {
	if _, version, ok := strings.Cut(release, ":"); ok {
		return strings.TrimSuffix(version, "]]")
	}
	version := "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		version = info.Main.Version
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				version += " " + s.Value
			}
		}
	}
	return version
}

// PrintVersion writes one line: name, version, Go and platform.
func PrintVersion(w io.Writer, name string) error {
	_, err := fmt.Fprintln(w, name, Version(), runtime.Version(), runtime.GOOS+"/"+runtime.GOARCH)
	return err
}

// Levels of a log, as settings name them.
var Levels = []string{"debug", "info", "warn", "error"}

// Logger writes JSON lines from level on, one of Levels.
func Logger(w io.Writer, level string) (*slog.Logger, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return nil, fmt.Errorf("log level %q: use one of %s", level, strings.Join(Levels, ", "))
	}
	return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: l})), nil
}

// ReadSecret reads a file with secrets, which others on this machine cannot read.
func ReadSecret(name string) ([]byte, error) {
	if err := CheckSecret(name); err != nil {
		return nil, err
	}
	return os.ReadFile(name)
}

// CheckSecret refuses a file with secrets that others on this machine can read. The group
// may read one of root's, as where a container gets its secrets, unless the program is
// root itself.
func CheckSecret(name string) error {
	info, err := os.Stat(name)
	if err != nil {
		return err
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&^mayRead(info, os.Geteuid()) != 0 {
		return fmt.Errorf("%s is readable by others (mode %04o): run chmod 600 on it", name, info.Mode().Perm())
	}
	return nil
}

// CheckOwner refuses to work in a folder of another user, whose program could not use what
// is made there.
func CheckOwner(folder string) error {
	info, err := os.Stat(folder)
	if err != nil {
		return err
	}
	if owner, self := ownerOf(info.Sys()), os.Geteuid(); owner != -1 && owner != self {
		name := strconv.Itoa(owner)
		if u, err := user.LookupId(name); err == nil {
			name = u.Username
		}
		return fmt.Errorf("%s belongs to %s: run this as that user, with runuser -u %s -- before it", folder, name, name)
	}
	return nil
}

// mayRead are the rights that a file with secrets may give, to a program of the user self.
func mayRead(file os.FileInfo, self int) os.FileMode {
	if self != 0 && ownerOf(file.Sys()) == 0 {
		return 0o740
	}
	return 0o700
}
