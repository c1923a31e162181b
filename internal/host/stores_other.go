//go:build !linux && !windows

package host

import (
	"net/netip"
	"os"
)

// stores has no sysctls: fullpipe has never been run on these systems, and `plan` writes
// what sets them.
func stores() map[Kind]store { return map[Kind]store{} }

func scope() string { return "host" }

func namespaces() string { return "netns-" }

func bootID() string { return "" }

func stateDir() string {
	if dir := os.Getenv("FULLPIPE_STATE"); dir != "" {
		return dir
	}
	return "/var/db/fullpipe"
}

func routeTo(netip.Addr) (string, error) { return "", notSupported("settings of a route") }

func shaperTo(netip.Addr) (string, error) { return "", notSupported("a shaper") }

// writable knows of nothing that a write itself would not find.
func writable() error { return nil }
