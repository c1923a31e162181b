// Package systems tests fullpipe with what only `make test-all` installs: Wine, programs of PyPI,
// Prometheus, and a program of an earlier version.
package systems
