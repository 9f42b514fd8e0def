// Package signature signs and verifies webhooks. Receivers may import it: it
// needs nothing but the standard library.
//
// A webhook is signed over the exact bytes of its body. The schemes differ in
// what else they cover:
//
//	account   Signature                 hex    body
//	account   X-Webhook-Signature-V2    hex    timestamp . body
//	provider  X-Webhook-Signature       base64 timestamp LF delivery id LF body
//	handoff   X-Ohp-Signature           v1=hex timestamp . body
//	standard  webhook-signature         v1,base64 id . timestamp . body
//	standard  webhook-signature         v1a,base64 the same, Ed25519
//
// All but the last are HMAC-SHA256. A receiver needs three lines, whatever the
// scheme; what it reads must be the bytes that came, before any decoding:
//
//	body, _ := io.ReadAll(r.Body)
//	if _, err := signature.Verify(r.Header.Get, body, time.Now(), secret); err != nil {
//		http.Error(w, "bad signature", http.StatusUnauthorized)
//
// The secret is the one that the platform showed, as it is; of an endpoint that
// signs with Ed25519 it may be the public key, whpk_ and so on. While a secret is
// being replaced, either of the two verifies.
//
// Comparisons take constant time for a given body and list of keys, no function
// keeps state, and all are safe for concurrent use. Errors never hold key
// material.
package signature
