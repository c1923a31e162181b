package sockops

import (
	"fmt"

	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"
)

// Events of a sock_ops program (enum bpf_sock_ops in include/uapi/linux/bpf.h).
const (
	opConnect  = 3  // BPF_SOCK_OPS_TCP_CONNECT_CB: before the SYN, and so before the window scale
	opActive   = 4  // BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB
	opAccepted = 5  // BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB
	opListen   = 11 // BPF_SOCK_OPS_TCP_LISTEN_CB: accepted sockets inherit from the listener
)

// Offsets in struct bpf_sock_ops, the context of the sock_ops program.
const (
	opsOp         = 0
	opsReply      = 4
	opsFamily     = 20
	opsRemoteIP4  = 24
	opsLocalIP4   = 28
	opsRemoteIP6  = 32
	opsLocalIP6   = 48
	opsRemotePort = 64 // network byte order
	opsLocalPort  = 68 // host byte order
	opsSocket     = 184
)

// Offsets in struct bpf_sockopt, the context of the sockopt programs, and in struct bpf_sock.
const (
	optSocket      = 0
	optValue       = 8
	optValueEnd    = 16
	optLevel       = 24
	optName        = 28
	optLen         = 32
	optRetval      = 36
	socketProtocol = 12
)

// settings maps offsets in the rules map's value to socket options. The value 0 leaves the option unchanged.
var settings = []struct {
	offset      int16
	level, name int32
}{
	{0, unix.SOL_SOCKET, unix.SO_SNDBUF},
	{4, unix.SOL_SOCKET, unix.SO_RCVBUF},
	{8, unix.SOL_TCP, unix.TCP_WINDOW_CLAMP},
	{12, unix.SOL_TCP, unix.TCP_MAXSEG},
	{16, unix.SOL_TCP, unix.TCP_NODELAY},
	{20, unix.SOL_SOCKET, unix.SO_MAX_PACING_RATE},
}

// The rules map's value: settings, the rule's index and the congestion control's name.
const (
	ruleIndex      = 24
	ruleCongestion = 28
	ruleSize       = ruleCongestion + congestionSize
	congestionSize = 16 // TCP_CA_NAME_MAX
)

// The connections map's value. Addresses are 16 bytes, IPv4 mapped into IPv6.
const (
	connOp          = 0
	connLocal       = 4
	connRemote      = 20
	connLocalPort   = 36
	connRemotePort  = 40
	connRule        = 44 // -1: no matching rule
	connSendGranted = 48
	connRecvGranted = 52
	connSendAsked   = 56 // by the program itself
	connRecvAsked   = 60
	connTime        = 64 // established at, CLOCK_MONOTONIC in ns
	connCongestion  = 72
	connSize        = connCongestion + congestionSize
)

// The stack of the sock_ops program, from the frame pointer down.
const (
	stackKey    = -24 // prefix length, remote address: the rules map's key
	stackConn   = stackKey - connSize
	stackCookie = stackConn - 8
	keySize     = 20
)

// The asked map's value: sizes of the program's own calls, or 0.
const (
	askedSend = 0
	askedRecv = 4
	askedSize = 8
)

// sockOps runs at connect(), listen() and when a connection is established. It applies the rule of the destination
// and records the connection with the granted sizes. r6 is the context, r7 the event, r8 the rule or 0.
func sockOps(rules, connections, asked int) asm.Instructions {
	p := asm.Instructions{
		asm.Mov.Reg(asm.R6, asm.R1),
		asm.LoadMem(asm.R7, asm.R6, opsOp, asm.Word),
		asm.Mov.Imm(asm.R1, -1), // default, for events that request a value
		asm.StoreMem(asm.R6, opsReply, asm.R1, asm.Word),
		asm.JEq.Imm(asm.R7, opConnect, "lookup"),
		asm.JEq.Imm(asm.R7, opActive, "lookup"),
		asm.JEq.Imm(asm.R7, opAccepted, "lookup"),
		asm.JNE.Imm(asm.R7, opListen, "out"),
		asm.StoreImm(asm.RFP, stackKey, 128, asm.Word).WithSymbol("lookup"),
	}
	p = append(p, address("remote", stackKey+4, opsRemoteIP4, opsRemoteIP6)...)
	p = append(p,
		asm.LoadMapPtr(asm.R1, rules),
		asm.Mov.Reg(asm.R2, asm.RFP),
		asm.Add.Imm(asm.R2, stackKey),
		asm.FnMapLookupElem.Call(),
		asm.Mov.Reg(asm.R8, asm.R0),
		asm.JEq.Imm(asm.R8, 0, "set"),
		asm.JEq.Imm(asm.R7, opActive, "congestion"), // the rest was set at connect
	)
	for _, s := range settings {
		done := fmt.Sprint("after ", s.offset)
		p = append(p,
			asm.LoadMem(asm.R1, asm.R8, s.offset, asm.Word),
			asm.JEq.Imm(asm.R1, 0, done),
		)
		p = append(p, setsockopt(s.level, s.name, s.offset, 4)...)
		p = append(p, nop(done))
	}
	// The route's control replaces the socket's after the event of connect() (tcp_output.c, tcp_ca_dst_init).
	p = append(p,
		asm.LoadMem(asm.R1, asm.R8, ruleCongestion, asm.Byte).WithSymbol("congestion"),
		asm.JEq.Imm(asm.R1, 0, "set"),
	)
	p = append(p, setsockopt(unix.SOL_TCP, unix.TCP_CONGESTION, ruleCongestion, congestionSize)...)
	p = append(p,
		nop("set"),
		asm.JEq.Imm(asm.R7, opActive, "enter"),
		asm.JNE.Imm(asm.R7, opAccepted, "out"),
		asm.StoreMem(asm.RFP, stackConn+connOp, asm.R7, asm.Word).WithSymbol("enter"),
	)
	p = append(p, address("peer", stackConn+connRemote, opsRemoteIP4, opsRemoteIP6)...)
	p = append(p, address("own", stackConn+connLocal, opsLocalIP4, opsLocalIP6)...)
	p = append(p,
		asm.LoadMem(asm.R1, asm.R6, opsLocalPort, asm.Word),
		asm.StoreMem(asm.RFP, stackConn+connLocalPort, asm.R1, asm.Word),
		asm.LoadMem(asm.R1, asm.R6, opsRemotePort, asm.Word),
		asm.StoreMem(asm.RFP, stackConn+connRemotePort, asm.R1, asm.Word),
		asm.StoreImm(asm.RFP, stackConn+connRule, -1, asm.Word),
		asm.JEq.Imm(asm.R8, 0, "granted"),
		asm.LoadMem(asm.R1, asm.R8, ruleIndex, asm.Word),
		asm.StoreMem(asm.RFP, stackConn+connRule, asm.R1, asm.Word),
		nop("granted"),
	)
	p = append(p, getsockopt(unix.SOL_SOCKET, unix.SO_SNDBUF, stackConn+connSendGranted, 4)...)
	p = append(p, getsockopt(unix.SOL_SOCKET, unix.SO_RCVBUF, stackConn+connRecvGranted, 4)...)
	p = append(p, getsockopt(unix.SOL_TCP, unix.TCP_CONGESTION, stackConn+connCongestion, congestionSize)...)
	p = append(p,
		asm.StoreImm(asm.RFP, stackConn+connSendAsked, 0, asm.Word),
		asm.StoreImm(asm.RFP, stackConn+connRecvAsked, 0, asm.Word),
	)
	return append(p,
		asm.LoadMem(asm.R2, asm.R6, opsSocket, asm.DWord),
		asm.JEq.Imm(asm.R2, 0, "store"),
		asm.LoadMapPtr(asm.R1, asked),
		asm.Mov.Imm(asm.R3, 0),
		asm.Mov.Imm(asm.R4, 0),
		asm.FnSkStorageGet.Call(),
		asm.JEq.Imm(asm.R0, 0, "store"),
		asm.LoadMem(asm.R1, asm.R0, askedSend, asm.Word),
		asm.StoreMem(asm.RFP, stackConn+connSendAsked, asm.R1, asm.Word),
		asm.LoadMem(asm.R1, asm.R0, askedRecv, asm.Word),
		asm.StoreMem(asm.RFP, stackConn+connRecvAsked, asm.R1, asm.Word),
		nop("store"),
		asm.FnKtimeGetNs.Call(),
		asm.StoreMem(asm.RFP, stackConn+connTime, asm.R0, asm.DWord),
		asm.Mov.Reg(asm.R1, asm.R6),
		asm.FnGetSocketCookie.Call(),
		asm.StoreMem(asm.RFP, stackCookie, asm.R0, asm.DWord),
		asm.LoadMapPtr(asm.R1, connections),
		asm.Mov.Reg(asm.R2, asm.RFP),
		asm.Add.Imm(asm.R2, stackCookie),
		asm.Mov.Reg(asm.R3, asm.RFP),
		asm.Add.Imm(asm.R3, stackConn),
		asm.Mov.Imm(asm.R4, 0), // BPF_ANY
		asm.FnMapUpdateElem.Call(),
		asm.Mov.Imm(asm.R0, 1).WithSymbol("out"),
		asm.Return(),
	)
}

// noteBuffers runs at setsockopt(). It records requested SO_SNDBUF and SO_RCVBUF of TCP sockets. With ignore it
// also suppresses the call, so that autotuning or a rule stays in force.
func noteBuffers(asked int, ignore bool) asm.Instructions {
	p := bufferOfTCP()
	p = append(p,
		asm.Mov.Reg(asm.R2, asm.R1),
		asm.LoadMapPtr(asm.R1, asked),
		asm.Mov.Imm(asm.R3, 0),
		asm.Mov.Imm(asm.R4, 1), // BPF_SK_STORAGE_GET_F_CREATE
		asm.FnSkStorageGet.Call(),
		asm.JEq.Imm(asm.R0, 0, "out"),
		asm.LoadMem(asm.R2, asm.R8, 0, asm.Word),
		asm.JNE.Imm(asm.R7, unix.SO_SNDBUF, "receive"),
		asm.StoreMem(asm.R0, askedSend, asm.R2, asm.Word),
		asm.Ja.Label("noted"),
		asm.StoreMem(asm.R0, askedRecv, asm.R2, asm.Word).WithSymbol("receive"),
		nop("noted"),
	)
	if ignore {
		p = append(p,
			asm.Mov.Imm(asm.R1, -1), // optlen -1: the kernel's own code is passed over
			asm.StoreMem(asm.R6, optLen, asm.R1, asm.Word),
		)
	}
	return append(p, passOn()...)
}

// returnRequested runs at getsockopt(). It returns the requested buffer size, doubled as Linux does, because some
// programs refuse a smaller one.
func returnRequested(asked int) asm.Instructions {
	p := bufferOfTCP()
	p = append(p,
		asm.LoadMem(asm.R3, asm.R6, optRetval, asm.Word),
		asm.JNE.Imm(asm.R3, 0, "out"),
		asm.Mov.Reg(asm.R2, asm.R1),
		asm.LoadMapPtr(asm.R1, asked),
		asm.Mov.Imm(asm.R3, 0),
		asm.Mov.Imm(asm.R4, 0),
		asm.FnSkStorageGet.Call(),
		asm.JEq.Imm(asm.R0, 0, "out"),
		asm.LoadMem(asm.R2, asm.R0, askedSend, asm.Word),
		asm.JEq.Imm(asm.R7, unix.SO_SNDBUF, "double"),
		asm.LoadMem(asm.R2, asm.R0, askedRecv, asm.Word),
		asm.JEq.Imm(asm.R2, 0, "out").WithSymbol("double"),
		asm.JGT.Imm(asm.R2, 1<<30-1, "out"),
		asm.LSh.Imm(asm.R2, 1),
		asm.StoreMem(asm.R8, 0, asm.R2, asm.Word),
	)
	return append(p, passOn()...)
}

// bufferOfTCP starts both sockopt programs. It jumps to "out" unless the call sets or gets SO_SNDBUF or SO_RCVBUF
// of a TCP socket as an int. Then r6 is the context, r7 the option, r8 points to the value, r1 to the socket.
func bufferOfTCP() asm.Instructions {
	return asm.Instructions{
		asm.Mov.Reg(asm.R6, asm.R1),
		asm.LoadMem(asm.R2, asm.R6, optLevel, asm.Word),
		asm.JNE.Imm(asm.R2, unix.SOL_SOCKET, "out"),
		asm.LoadMem(asm.R7, asm.R6, optName, asm.Word),
		asm.JEq.Imm(asm.R7, unix.SO_SNDBUF, "buffer"),
		asm.JEq.Imm(asm.R7, unix.SO_RCVBUF, "buffer"),
		asm.Ja.Label("out"),
		asm.LoadMem(asm.R8, asm.R6, optValue, asm.DWord).WithSymbol("buffer"),
		asm.LoadMem(asm.R2, asm.R6, optValueEnd, asm.DWord),
		asm.Mov.Reg(asm.R3, asm.R8),
		asm.Add.Imm(asm.R3, 4),
		asm.JGT.Reg(asm.R3, asm.R2, "out"),
		asm.LoadMem(asm.R1, asm.R6, optSocket, asm.DWord),
		asm.LoadMem(asm.R2, asm.R1, socketProtocol, asm.Word),
		asm.JEq.Imm(asm.R2, unix.IPPROTO_MPTCP, "TCP"),
		asm.JNE.Imm(asm.R2, unix.IPPROTO_TCP, "out"),
		nop("TCP"),
	}
}

// passOn ends both sockopt programs. For values longer than a page, the kernel requires optlen 0 to leave them
// unchanged.
func passOn() asm.Instructions {
	return asm.Instructions{
		asm.Ja.Label("end"),
		asm.LoadMem(asm.R1, asm.R6, optLen, asm.Word).WithSymbol("out"),
		asm.JSLE.Imm(asm.R1, 4096, "end"),
		asm.Mov.Imm(asm.R1, 0),
		asm.StoreMem(asm.R6, optLen, asm.R1, asm.Word),
		asm.Mov.Imm(asm.R0, 1).WithSymbol("end"),
		asm.Return(),
	}
}

// address writes an address as 16 bytes to the stack.
func address(name string, stack, ip4, ip6 int16) asm.Instructions {
	p := asm.Instructions{
		asm.LoadMem(asm.R1, asm.R6, opsFamily, asm.Word),
		asm.JEq.Imm(asm.R1, unix.AF_INET, name+" is IPv4"),
	}
	for i := int16(0); i < 16; i += 4 {
		p = append(p,
			asm.LoadMem(asm.R1, asm.R6, ip6+i, asm.Word),
			asm.StoreMem(asm.RFP, stack+i, asm.R1, asm.Word))
	}
	return append(p,
		asm.Ja.Label(name+" is known"),
		asm.StoreImm(asm.RFP, stack, 0, asm.Word).WithSymbol(name+" is IPv4"),
		asm.StoreImm(asm.RFP, stack+4, 0, asm.Word),
		asm.StoreImm(asm.RFP, stack+8, 0, asm.Word),
		asm.StoreImm(asm.RFP, stack+10, -1, asm.Half),
		asm.LoadMem(asm.R1, asm.R6, ip4, asm.Word),
		asm.StoreMem(asm.RFP, stack+12, asm.R1, asm.Word),
		nop(name+" is known"),
	)
}

func setsockopt(level, name int32, offset int16, size int32) asm.Instructions {
	return asm.Instructions{
		asm.Mov.Reg(asm.R1, asm.R6),
		asm.Mov.Imm(asm.R2, level),
		asm.Mov.Imm(asm.R3, name),
		asm.Mov.Reg(asm.R4, asm.R8),
		asm.Add.Imm(asm.R4, int32(offset)),
		asm.Mov.Imm(asm.R5, size),
		asm.FnSetsockopt.Call(),
	}
}

func getsockopt(level, name int32, stack int16, size int32) asm.Instructions {
	var p asm.Instructions
	for i := int16(0); i < int16(size); i += 4 {
		p = append(p, asm.StoreImm(asm.RFP, stack+i, 0, asm.Word))
	}
	return append(p,
		asm.Mov.Reg(asm.R1, asm.R6),
		asm.Mov.Imm(asm.R2, level),
		asm.Mov.Imm(asm.R3, name),
		asm.Mov.Reg(asm.R4, asm.RFP),
		asm.Add.Imm(asm.R4, int32(stack)),
		asm.Mov.Imm(asm.R5, size),
		asm.FnGetsockopt.Call(),
	)
}

// nop carries a label.
func nop(label string) asm.Instruction {
	return asm.Mov.Reg(asm.R9, asm.R6).WithSymbol(label)
}
