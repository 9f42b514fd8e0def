// Package label has no tests of its own: those of its parent call it.
package label

// Fits reports whether a line has room on a label.
func Fits(line string) bool { return len(line) < 33 }
