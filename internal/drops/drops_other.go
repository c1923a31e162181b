//go:build !linux

package drops

import (
	"fmt"

	"github.com/fullpipe-net/fullpipe/internal/lost"
	"github.com/fullpipe-net/fullpipe/internal/socket"
)

// Watch is not available on this system.
type Watch struct{}

// Open returns socket.ErrNotSupported.
func Open() (*Watch, error) {
	return nil, fmt.Errorf("places of loss by eBPF: %w", socket.ErrNotSupported)
}

// Of returns nothing.
func (*Watch) Of(lost.Flow, uint32) (Counts, error) { return Counts{}, nil }

// Close does nothing.
func (*Watch) Close() error { return nil }
