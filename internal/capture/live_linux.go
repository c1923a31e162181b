package capture

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// live reads a packet socket. It is a datagram socket: the kernel takes link headers off,
// and what comes begins with IP on every kind of interface.
type live struct {
	ctx      context.Context
	fd       int
	data     [liveSnaplen]byte
	control  [256]byte
	received int
}

func listen(ctx context.Context, name string) (*File, error) {
	index := 0
	if name != "any" {
		iface, err := net.InterfaceByName(name)
		if err != nil {
			return nil, fmt.Errorf("interface %s: %w", name, err)
		}
		index = iface.Index
	}
	fd, err := packetSocket(index)
	if err != nil {
		return nil, fmt.Errorf("capturing on %s: %w", name, err)
	}
	l := &live{ctx: ctx, fd: fd}
	return &File{name: name, next: l.next, close: []func() error{func() error { return unix.Close(fd) }}}, nil
}

// patience is how long a read waits before it looks whether it should end.
const patience = 50 * time.Millisecond

func packetSocket(index int) (fd int, err error) {
	// Protocol 0 until the filter is there, so that nothing comes past it.
	fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		if errors.Is(err, unix.EPERM) {
			err = fmt.Errorf("%w: it takes root or CAP_NET_RAW", err)
		}
		return -1, err
	}
	defer func() {
		if err != nil {
			unix.Close(fd)
		}
	}()
	const buffer = 32 << 20
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, buffer) != nil {
		if err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, buffer); err != nil {
			return fd, err
		}
	}
	keep := []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K, K: liveSnaplen}}
	program := unix.SockFprog{Len: uint16(len(keep)), Filter: &keep[0]}
	wait := unix.NsecToTimeval(patience.Nanoseconds())
	return fd, errors.Join(
		unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &program),
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1),
		unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_AUXDATA, 1),
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &wait),
		unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: binary.BigEndian.Uint16(binary.NativeEndian.AppendUint16(nil, unix.ETH_P_ALL)), Ifindex: index}),
	)
}

// next answers io.EOF when the context has ended and nothing waits any more.
func (l *live) next(p *Packet) error {
	for {
		n, controlled, _, from, err := unix.Recvmsg(l.fd, l.data[:], l.control[:], unix.MSG_TRUNC)
		switch {
		case err == nil:
		case errors.Is(err, unix.EAGAIN) && l.ctx.Err() != nil:
			return io.EOF
		case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EINTR), errors.Is(err, unix.ENETDOWN):
			continue
		default:
			return fmt.Errorf("reading packets: %w", err)
		}
		link, ok := from.(*unix.SockaddrLinklayer)
		if !ok || link.Hatype == unix.ARPHRD_LOOPBACK && link.Pkttype == unix.PACKET_OUTGOING {
			continue // a loopback's packets come in as well
		}
		*p = Packet{Data: l.data[:min(n, len(l.data))], Length: n, Link: linkRaw, Interface: uint16(link.Ifindex)}
		l.readControl(l.control[:controlled], p)
		// A queue that never runs empty must not keep a capture from ending.
		if l.received++; l.received%1024 == 0 && l.ctx.Err() != nil {
			return io.EOF
		}
		return nil
	}
}

// readControl takes a packet's time and its length before the filter cut it.
func (l *live) readControl(control []byte, p *Packet) {
	for len(control) >= unix.CmsgLen(0) {
		header, data, rest, err := unix.ParseOneSocketControlMessage(control)
		if err != nil {
			return
		}
		control = rest
		switch {
		case header.Level == unix.SOL_SOCKET && header.Type == unix.SO_TIMESTAMPNS && len(data) >= int(unsafe.Sizeof(unix.Timespec{})):
			ts := (*unix.Timespec)(unsafe.Pointer(&data[0]))
			p.At = ts.Nano()
		case header.Level == unix.SOL_PACKET && header.Type == unix.PACKET_AUXDATA && len(data) >= 8:
			p.Length = max(p.Length, int(binary.NativeEndian.Uint32(data[4:]))) // tp_len
		}
	}
}
