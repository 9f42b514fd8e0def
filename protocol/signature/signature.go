// Package signature signs and verifies what Postern sends: COSE envelopes on
// the device link, and webhooks. Receivers of webhooks may import it.
//
// Comparisons take constant time, no function keeps state, and all are safe
// for concurrent use. Errors never hold key material.
package signature
