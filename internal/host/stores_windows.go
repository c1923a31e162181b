package host

import (
	"net/netip"
	"os"
	"path/filepath"
)

func stores() map[Kind]store {
	return map[Kind]store{Registry: registryStore{}, NetTCP: cmdletStore{powershell}}
}

// scope is the whole host: Windows has one network stack for all.
func scope() string { return "host" }

func namespaces() string { return "netns-" }

// bootID is not needed: what the registry holds survives a restart.
func bootID() string { return "" }

func stateDir() string {
	if dir := os.Getenv("FULLPIPE_STATE"); dir != "" {
		return dir
	}
	return filepath.Join(os.Getenv("ProgramData"), "fullpipe")
}

func routeTo(netip.Addr) (string, error) { return "", notSupported("settings of a route") }

func shaperTo(netip.Addr) (string, error) { return "", notSupported("a shaper") }

// writable knows of nothing that a write itself would not find.
func writable() error { return nil }
