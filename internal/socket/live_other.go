//go:build !linux && !darwin && !freebsd && !windows

package socket

import "github.com/fullpipe-net/fullpipe/internal/transfer"

func account(uintptr, *transfer.Sample) (*transfer.Handshake, error) {
	return nil, notSupported("TCP_INFO")
}
func buffers(uintptr) (send, receive int, err error) { return 0, 0, notSupported("reading buffers") }
func setNotSentLowWater(uintptr, int) error          { return notSupported("TCP_NOTSENT_LOWAT") }
func readCeilings() (Ceilings, error)                { return Ceilings{}, notSupported("buffer ceilings") }
