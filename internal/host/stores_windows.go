package host

import (
	"net/netip"
	"os"
	"path/filepath"
)

func stores() map[Kind]store {
	return map[Kind]store{Registry: registryStore{}, NetTCP: cmdletStore{powershell}}
}

// scope returns "host": Windows has one network stack.
func scope() string { return "host" }

func namespaces() string { return "netns-" }

// bootID returns "": registry values survive a reboot.
func bootID() string { return "" }

func stateDir() string {
	return filepath.Join(os.Getenv("ProgramData"), "fullpipe")
}

func routeTo(netip.Addr) (string, error) { return "", notSupported("settings of a route") }

func shaperTo(netip.Addr) (string, error) { return "", notSupported("a shaper") }

// writable returns nil: only a write shows the missing right.
func writable() error { return nil }
