// Package bench measures the figures of docs/benchmarks.md. Tests named TestBank run only in `make bank`; the
// others test the bank itself.
package bench
