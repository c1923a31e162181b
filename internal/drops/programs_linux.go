package drops

import (
	"github.com/cilium/ebpf/asm"

	"github.com/fullpipe-net/fullpipe/internal/bpf"
)

// The records of both programs.
const (
	recTime      = 0  // CLOCK_MONOTONIC in ns
	recKind      = 8  // kindDrop or kindRetransmission
	recPort      = 10 // a drop's: of the socket that sends it, host byte order; 0: none
	recReason    = 12 // a drop's; of a retransmission the error that its transmission returned
	recNamespace = 16
	recLength    = 20 // a drop's bytes from the IP header; a retransmission's segments
	// A retransmission's range; a drop's: of the first segment that recPort has not yet sent.
	recSeq      = 24
	recEnd      = 28
	recFamily   = 32
	recSource   = 34 // port, host byte order
	recTarget   = 36 // port, network byte order
	recFrom     = 40
	recTo       = 56
	recDevice   = 32
	recHeaders  = 48
	headerBytes = 80 // at least lost.HeaderBytes, in words
	recordSize  = recHeaders + headerBytes

	kindDrop           = 1
	kindRetransmission = 2
)

// The stack, from the frame pointer down.
const (
	record  = -recordSize
	scratch = record - 8 // a pointer or a number that the kernel read
	output  = scratch - 8
)

// maxReason is the greatest reason of the kernel's own. Greater ones belong to subsystems such as
// mac80211 and Open vSwitch (include/net/dropreason.h).
const maxReason = 255

// retransmission runs for each retransmission, after the kernel has transmitted it or failed to:
//
//	tcp_retransmit_skb(const struct sock *sk, const struct sk_buff *skb, int err)
//
// err exists if hasError (Linux 6.15). Before, the kernel reports successful ones only.
func retransmission(at layout, events *bpf.Events, hasError bool) asm.Instructions {
	const sk, skb = asm.R7, asm.R8
	field := func(name string, plus int16, size asm.Size, to int16) asm.Instructions {
		return asm.Instructions{
			asm.LoadMem(asm.R1, sk, at("sock", "__sk_common", name)+plus, size),
			asm.StoreMem(asm.RFP, record+to+plus, asm.R1, size)}
	}
	block := func(name string, size asm.Size, to int16) asm.Instructions {
		return asm.Instructions{
			asm.LoadMem(asm.R1, skb, at("sk_buff", "cb")+at("tcp_skb_cb", name), size),
			asm.StoreMem(asm.RFP, record+to, asm.R1, asm.Word)}
	}
	code := asm.Instructions{
		asm.LoadMem(sk, asm.R1, 0, asm.DWord),
		asm.LoadMem(skb, asm.R1, 8, asm.DWord),
		asm.Mov.Reg(asm.R9, asm.R1),
	}
	code = append(code, begin(kindRetransmission)...)
	if hasError {
		code = append(code,
			asm.LoadMem(asm.R1, asm.R9, 16, asm.DWord),
			asm.StoreMem(asm.RFP, record+recReason, asm.R1, asm.Word))
	}
	code = append(code, block("seq", asm.Word, recSeq)...)
	code = append(code, block("end_seq", asm.Word, recEnd)...)
	code = append(code, block("tcp_gso_segs", asm.Half, recLength)...)
	code = append(code, field("skc_num", 0, asm.Half, recSource)...)
	code = append(code, field("skc_dport", 0, asm.Half, recTarget)...)
	code = append(code,
		asm.LoadMem(asm.R1, sk, at("sock", "__sk_common", "skc_net", "net"), asm.DWord),
		asm.LoadMem(asm.R1, asm.R1, at("net", "ns", "inum"), asm.Word),
		asm.StoreMem(asm.RFP, record+recNamespace, asm.R1, asm.Word))
	code = append(code, field("skc_family", 0, asm.Half, recFamily)...)
	code = append(code, asm.JEq.Imm(asm.R1, familyIPv6, "six"))
	code = append(code, field("skc_rcv_saddr", 0, asm.Word, recFrom)...)
	code = append(code, field("skc_daddr", 0, asm.Word, recTo)...)
	code = append(code, asm.Ja.Label("emit"))
	six := asm.Instructions{}
	for _, half := range []int16{0, 8} {
		six = append(six, field("skc_v6_rcv_saddr", half, asm.DWord, recFrom)...)
		six = append(six, field("skc_v6_daddr", half, asm.DWord, recTo)...)
	}
	six[0] = six[0].WithSymbol("six")
	code = append(code, six...)
	return append(code, finish(events)...)
}

// drop runs for each packet that the kernel frees without delivering it. It selects a protocol by the
// IP header:
//
//	kfree_skb(struct sk_buff *skb, void *location, enum skb_drop_reason reason, struct sock *rx_sk)
//
// wanted is a map of a byte for each reason. rx_sk exists if hasSocket (Linux 6.11). protocol is TCP
// or UDP.
func drop(at layout, events *bpf.Events, wanted int, hasSocket bool, protocol int32) asm.Instructions {
	const context, skb, reason, header = asm.R6, asm.R7, asm.R8, asm.R9
	code := asm.Instructions{
		asm.Mov.Reg(context, asm.R1),
		asm.LoadMem(reason, context, 16, asm.DWord),
		asm.JGT.Imm(reason, maxReason, "wanted"),
		asm.LoadMapValue(asm.R1, wanted, 0),
		asm.Add.Reg(asm.R1, reason),
		asm.LoadMem(asm.R1, asm.R1, 0, asm.Byte),
		asm.JEq.Imm(asm.R1, 0, "out"),
		asm.LoadMem(skb, context, 0, asm.DWord).WithSymbol("wanted"),
	}
	code = append(code, begin(kindDrop)...)
	code = append(code,
		asm.StoreMem(asm.RFP, record+recReason, reason, asm.Word),
		// A packet that no protocol has seen yet has no network header: then its data begins there.
		asm.LoadMem(asm.R8, skb, at("sk_buff", "data"), asm.DWord),
		asm.Mov.Reg(header, asm.R8),
		asm.LoadMem(asm.R1, skb, at("sk_buff", "network_header"), asm.Half),
		asm.JEq.Imm(asm.R1, 0, "found"),
		asm.LoadMem(header, skb, at("sk_buff", "head"), asm.DWord),
		asm.Add.Reg(header, asm.R1),
		asm.LoadMem(asm.R1, skb, at("sk_buff", "len"), asm.Word).WithSymbol("found"),
		asm.Add.Reg(asm.R1, asm.R8),
		asm.Sub.Reg(asm.R1, header),
		asm.StoreMem(asm.RFP, record+recLength, asm.R1, asm.Word))
	code = append(code, read(record+recHeaders, headerBytes, header, 0)...)
	code = append(code,
		asm.JNE.Imm(asm.R0, 0, "out"),
		asm.LoadMem(asm.R1, asm.RFP, record+recHeaders, asm.Byte),
		asm.RSh.Imm(asm.R1, 4),
		asm.LoadMem(asm.R2, asm.RFP, record+recHeaders+9, asm.Byte),
		asm.JEq.Imm(asm.R1, 4, "protocol"),
		asm.LoadMem(asm.R2, asm.RFP, record+recHeaders+6, asm.Byte),
		asm.JNE.Imm(asm.R1, 6, "out"),
		asm.JNE.Imm(asm.R2, protocol, "out").WithSymbol("protocol"))
	code = append(code, unsent(at, skb, asm.R9, asm.R8)...)
	device := asm.Instructions{}
	if hasSocket {
		device = asm.Instructions{
			asm.LoadMem(asm.R9, context, 24, asm.DWord),
			asm.JNE.Imm(asm.R9, 0, "socket")}
	}
	device = append(device, read(scratch, 8, skb, at("sk_buff", "dev"))...)
	device[0] = device[0].WithSymbol("device")
	code = append(code, device...)
	code = append(code,
		asm.LoadMem(asm.R9, asm.RFP, scratch, asm.DWord),
		asm.JEq.Imm(asm.R9, 0, "sender"))
	code = append(code, read(record+recDevice, 16, asm.R9, at("net_device", "name"))...)
	code = append(code, read(scratch, 8, asm.R9, at("net_device", "nd_net", "net"))...)
	code = append(code, asm.Ja.Label("namespace"))
	sender := read(scratch, 8, skb, at("sk_buff", "sk"))
	sender[0] = sender[0].WithSymbol("sender")
	code = append(code, sender...)
	code = append(code,
		asm.LoadMem(asm.R9, asm.RFP, scratch, asm.DWord),
		asm.JEq.Imm(asm.R9, 0, "emit"))
	ofSocket := read(scratch, 8, asm.R9, at("sock", "__sk_common", "skc_net", "net"))
	ofSocket[0] = ofSocket[0].WithSymbol("socket")
	code = append(code, ofSocket...)
	code = append(code,
		asm.LoadMem(asm.R9, asm.RFP, scratch, asm.DWord).WithSymbol("namespace"),
		asm.JEq.Imm(asm.R9, 0, "emit"))
	code = append(code, read(record+recNamespace, 4, asm.R9, at("net", "ns", "inum"))...)
	return append(code, finish(events)...)
}

// The states of sockets that are no full sockets (include/net/tcp_states.h).
const (
	stateTimeWait   = 6
	stateSynReceive = 12 // TCP_NEW_SYN_RECV
)

// unsent writes the port of the socket that sends a packet, and the range of its first segment that
// TCP has not sent: while TCP transmits a segment for the first time, it is still that one. It goes
// to the label device where there is none, and for a packet that has left the device that TCP gave it
// to: a bridge, for instance, does not return that one of its ports dropped the packet.
func unsent(at layout, skb, socket, segment asm.Register) asm.Instructions {
	queue := at("sock", "sk_write_queue")
	code := read(scratch, 8, skb, at("sk_buff", "sk"))
	code = append(code,
		asm.LoadMem(socket, asm.RFP, scratch, asm.DWord),
		asm.JEq.Imm(socket, 0, "device"))
	code = append(code, read(scratch, 1, socket, at("sock", "__sk_common", "skc_state"))...)
	code = append(code,
		asm.LoadMem(asm.R1, asm.RFP, scratch, asm.Byte),
		asm.JEq.Imm(asm.R1, stateTimeWait, "device"),
		asm.JEq.Imm(asm.R1, stateSynReceive, "device"))
	code = append(code, read(scratch, 8, socket, at("sock", "sk_dst_cache"))...)
	code = append(code, asm.LoadMem(segment, asm.RFP, scratch, asm.DWord))
	code = append(code, read(output, 8, segment, at("dst_entry", "dev"))...)
	code = append(code, read(scratch, 8, skb, at("sk_buff", "dev"))...)
	code = append(code,
		asm.LoadMem(asm.R1, asm.RFP, scratch, asm.DWord),
		asm.JEq.Imm(asm.R1, 0, "not passed on"),
		asm.LoadMem(asm.R2, asm.RFP, output, asm.DWord),
		asm.JNE.Reg(asm.R1, asm.R2, "device"))
	next := read(scratch, 8, socket, queue+at("sk_buff_head", "next"))
	next[0] = next[0].WithSymbol("not passed on")
	code = append(code, next...)
	code = append(code,
		asm.LoadMem(segment, asm.RFP, scratch, asm.DWord),
		asm.Mov.Reg(asm.R1, socket),
		asm.Add.Imm(asm.R1, int32(queue)),
		asm.JEq.Reg(segment, asm.R1, "device"))
	code = append(code, read(record+recPort, 2, socket, at("sock", "__sk_common", "skc_num"))...)
	for to, name := range map[int16]string{recSeq: "seq", recEnd: "end_seq"} {
		code = append(code, read(record+to, 4, segment, at("sk_buff", "cb")+at("tcp_skb_cb", name))...)
	}
	return code
}

// layout returns the offset of a member of a structure.
type layout func(structure string, names ...string) int16

// begin clears the record and writes its kind. It changes r1.
func begin(kind int64) (code asm.Instructions) {
	code = asm.Instructions{asm.Mov.Imm(asm.R1, 0)}
	for offset := int16(0); offset < recordSize; offset += 8 {
		code = append(code, asm.StoreMem(asm.RFP, record+offset, asm.R1, asm.DWord))
	}
	return append(code, asm.StoreImm(asm.RFP, record+recKind, kind, asm.Half))
}

// read copies size bytes at a pointer plus an offset to the stack. r0 is 0 if the kernel could.
func read(to int16, size int32, from asm.Register, offset int16) asm.Instructions {
	return asm.Instructions{
		asm.Mov.Reg(asm.R1, asm.RFP),
		asm.Add.Imm(asm.R1, int32(to)),
		asm.Mov.Imm(asm.R2, size),
		asm.Mov.Reg(asm.R3, from),
		asm.Add.Imm(asm.R3, int32(offset)),
		asm.FnProbeReadKernel.Call(),
	}
}

// finish writes the record to the ring.
func finish(events *bpf.Events) asm.Instructions {
	code := asm.Instructions{
		asm.FnKtimeGetNs.Call().WithSymbol("emit"),
		asm.StoreMem(asm.RFP, record+recTime, asm.R0, asm.DWord),
	}
	code = append(code, events.Emit(record, recordSize)...)
	return append(code,
		asm.Mov.Imm(asm.R0, 0).WithSymbol("out"),
		asm.Return(),
	)
}
