package host

import (
	"github.com/fullpipe-net/fullpipe/internal/audit"
)

// Snapshot reads this machine's present state. What cannot be read, for want of a
// privilege or of the feature, is named in Unread; it is never an error.
func Snapshot() (*audit.Snapshot, error) {
	s, err := snapshot()
	if s != nil {
		s.Here = true
	}
	return s, err
}
