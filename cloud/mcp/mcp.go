// Package mcp speaks the Model Context Protocol over HTTP POST: revision
// 2026-07-28, which has no handshake, and the four before it.
package mcp
