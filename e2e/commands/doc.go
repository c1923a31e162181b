// Package commands tests the built program: what its commands change, record and print.
package commands
