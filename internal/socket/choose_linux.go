package socket

import (
	"encoding/binary"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// Offsets into the packet, from its network header on (SKF_NET_OFF).
const (
	networkHeader = 0xfff00000 // -0x100000
	ipv4Source    = networkHeader + 12
	ipv6Source    = networkHeader + 8
)

// chooser is the classic BPF program that answers a listener's index for a SYN.
func chooser(choices []Choice) []unix.SockFilter {
	load := func(at uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at}
	}
	unless := func(value uint32, skip int) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: uint8(skip), K: value}
	}
	answer := func(index int) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: uint32(index)}
	}

	program := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_B | unix.BPF_ABS, K: networkHeader},
		{Code: unix.BPF_ALU | unix.BPF_RSH | unix.BPF_K, K: 4},
		{Code: unix.BPF_MISC | unix.BPF_TAX},
	}
	version := unix.SockFilter{Code: unix.BPF_MISC | unix.BPF_TXA}
	for _, c := range choices {
		if c.From.Is4() {
			a := c.From.As4()
			program = append(program, version, unless(4, 3),
				load(ipv4Source), unless(binary.BigEndian.Uint32(a[:]), 1), answer(c.Index))
			continue
		}
		a := c.From.As16()
		program = append(program, version, unless(6, 9))
		for word := range 4 {
			program = append(program, load(ipv6Source+uint32(4*word)),
				unless(binary.BigEndian.Uint32(a[4*word:]), 2*(3-word)+1))
		}
		program = append(program, answer(c.Index))
	}
	return append(program, answer(0))
}

func chooseListener(l *net.TCPListener, choices []Choice) error {
	program := chooser(choices)
	return onListener(l, func(fd int) error {
		return os.NewSyscallError("attach the choice of a listener", unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET,
			unix.SO_ATTACH_REUSEPORT_CBPF, &unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}))
	})
}

func setListenBuffer(l *net.TCPListener, bytes int) error {
	return onListener(l, func(fd int) error { return setInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, "SO_RCVBUF", bytes) })
}

func onListener(l *net.TCPListener, do func(fd int) error) error {
	raw, err := l.SyscallConn()
	if err != nil {
		return err
	}
	if cerr := raw.Control(func(fd uintptr) { err = do(int(fd)) }); cerr != nil {
		return cerr
	}
	return err
}
