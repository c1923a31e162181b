//go:build !linux

package socket

import (
	"strings"
	"syscall"
)

func flowControl(o FlowOptions) func(network, address string, c syscall.RawConn) error {
	return func(network, _ string, c syscall.RawConn) error {
		switch {
		case o.Buffer > 0:
			return notSupported("a buffer for UDP")
		case o.TOS > 0:
			return notSupported("a traffic class for UDP")
		case o.DontFragment:
			return notSupported("sending UDP without fragments")
		case o.Local.IsValid():
			return notSupported("several UDP flows on one port")
		}
		var err error
		if cerr := c.Control(func(fd uintptr) { err = o.Route.Bind(fd, strings.HasSuffix(network, "6")) }); cerr != nil {
			return cerr
		}
		return err
	}
}

func (f *Flow) canOffload() bool { return false }
func (f *Flow) sendBatch(batch []byte, size int) error {
	return notSupported("UDP segmentation offload")
}
func cannotSegment(error) bool { return false }
func trainSize([]byte) int     { return 0 }

func (f *Flow) drops() (n int64, known bool) { return 0, false }
