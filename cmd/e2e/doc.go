// Package e2e joins boards, agents and cloud in one process and tries them
// together: one seed, simulated time, cuts and crashes of every kind. It holds
// tests only.
package e2e
