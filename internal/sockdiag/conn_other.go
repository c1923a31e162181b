//go:build !linux

package sockdiag

import (
	"fmt"

	"github.com/fullpipe-net/fullpipe/internal/socket"
)

var errOther = fmt.Errorf("sock_diag (Linux): %w", socket.ErrNotSupported)

// Conn asks for sockets; see the Linux file. Here it cannot be opened.
type Conn struct{}

// Open answers socket.ErrNotSupported.
func Open() (*Conn, error) { return nil, errOther }

// Dump answers socket.ErrNotSupported.
func (*Conn) Dump(States, Ask, Filter, func(*Socket)) error { return errOther }

// Look answers socket.ErrNotSupported.
func (*Conn) Look([]ID, Ask, func(*Socket)) (int, error) { return 0, errOther }

// Close does nothing.
func (*Conn) Close() error { return nil }
