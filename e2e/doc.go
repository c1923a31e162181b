// Package e2e holds the tests that need the real thing: kernel TCP in namespaces, other
// people's programs, captures made on the spot. Those named TestBank measure the
// figures of docs/benchmarks.md and run only in `make bank`.
package e2e
