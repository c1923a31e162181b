//go:build !linux

package socket

import "net"

func chooseListener(*net.TCPListener, []Choice) error {
	return notSupported("choosing among listeners on one port")
}

func setListener(*net.TCPListener, Options) error {
	return notSupported("changing a listener's window")
}
