package host

import (
	"github.com/fullpipe-net/fullpipe/internal/audit"
)

// Snapshot reads this host's present state. Unread names the values that need a missing privilege or feature; they are
// no error.
func Snapshot() (*audit.Snapshot, error) {
	s, err := snapshot()
	if s != nil {
		s.Here = true
	}
	return s, err
}
