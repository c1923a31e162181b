//go:build !linux && !windows

package socket

import (
	"fmt"
	"syscall"
)

func apply(fd int, o Options) error {
	if o.Congestion != "" || o.PacingBps > 0 || o.TOS > 0 {
		return notSupported("congestion control, pacing and traffic class of one socket")
	}
	if o.Clamp > 0 || o.SharePort {
		return notSupported("a window clamp (TCP_WINDOW_CLAMP) and shared ports")
	}
	for _, set := range []struct {
		name                 string
		level, option, value int
	}{
		{"SO_SNDBUF", syscall.SOL_SOCKET, syscall.SO_SNDBUF, o.SendBuffer},
		{"SO_RCVBUF", syscall.SOL_SOCKET, syscall.SO_RCVBUF, o.ReceiveBuffer},
		{"TCP_MAXSEG", syscall.IPPROTO_TCP, syscall.TCP_MAXSEG, o.MSS},
	} {
		if set.value <= 0 {
			continue
		}
		if err := syscall.SetsockoptInt(fd, set.level, set.option, set.value); err != nil {
			return &OptionError{Option: fmt.Sprintf("%s %d", set.name, set.value), Err: err}
		}
	}
	return nil
}

// CongestionControls lists the algorithms that any user of this host may choose, the
// default first; empty where that cannot be seen.
func CongestionControls() []string { return nil }
