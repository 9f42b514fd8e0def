// Package bench measures what takes more than one package: intake, backlog,
// door to webhook, many devices, the agent as a process. Each figure is printed
// as a ratio against a bare loop of the same run. It holds benchmarks only.
package bench
