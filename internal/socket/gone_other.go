//go:build !linux

package socket

import (
	"net"
	"time"
)

// endUnacknowledged leaves it to the system how long it repeats what nobody acknowledges:
// minutes.
func endUnacknowledged(*net.TCPConn, time.Duration) error { return nil }
