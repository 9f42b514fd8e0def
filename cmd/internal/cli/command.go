package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Sibling is how a person at this machine starts another of these programs, as far
// as the start of this one tells: from the same folder, by go run, or by its name.
func Sibling(name string) string { return sibling(os.Args[0], name) }

func sibling(self, name string) string {
	folder := self[:strings.LastIndexAny(self, `/\`)+1]
	if folder == "" {
		return name
	}
	if strings.Contains(folder, "go-build") && filepath.Base(filepath.Clean(folder)) == "exe" { // of go run
		if _, err := os.Stat(filepath.Join("cmd", name)); err == nil {
			return "go run ./cmd/" + name
		}
		return "go run github.com/postern-io/postern/cmd/" + name
	}
	for _, file := range []string{name, name + ".exe"} {
		if info, err := os.Stat(folder + file); err == nil && !info.IsDir() {
			return folder + name
		}
	}
	return name
}

// plainArgument needs no quotes in any shell.
var plainArgument = regexp.MustCompile(`^[A-Za-z0-9_./:@%+=,-]+$`)

// Command is a command as a person types it: arguments with anything but plain
// characters are quoted for a POSIX shell.
func Command(program string, args ...string) string {
	for _, a := range args {
		if !plainArgument.MatchString(a) {
			a = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
		program += " " + a
	}
	return program
}
