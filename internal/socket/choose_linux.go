package socket

import (
	"encoding/binary"
	"fmt"
	"net"
	"os"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Offsets into the packet, from its network header on (SKF_NET_OFF).
const (
	networkHeader = 0xfff00000 // -0x100000
	ipv4Source    = networkHeader + 12
	ipv6Source    = networkHeader + 8
	ipv6Header    = 40 // extension headers before a SYN's TCP header are not looked through
)

// chooser returns the classic BPF program that maps a SYN to a listener's index.
func chooser(choices []Choice) ([]unix.SockFilter, error) {
	var program []bpf.Instruction
	for _, c := range choices {
		program = append(program, block(c)...)
	}
	raw, err := bpf.Assemble(append(program, bpf.RetConstant{}))
	if err != nil {
		return nil, err
	}
	filter := make([]unix.SockFilter, len(raw))
	for i, r := range raw {
		filter[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	return filter, nil
}

// block returns one choice's index, or continues behind itself.
func block(c Choice) []bpf.Instruction {
	version := uint32(6)
	address := c.From.AsSlice()
	source := uint32(ipv6Source)
	if c.From.Is4() {
		version = 4
		source = ipv4Source
	}
	b := []bpf.Instruction{bpf.LoadAbsolute{Off: networkHeader, Size: 1}, bpf.ALUOpConstant{Op: bpf.ALUOpShiftRight,
		Val: 4}}
	var unequal []int // places of comparisons that must hold
	must := func(value uint32) {
		unequal = append(unequal, len(b))
		b = append(b, bpf.JumpIf{Cond: bpf.JumpEqual, Val: value})
	}
	must(version)
	for word := 0; word < len(address); word += 4 {
		b = append(b, bpf.LoadAbsolute{Off: source + uint32(word), Size: 4})
		must(binary.BigEndian.Uint32(address[word:]))
	}
	if len(c.Ports) > 0 {
		if version == 4 {
			b = append(b, bpf.LoadMemShift{Off: networkHeader}, bpf.LoadIndirect{Off: networkHeader, Size: 2})
		} else {
			b = append(b, bpf.LoadAbsolute{Off: networkHeader + ipv6Header, Size: 2})
		}
		last := len(c.Ports) - 1
		for i, port := range c.Ports[:last] {
			b = append(b, bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(port), SkipTrue: uint8(last - i)}) // to the answer
		}
		must(uint32(c.Ports[last]))
	}
	b = append(b, bpf.RetConstant{Val: uint32(c.Index)})
	for _, at := range unequal {
		jump := b[at].(bpf.JumpIf)
		jump.SkipFalse = uint8(len(b) - at - 1)
		b[at] = jump
	}
	return b
}

func chooseListener(l *net.TCPListener, choices []Choice) error {
	program, err := chooser(choices)
	if err != nil {
		return fmt.Errorf("the choice of a listener: %w", err)
	}
	return onListener(l, func(fd int) error {
		return os.NewSyscallError("attach the choice of a listener", unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET,
			unix.SO_ATTACH_REUSEPORT_CBPF, &unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}))
	})
}

func setListener(l *net.TCPListener, o Options) error {
	return onListener(l, func(fd int) error { return applyToSYN(fd, o) })
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
