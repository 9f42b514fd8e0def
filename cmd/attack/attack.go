// Package attack holds what a stranger, or an agent with too small a key, tries
// against a running cloud: one test file for each kind of attack. The cloud is
// started as the program starts it, and the attacker has only its HTTP address
// and its own token. `make attack` runs them.
package attack
