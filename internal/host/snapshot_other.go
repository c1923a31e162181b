//go:build !unix && !windows

package host

import "github.com/fullpipe-net/fullpipe/internal/audit"

func snapshot() (*audit.Snapshot, error) {
	return nil, notSupported("reading this host's settings (the collector script does: fullpipe audit --collector)")
}
