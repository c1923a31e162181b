package socket

import "golang.org/x/sys/unix"

// bindDevice needs no privilege since Linux 5.7, unless the socket is bound already.
func bindDevice(fd uintptr, device string, _ bool) error {
	return unix.BindToDevice(int(fd), device)
}
