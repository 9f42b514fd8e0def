//go:build linux || darwin

package server

import "golang.org/x/sys/unix"

// diskSpace is the room of the disk that a folder is on, in bytes: what this process may
// still use of it, and all.
func diskSpace(dir string) (free, size uint64, ok bool) {
	var s unix.Statfs_t
	if unix.Statfs(dir, &s) != nil {
		return 0, 0, false
	}
	block := uint64(s.Bsize)
	return uint64(s.Bavail) * block, uint64(s.Blocks) * block, true
}
