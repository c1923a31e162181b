// Package socket is the kernel's TCP for a measuring program: options that are set before connect() and listen() and
// read back, the kernel's statistics of a connection (TCP_INFO), and moving payload without copying it.
//
// A missing feature returns an error that is ErrNotSupported and names the feature.
package socket

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// ErrNotSupported is the error of a feature that this operating system does not have.
var ErrNotSupported = errors.New("not supported on this system")

func notSupported(feature string) error { return fmt.Errorf("%s: %w", feature, ErrNotSupported) }

// Options is what a socket is given before connect() or listen(). The zero value leaves
// everything to the system.
type Options struct {
	transfer.Socket
	// LocalPort is the port to connect from; 0 lets the system choose.
	LocalPort uint16
	// SharePort lets several listeners share one port (SO_REUSEPORT).
	SharePort bool
	// Route is the way that a connection leaves by.
	Route Route
}

// OptionError is a socket option that the system refused.
type OptionError struct {
	Option string // "TCP_CONGESTION bbr"
	Err    error
	Hint   string // the remedy
}

func (e *OptionError) Error() string { return fmt.Sprintf("set %s: %v", e.Option, e.Err) }
func (e *OptionError) Unwrap() error { return e.Err }
func (e *OptionError) Try() string   { return e.Hint }

// Listen opens a listener whose connections inherit the options; their windows and
// MSS hold from the SYN-ACK on. Multipath TCP and keep-alive probes are off.
func Listen(ctx context.Context, address string, o Options) (*net.TCPListener, error) {
	lc := net.ListenConfig{KeepAlive: -1, Control: control(o)}
	lc.SetMultipathTCP(false)
	l, err := lc.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return l.(*net.TCPListener), nil
}

func control(o Options) func(network, address string, c syscall.RawConn) error {
	return func(network, _ string, c syscall.RawConn) error {
		var err error
		if cerr := c.Control(func(fd uintptr) {
			err = o.Route.Bind(fd, strings.HasSuffix(network, "6"))
			if err == nil {
				err = apply(int(fd), o)
			}
		}); cerr != nil {
			return cerr
		}
		return err
	}
}
