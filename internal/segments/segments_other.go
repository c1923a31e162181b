//go:build !linux

package segments

import (
	"fmt"

	"github.com/fullpipe-net/fullpipe/internal/socket"
)

// Watch is not available on this system.
type Watch struct{}

// Open returns socket.ErrNotSupported.
func Open() (*Watch, error) {
	return nil, fmt.Errorf("segments of connections by eBPF: %w", socket.ErrNotSupported)
}

// Take returns nothing.
func (*Watch) Take() (Turns, error) { return Turns{}, nil }

// Close does nothing.
func (*Watch) Close() error { return nil }
