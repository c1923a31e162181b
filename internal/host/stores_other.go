//go:build !linux && !windows

package host

import "net/netip"

// stores returns none: fullpipe was never run on these systems, and `plan` writes the commands for them.
func stores() map[Kind]store { return map[Kind]store{} }

func scope() string { return "host" }

func namespaces() string { return "netns-" }

func bootID() string { return "" }

func stateDir() string {
	return "/var/db/fullpipe"
}

func routeTo(netip.Addr) (string, error) { return "", notSupported("settings of a route") }

func shaperTo(netip.Addr) (string, error) { return "", notSupported("a shaper") }

// writable returns nil: only a write shows the missing right.
func writable() error { return nil }
