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
	ipv6Header    = 40 // extension headers before a SYN's TCP header are not looked through
)

// instruction codes of classic BPF.
const (
	loadByte     = unix.BPF_LD | unix.BPF_B | unix.BPF_ABS
	loadHalf     = unix.BPF_LD | unix.BPF_H | unix.BPF_ABS
	loadHalfAtX  = unix.BPF_LD | unix.BPF_H | unix.BPF_IND
	loadWord     = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
	headerLength = unix.BPF_LDX | unix.BPF_B | unix.BPF_MSH // X = 4 × (byte & 15)
	shiftRight   = unix.BPF_ALU | unix.BPF_RSH | unix.BPF_K
	jumpIfEqual  = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
	answer       = unix.BPF_RET | unix.BPF_K
)

// chooser is the classic BPF program that answers a listener's index for a SYN.
func chooser(choices []Choice) []unix.SockFilter {
	var program []unix.SockFilter
	for _, c := range choices {
		program = append(program, block(c)...)
	}
	return append(program, unix.SockFilter{Code: answer})
}

// block answers one choice's index, or goes on behind itself.
func block(c Choice) []unix.SockFilter {
	var b []unix.SockFilter
	var unequal []int // places of comparisons that must hold
	add := func(code uint16, k uint32) { b = append(b, unix.SockFilter{Code: code, K: k}) }
	must := func(value uint32) { unequal = append(unequal, len(b)); add(jumpIfEqual, value) }

	version, address, source := uint32(6), c.From.AsSlice(), uint32(ipv6Source)
	if c.From.Is4() {
		version, source = 4, ipv4Source
	}
	add(loadByte, networkHeader)
	add(shiftRight, 4)
	must(version)
	for word := 0; word < len(address); word += 4 {
		add(loadWord, source+uint32(word))
		must(binary.BigEndian.Uint32(address[word:]))
	}
	if len(c.Ports) > 0 {
		if version == 4 {
			add(headerLength, networkHeader)
			add(loadHalfAtX, networkHeader)
		} else {
			add(loadHalf, networkHeader+ipv6Header)
		}
		last := len(c.Ports) - 1
		for i, port := range c.Ports[:last] {
			add(jumpIfEqual, uint32(port))
			b[len(b)-1].Jt = uint8(last - i) // to the answer
		}
		must(uint32(c.Ports[last]))
	}
	add(answer, uint32(c.Index))
	for _, at := range unequal {
		b[at].Jf = uint8(len(b) - at - 1)
	}
	return b
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
