// Package secret has the environment variables with secrets. No program that fullpipe starts gets them, except fullpipe
// itself where it needs one.
package secret

import (
	"slices"
	"strings"
)

// Environment variables with secrets. A variable that is read anywhere is here or in house_secrets_test.go's list of
// harmless ones.
const (
	Key      = "FULLPIPE_KEY"       // of a server
	Store    = "FULLPIPE_STORE"     // the history's URL, which may have a password
	HubStore = "FULLPIPE_HUB_STORE" // a hub's database, likewise
	Join     = "FULLPIPE_JOIN"      // a token that lets a host join a fleet
)

// Variables are all of them.
var Variables = []string{Key, Store, HubStore, Join}

// Without returns an environment without secrets, except those that are kept.
func Without(env []string, kept ...string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains(Variables, name) && !slices.Contains(kept, name)
	})
}
