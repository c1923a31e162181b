// Package harness is shared by the test packages of e2e and bench: the program under test, labs and the helper
// programs that run in them, peers, browsers, and readers for the JSON reports.
package harness
