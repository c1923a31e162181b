// Package harness holds what the test packages of e2e and bench share: the program under test, labs and
// the helper programs that run in them, peers, browsers, and readers for the JSON reports.
package harness
