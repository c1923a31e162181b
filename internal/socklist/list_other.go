//go:build !darwin && !windows

package socklist

import (
	"fmt"

	"github.com/fullpipe-net/fullpipe/internal/socket"
)

// List reads the connections; here it cannot be opened.
type List struct{}

// Open returns socket.ErrNotSupported.
func Open(Options) (*List, error) {
	return nil, fmt.Errorf("%w: its list of connections has no byte counters", socket.ErrNotSupported)
}

// Read returns nothing.
func (*List) Read(Want, func(*Socket)) (untold int, err error) { return 0, nil }

// Retransmissions is false.
func (*List) Retransmissions() bool { return false }

// Close does nothing.
func (*List) Close() error { return nil }

// Program returns "".
func Program(int) string { return "" }
