package socket

import (
	"fmt"
	"syscall"
)

func apply(fd int, o Options) error {
	if o.Congestion != "" || o.PacingBps > 0 || o.TOS > 0 {
		return notSupported("congestion control, pacing and traffic class of one socket")
	}
	if o.Clamp > 0 || o.SharePort || o.MSS > 0 {
		return notSupported("a window clamp, shared ports and a chosen MSS")
	}
	for _, set := range []struct {
		name          string
		option, value int
	}{{"SO_SNDBUF", syscall.SO_SNDBUF, o.SendBuffer}, {"SO_RCVBUF", syscall.SO_RCVBUF, o.ReceiveBuffer}} {
		if set.value <= 0 {
			continue
		}
		if err := syscall.SetsockoptInt(syscall.Handle(fd), syscall.SOL_SOCKET, set.option, set.value); err != nil {
			return &OptionError{Option: fmt.Sprintf("%s %d", set.name, set.value), Err: err}
		}
	}
	return nil
}

// CongestionControls lists the algorithms that any user of this host may choose, the
// default first; empty where that cannot be seen.
func CongestionControls() []string { return nil }
