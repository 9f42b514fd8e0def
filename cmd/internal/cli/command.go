package cli

import (
	"os"
	"path/filepath"
	"strings"
)

// packagedPrefix stands before the names of cloud and edge in their Debian packages.
const packagedPrefix = "postern-"

// Sibling is how a person at this machine starts another of these programs, as far
// as the start of this one tells: from the same folder, by go run, or by its name.
func Sibling(name string) string { return sibling(os.Args[0], name) }

func sibling(self, name string) string {
	folder := self[:strings.LastIndexAny(self, `/\`)+1]
	if strings.HasPrefix(self[len(folder):], packagedPrefix) && (name == "cloud" || name == "edge") {
		name = packagedPrefix + name
	}
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
