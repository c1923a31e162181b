package socket

import (
	"encoding/binary"
	"fmt"
	"syscall"

	"golang.org/x/sys/windows"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

const sioTCPInfo = 0xd8000027 // SIO_TCP_INFO, Windows 10 1703

// account asks for version 1 and falls back on version 0.
func account(fd uintptr, s *transfer.Sample) (*transfer.Handshake, error) {
	b := make([]byte, 256)
	var n uint32
	var err error
	for version := 1; version >= 0; version-- {
		wanted := binary.LittleEndian.AppendUint32(nil, uint32(version))
		if err = windows.WSAIoctl(windows.Handle(fd), sioTCPInfo, &wanted[0], 4, &b[0], uint32(len(b)), &n, nil,
			0); err == nil {
			return nil, DecodeWindows(b[:min(int(n), len(b))], s)
		}
	}
	return nil, fmt.Errorf("SIO_TCP_INFO: %w", err)
}

func buffers(fd uintptr) (send, receive int, err error) {
	send, err = windows.GetsockoptInt(windows.Handle(fd), syscall.SOL_SOCKET, syscall.SO_SNDBUF)
	if err == nil {
		receive, err = windows.GetsockoptInt(windows.Handle(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF)
	}
	return send, receive, err
}

func setNotSentLowWater(uintptr, int) error { return notSupported("TCP_NOTSENT_LOWAT") }

// The receive window grows to 16 MB at the level Normal, as does the send backlog. SO_SNDBUF and SO_RCVBUF have no
// documented bound.
func readCeilings() (Ceilings, error) {
	return Ceilings{AutoSend: 16 << 20, AutoReceive: 65535 << 8, Send: 1 << 30, Receive: 1 << 30, Factor: 1}, nil
}
