// Package testenv provides the environment of tests: checks for features of the machine, namespaces for test processes,
// and free ports.
package testenv
