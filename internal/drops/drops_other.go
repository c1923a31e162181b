//go:build !linux

package drops

import (
	"fmt"

	"github.com/fullpipe-net/fullpipe/internal/lost"
	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// Watch is not available on this system.
type Watch struct{}

// Open returns socket.ErrNotSupported.
func Open() (*Watch, error) {
	return nil, fmt.Errorf("places of loss by eBPF: %w", socket.ErrNotSupported)
}

// OpenUDP returns socket.ErrNotSupported.
func OpenUDP() (*Watch, error) { return Open() }

// BeginDatagrams returns a function that knows nothing.
func (*Watch) BeginDatagrams() (end func(*transfer.DatagramResult) *transfer.Losses) {
	return func(*transfer.DatagramResult) *transfer.Losses { return nil }
}

// Take returns nothing.
func (*Watch) Take(lost.Flow, uint32) (transfer.Losses, error) { return transfer.Losses{}, nil }

// Begin returns a function that knows nothing.
func (*Watch) Begin() (end func(*transfer.End, bool) *transfer.Losses) {
	return func(*transfer.End, bool) *transfer.Losses { return nil }
}

// Close does nothing.
func (*Watch) Close() error { return nil }

// readCounters reads nothing on this system.
func readCounters(snapshot, bool) {}
