package capture

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/fullpipe-net/fullpipe/internal/socket"
)

// live reads a packet socket through a ring that the kernel writes to (packet(7), TPACKET_V3). Packets between two
// looks wait there, and packets without room are counted. It is a datagram socket: the kernel removes link headers,
// and packets begin with IP on every kind of interface.
type live struct {
	ctx      context.Context
	fd       int
	ring     []byte
	size     ringSize
	block    int  // the one that is read or waited for
	mine     bool // it is not the kernel's
	left     int  // packets of it not yet taken
	at       int  // of the next of them in ring
	received int
	lost     *int64
}

// ringSize is how much can wait.
type ringSize struct{ blocks, bytes int }

func listen(ctx context.Context, name string) (*File, error) {
	const blocks, bytes = 32, 1 << 20 // some 120,000 packets: one second of a full 1 Gbit/s
	return listenThrough(ctx, name, ringSize{blocks, bytes})
}

func listenThrough(ctx context.Context, name string, size ringSize) (*File, error) {
	index := 0
	if name != "any" {
		iface, err := net.InterfaceByName(name)
		if err != nil {
			return nil, &socket.OptionError{Option: "the interface " + name, Err: syscall.ENODEV, Hint: socket.DeviceHint(err)}
		}
		index = iface.Index
	}
	l := &live{ctx: ctx, size: size}
	if err := l.open(index); err != nil {
		l.close()
		return nil, fmt.Errorf("capturing on %s: %w", name, err)
	}
	f := &File{name: name, next: l.next, close: []func() error{l.close}}
	l.lost = &f.lost
	return f, nil
}

// timeout is how long a read waits before it looks whether it should end, and how long
// the kernel keeps a block that is not full.
const timeout = 50 * time.Millisecond

func (l *live) open(index int) (err error) {
	// Protocol 0 until the filter is there, so that nothing comes past it.
	if l.fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0); err != nil {
		if errors.Is(err, unix.EPERM) {
			err = fmt.Errorf("%w: it takes root or CAP_NET_RAW", err)
		}
		return err
	}
	keep := []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K, K: liveSnaplen}}
	program := unix.SockFprog{Len: uint16(len(keep)), Filter: &keep[0]}
	const frame = 2048 // only the kernel's arithmetic asks for it: packets lie as close as they can
	request := unix.TpacketReq3{Block_size: uint32(l.size.bytes), Block_nr: uint32(l.size.blocks), Frame_size: frame,
		Frame_nr: uint32(l.size.bytes / frame * l.size.blocks), Retire_blk_tov: uint32(timeout.Milliseconds() / 2)}
	if err := errors.Join(
		unix.SetsockoptSockFprog(l.fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &program),
		unix.SetsockoptInt(l.fd, unix.SOL_PACKET, unix.PACKET_VERSION, unix.TPACKET_V3),
		unix.SetsockoptTpacketReq3(l.fd, unix.SOL_PACKET, unix.PACKET_RX_RING, &request),
	); err != nil {
		return err
	}
	if l.ring, err = unix.Mmap(l.fd, 0, l.size.bytes*l.size.blocks, unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_SHARED); err != nil {
		return fmt.Errorf("the ring of %d MiB: %w", l.size.bytes*l.size.blocks>>20, err)
	}
	return unix.Bind(l.fd, &unix.SockaddrLinklayer{Protocol: binary.BigEndian.Uint16(binary.NativeEndian.AppendUint16(nil,
		unix.ETH_P_ALL)), Ifindex: index})
}

func (l *live) close() error {
	var err error
	if l.ring != nil {
		err = unix.Munmap(l.ring)
		l.ring = nil
	}
	if l.fd > 0 {
		err = errors.Join(err, unix.Close(l.fd))
		l.fd = -1
	}
	return err
}

// next returns io.EOF when the context has ended and no packet waits any more.
func (l *live) next(p *Packet) error {
	for {
		if l.left == 0 {
			if err := l.nextBlock(); err != nil {
				l.count()
				return err
			}
		}
		// struct tpacket3_hdr, and behind it struct sockaddr_ll (linux/if_packet.h).
		const header = 48
		at := l.ring[l.at:]
		word := func(i int) int { return int(binary.NativeEndian.Uint32(at[i:])) }
		second := word(4)
		nano := word(8)
		kept := word(12)
		length := word(16)
		net := int(binary.NativeEndian.Uint16(at[26:]))
		index := word(header + 4)
		hardware := binary.NativeEndian.Uint16(at[header+8:])
		kind := at[header+10]
		l.left--
		l.at += word(0)
		if hardware == unix.ARPHRD_LOOPBACK && kind == unix.PACKET_OUTGOING {
			continue // a loopback's packets come in as well
		}
		*p = Packet{At: int64(second)*1e9 + int64(nano), Data: at[net : net+kept], Length: length, Link: linkRaw,
			Interface: uint16(index)}
		// A queue that never runs empty must not keep a capture from ending.
		l.received++
		if l.received%1024 == 0 && l.ctx.Err() != nil {
			l.count()
			return io.EOF
		}
		return nil
	}
}

// nextBlock gives the block that was read back and waits for the next.
func (l *live) nextBlock() error {
	if l.mine {
		atomic.StoreUint32(l.status(), unix.TP_STATUS_KERNEL)
		l.block = (l.block + 1) % l.size.blocks
		l.mine = false
	}
	for atomic.LoadUint32(l.status())&unix.TP_STATUS_USER == 0 {
		wait := []unix.PollFd{{Fd: int32(l.fd), Events: unix.POLLIN | unix.POLLERR}}
		n, err := unix.Poll(wait, int(timeout.Milliseconds()))
		switch {
		case err != nil && !errors.Is(err, unix.EINTR):
			return fmt.Errorf("waiting for packets: %w", err)
		case n == 0 && l.ctx.Err() != nil:
			return io.EOF
		case n > 0 && wait[0].Revents&unix.POLLERR != 0: // the interface went down; reading takes the error away
			unix.GetsockoptInt(l.fd, unix.SOL_SOCKET, unix.SO_ERROR)
		}
	}
	begin := l.block * l.size.bytes
	l.mine = true
	l.left = int(binary.NativeEndian.Uint32(l.ring[begin+12:]))
	l.at = begin + int(binary.NativeEndian.Uint32(l.ring[begin+16:]))
	if l.left == 0 {
		return l.nextBlock()
	}
	return nil
}

// status is the word of struct tpacket_block_desc by which a block changes hands.
func (l *live) status() *uint32 {
	return (*uint32)(unsafe.Pointer(&l.ring[l.block*l.size.bytes+8]))
}

// count adds what found no room since it was asked last.
func (l *live) count() {
	if stats, err := unix.GetsockoptTpacketStatsV3(l.fd, unix.SOL_PACKET, unix.PACKET_STATISTICS); err == nil {
		*l.lost += int64(stats.Drops)
	}
}
