// Package postern is the repository as its programs know it: what changed from release to
// release.
package postern

import _ "embed"

// Changelog is CHANGELOG.md, in the form of Keep a Changelog.
//
//go:embed CHANGELOG.md
var Changelog string
