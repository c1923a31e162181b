// Package commands tests the built program: the effects, records and output of its commands.
package commands
