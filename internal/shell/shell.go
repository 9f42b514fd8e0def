// Package shell writes commands as people type them. It is safe for concurrent use.
package shell

import (
	"regexp"
	"strings"
)

// unquoted needs no quotes in any shell.
var unquoted = regexp.MustCompile(`^[A-Za-z0-9_./:@%+=,-]+$`)

// Command joins a program and its arguments. Arguments with anything but plain
// characters are quoted for a POSIX shell; the program stands as it is.
func Command(program string, args ...string) string {
	for _, a := range args {
		if !unquoted.MatchString(a) {
			a = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
		program += " " + a
	}
	return program
}
