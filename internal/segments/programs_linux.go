package segments

import (
	"github.com/cilium/ebpf/asm"

	"github.com/fullpipe-net/fullpipe/internal/bpf"
	"github.com/fullpipe-net/fullpipe/internal/turns"
)

// The record and the bulk state are on the stack, from the frame pointer down.
const (
	record  = -recordSize
	passed  = record - bulkSize
	scratch = passed - 8 // a pointer that the kernel read
)

// An entry of the map of bulk transfers.
const (
	bulkPayload   = 0 // since the direction changed
	bulkDirection = 8
	bulkTime      = 16 // of the last record
	bulkSize      = 24
)

// The registers of both programs.
const (
	sk     = asm.R6
	skb    = asm.R7
	tp     = asm.R8
	header = asm.R9 // the address of the TCP header, later the payload
)

// layout returns the offset of a member of a structure.
type layout func(structure string, names ...string) int16

// arrival runs for each segment that an established connection receives, before it is processed:
//
//	tcp_probe(struct sock *sk, struct sk_buff *skb)
//
// The state of what was sent is complete then: bytes_acked counts the SYN at the end that sent one.
func arrival(at layout, events *bpf.Events, maps maps) asm.Instructions {
	code := asm.Instructions{
		asm.LoadMem(sk, asm.R1, 0, asm.DWord),
		asm.LoadMem(skb, asm.R1, 8, asm.DWord),
	}
	code = append(code,
		asm.Mov.Reg(asm.R1, sk),
		asm.FnSkcToTcpSock.Call(),
		asm.JEq.Imm(asm.R0, 0, "out"),
		asm.Mov.Reg(tp, asm.R0))
	code = append(code, begin(at, maps)...)
	code = append(code,
		asm.LoadMem(asm.R1, skb, at("sk_buff", "len"), asm.Word),
		asm.LoadMem(asm.R2, tp, at("tcp_sock", "tcp_header_len"), asm.Half),
		asm.JGT.Reg(asm.R1, asm.R2, "needed"), // payload, or a SACK option
		asm.LoadMem(asm.R1, tp, at("inet_connection_sock", "icsk_ca_state"), asm.Byte),
		asm.And.Imm(asm.R1, stateBits),
		asm.JNE.Imm(asm.R1, 0, "needed"),
		asm.LoadMem(asm.R1, tp, at("tcp_sock", "tlp_high_seq"), asm.Word),
		asm.JNE.Imm(asm.R1, 0, "needed"),
		asm.LoadMem(asm.R1, tp, at("tcp_sock", "snd_wnd"), asm.Word))
	code = append(code, leaveOutAck(maps)...)
	code = append(code,
		asm.LoadMem(asm.R0, sk, at("sock", "__sk_common", "skc_cookie"), asm.DWord).WithSymbol("needed"),
		asm.JNE.Imm(asm.R0, 0, "known"),
		asm.Mov.Reg(asm.R1, sk),
		asm.FnGetSocketCookie.Call(),
		asm.StoreMem(asm.RFP, record+recCookie, asm.R0, asm.DWord).WithSymbol("known"),
		asm.LoadMem(asm.R1, tp, at("tcp_sock", "rtt_min")+at("minmax", "s")+at("minmax_sample", "v"), asm.Word),
		asm.StoreMem(asm.RFP, record+recMinRTT, asm.R1, asm.Word),
		asm.LoadMem(asm.R1, tp, at("tcp_sock", "mss_cache"), asm.Word),
		asm.StoreMem(asm.RFP, record+recMSS, asm.R1, asm.Word),
		asm.LoadMem(asm.R1, tp, scales(at), asm.Byte),
		asm.StoreMem(asm.RFP, record+recScales, asm.R1, asm.Byte),
		asm.LoadMem(header, skb, at("sk_buff", "data"), asm.DWord),
		asm.LoadMem(asm.R1, skb, at("sk_buff", "len"), asm.Word),
		asm.StoreMem(asm.RFP, record+recLength, asm.R1, asm.Word),
		asm.LoadMem(asm.R1, tp, at("tcp_sock", "bytes_acked"), asm.DWord),
		asm.LoadMem(asm.R2, tp, at("tcp_sock", "snd_nxt"), asm.Word),
		asm.Add.Reg(asm.R1, asm.R2),
		asm.LoadMem(asm.R2, tp, at("tcp_sock", "snd_una"), asm.Word),
		asm.Sub.Reg(asm.R1, asm.R2),
		asm.LoadMem(asm.R2, tp, at("tcp_sock", "bytes_sent"), asm.DWord),
		asm.Sub.Reg(asm.R1, asm.R2),
		asm.LoadMem(asm.R2, tp, at("tcp_sock", "bytes_retrans"), asm.DWord),
		asm.Add.Reg(asm.R1, asm.R2),
		asm.StoreMem(asm.RFP, record+recSYN, asm.R1, asm.Word),
	)
	return append(code, finish(at, events, maps, 0)...)
}

// departure runs for each packet that enters a device's queue:
//
//	net_dev_queue(struct sk_buff *skb)
//
// It selects those of TCP sockets on their way into the first device: a tunnel's or a bond's second one has another.
func departure(at layout, events *bpf.Events, maps maps) asm.Instructions {
	code := asm.Instructions{
		asm.LoadMem(skb, asm.R1, 0, asm.DWord),
		asm.LoadMem(sk, skb, at("sk_buff", "sk"), asm.DWord),
		asm.JEq.Imm(sk, 0, "out"),
	}
	code = append(code,
		asm.LoadMem(asm.R1, sk, at("sock", "__sk_common", "skc_state"), asm.Byte),
		asm.JEq.Imm(asm.R1, stateTimeWait, "out"),
		asm.JEq.Imm(asm.R1, stateSynReceive, "out"),
		asm.LoadMem(asm.R1, sk, at("sock", "sk_protocol"), asm.Half),
		asm.JNE.Imm(asm.R1, protocolTCP, "out"))
	code = append(code, begin(at, maps)...)
	code = append(code,
		asm.LoadMem(asm.R1, sk, at("sock", "sk_dst_cache"), asm.DWord),
		asm.JEq.Imm(asm.R1, 0, "out"),
		asm.LoadMem(asm.R1, asm.R1, at("dst_entry", "dev"), asm.DWord),
		asm.LoadMem(asm.R2, skb, at("sk_buff", "dev"), asm.DWord),
		asm.JNE.Reg(asm.R1, asm.R2, "out"),
		asm.LoadMem(asm.R1, skb, at("sk_buff", "truesize"), asm.Word),
		asm.JNE.Imm(asm.R1, pureAck, "needed"))
	code = append(code, read(scratch, 4, sk, at("tcp_sock", "rcv_wnd"))...)
	code = append(code, asm.LoadMem(asm.R1, asm.RFP, scratch, asm.Word))
	code = append(code, leaveOutAck(maps)...)
	code = append(code, asm.Mov.Imm(asm.R1, 0).WithSymbol("needed"))
	code = append(code, read(record+recScales, 1, sk, scales(at))...)
	code = append(code, read(record+recState, 1, sk, at("inet_connection_sock", "icsk_ca_state"))...)
	code = append(code,
		asm.LoadMem(header, skb, at("sk_buff", "head"), asm.DWord),
		asm.LoadMem(asm.R1, skb, at("sk_buff", "transport_header"), asm.Half),
		asm.Add.Reg(header, asm.R1),
		asm.LoadMem(asm.R1, skb, at("sk_buff", "len"), asm.Word),
		asm.LoadMem(asm.R2, skb, at("sk_buff", "data"), asm.DWord),
		asm.Add.Reg(asm.R1, asm.R2),
		asm.Sub.Reg(asm.R1, header),
		asm.StoreMem(asm.RFP, record+recLength, asm.R1, asm.Word),
		asm.StoreImm(asm.RFP, record+recLeaves, 1, asm.Byte),
		asm.StoreImm(asm.RFP, record+recSYN, synUnknown, asm.Word),
	)
	return append(code, finish(at, events, maps, 1)...)
}

// The states of sockets that are no full sockets (include/net/tcp_states.h).
const (
	stateTimeWait   = 6
	stateSynReceive = 12 // TCP_NEW_SYN_RECV
	protocolTCP     = 6
)

// scales is the offset of both window scales in a TCP socket, a byte.
func scales(at layout) int16 {
	return at("tcp_sock", "rx_opt") + at("tcp_options_received", "snd_wscale")
}

// maps are the descriptors of the programs' maps: payload in one direction by socket, and a mask. Sockets whose
// hash has a bit of the mask are left out.
type maps struct{ bulk, mask int }

const (
	stateBits = 31 // of the byte with icsk_ca_state
	pureAck   = 2  // the size that the kernel gives acknowledgements without payload (skb_set_tcp_pure_ack)
	// An acknowledgement of at most fewBytes is not needed while the window has wideWindow, unless it comes later than
	// soon: the kernel's least round trip is in the records. A later one may be delayed, or prompt the next segment.
	fewBytes   = 2 * 1460
	wideWindow = 32 << 10
	soon       = int32(turns.MinWait) // ns
)

// leaveOutAck ends the program for an acknowledgement without payload of a short message. r1 is the window that it
// acknowledges into. It jumps to the label needed otherwise.
func leaveOutAck(maps maps) asm.Instructions {
	return asm.Instructions{
		asm.JLT.Imm(asm.R1, wideWindow, "needed"),
		asm.LoadMapPtr(asm.R1, maps.bulk),
		asm.Mov.Reg(asm.R2, asm.RFP),
		asm.Add.Imm(asm.R2, record+recSocket),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, "needed"),
		asm.LoadMem(asm.R1, asm.R0, bulkPayload, asm.DWord),
		asm.JGT.Imm(asm.R1, fewBytes, "needed"),
		asm.LoadMem(header, asm.R0, bulkTime, asm.DWord),
		asm.FnKtimeGetNs.Call(),
		asm.Sub.Reg(asm.R0, header),
		asm.JLT.Imm(asm.R0, soon, "out"),
	}
}

// begin leaves out the sockets of the mask, writes the socket's address and clears the fields that only one program
// has. It changes r1 and r2.
func begin(at layout, maps maps) asm.Instructions {
	return asm.Instructions{
		asm.LoadMapValue(asm.R1, maps.mask, 0),
		asm.LoadMem(asm.R1, asm.R1, 0, asm.Word),
		asm.LoadMem(asm.R2, sk, at("sock", "__sk_common", "skc_hash"), asm.Word),
		asm.And.Reg(asm.R2, asm.R1),
		asm.JNE.Imm(asm.R2, 0, "out"),
		asm.StoreMem(asm.RFP, record+recSocket, sk, asm.DWord),
		asm.Mov.Imm(asm.R1, 0),
		asm.StoreMem(asm.RFP, record+recCookie, asm.R1, asm.DWord),
		asm.StoreMem(asm.RFP, record+recMinRTT, asm.R1, asm.DWord),
		asm.StoreMem(asm.RFP, record+recLeaves, asm.R1, asm.DWord), // and the fields up to recBefore
	}
}

// read copies size bytes at a pointer plus an offset to the stack.
func read(to int16, size int32, from asm.Register, offset int16) asm.Instructions {
	return asm.Instructions{
		asm.Mov.Reg(asm.R3, from),
		asm.Add.Imm(asm.R3, int32(offset)),
		asm.Mov.Reg(asm.R1, asm.RFP),
		asm.Add.Imm(asm.R1, int32(to)),
		asm.Mov.Imm(asm.R2, size),
		asm.FnProbeReadKernel.Call(),
	}
}

// finish copies the header and writes the record to the ring, unless it belongs to a bulk transfer that goes by.
func finish(at layout, events *bpf.Events, maps maps, leaves int32) asm.Instructions {
	const payload = header
	const now = tp // which is not needed any more
	code := asm.Instructions{
		asm.FnKtimeGetNs.Call(),
		asm.Mov.Reg(now, asm.R0),
		asm.StoreMem(asm.RFP, record+recTime, now, asm.DWord),
		asm.LoadMem(asm.R1, skb, at("sk_buff", "protocol"), asm.Half),
		asm.StoreMem(asm.RFP, record+recProtocol, asm.R1, asm.Half),
	}
	code = append(code, read(record+recBefore, beforeBytes+headerBytes, header, -beforeBytes)...)
	code = append(code,
		asm.JNE.Imm(asm.R0, 0, "out"),
		asm.LoadMem(asm.R1, asm.RFP, record+recHeader+12, asm.Byte),
		asm.RSh.Imm(asm.R1, 4),
		asm.LSh.Imm(asm.R1, 2),
		asm.LoadMem(payload, asm.RFP, record+recLength, asm.Word),
		asm.Sub.Reg(payload, asm.R1),

		asm.LoadMapPtr(asm.R1, maps.bulk),
		asm.Mov.Reg(asm.R2, asm.RFP),
		asm.Add.Imm(asm.R2, record+recSocket),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, "first"),
		asm.StoreMem(asm.R0, bulkTime, now, asm.DWord),
		asm.LoadMem(asm.R1, asm.R0, bulkPayload, asm.DWord),
		asm.JNE.Imm(payload, 0, "data"),
		asm.JGT.Imm(asm.R1, turns.MaxUnskipped, "out"),
		asm.Ja.Label("emit"),
		asm.LoadMem(asm.R2, asm.R0, bulkDirection, asm.DWord).WithSymbol("data"),
		asm.JEq.Imm(asm.R2, leaves, "same"),
		asm.Mov.Imm(asm.R2, leaves),
		asm.StoreMem(asm.R0, bulkDirection, asm.R2, asm.DWord),
		asm.Mov.Imm(asm.R1, 0),
		asm.JGT.Imm(asm.R1, turns.MaxUnskipped, "out").WithSymbol("same"),
		asm.Add.Reg(asm.R1, payload),
		asm.StoreMem(asm.R0, bulkPayload, asm.R1, asm.DWord),
		asm.Ja.Label("emit"),
		asm.StoreMem(asm.RFP, passed+bulkPayload, payload, asm.DWord).WithSymbol("first"),
		asm.Mov.Imm(asm.R1, leaves),
		asm.StoreMem(asm.RFP, passed+bulkDirection, asm.R1, asm.DWord),
		asm.StoreMem(asm.RFP, passed+bulkTime, now, asm.DWord),
		asm.LoadMapPtr(asm.R1, maps.bulk),
		asm.Mov.Reg(asm.R2, asm.RFP),
		asm.Add.Imm(asm.R2, record+recSocket),
		asm.Mov.Reg(asm.R3, asm.RFP),
		asm.Add.Imm(asm.R3, passed),
		asm.Mov.Imm(asm.R4, 0),
		asm.FnMapUpdateElem.Call(),
	)
	emit := events.Emit(record, recordSize)
	emit[0] = emit[0].WithSymbol("emit")
	code = append(code, emit...)
	return append(code,
		asm.Mov.Imm(asm.R0, 0).WithSymbol("out"),
		asm.Return(),
	)
}
