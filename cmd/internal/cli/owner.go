//go:build !windows

package cli

import "syscall"

// ownerOf is the user that a file belongs to, by what a system says of the file; -1: it is
// not known.
func ownerOf(sys any) int {
	if s, ok := sys.(*syscall.Stat_t); ok {
		return int(s.Uid)
	}
	return -1
}
