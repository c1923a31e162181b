// Package testenv holds what tests of several packages share: the features of the machine that a test
// needs, namespaces for test processes, and free ports.
package testenv
