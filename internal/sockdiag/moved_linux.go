package sockdiag

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/fullpipe-net/fullpipe/internal/bpf"
)

// Moved finds the TCP sockets of this process's network namespace whose state may have changed since the last call, by
// an eBPF iterator over them (net/ipv4/tcp_ipv4.c, bpf_iter_tcp; Linux 5.12 with BTF). For an idle socket it reads a
// few lines of memory, where a dump reads and copies all. It is not safe for concurrent use.
type Moved struct {
	bpf.Set
	iter    *link.Iter
	times   *ebpf.Map // one passTimes
	records *bufio.Reader
}

// passTimes is shared with the program: the lower 32 bits of jiffies, as the kernel stores them in sockets.
type passTimes struct {
	Since, Began uint32 // a stamp from Since on is news; Began is set by the first socket of a pass
}

// movedRecord is what the program writes of a socket: cookie, family, local port in the host's order,
// far port in the network's, interface, local and far address.
const (
	recordFamily, recordLocal, recordRemote = 8, 10, 12
	recordInterface, recordFrom, recordTo   = 16, 24, 40
	movedRecord                             = 56
)

// OpenMoved needs CAP_BPF and CAP_PERFMON. It selects sockets of the given states. An established socket that no
// process has open is reported each time, since it may be accepted.
func OpenMoved(states States) (*Moved, error) {
	m := &Moved{}
	var err error
	m.times, err = m.Map(ebpf.MapSpec{Name: "times", Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: 1})
	var code asm.Instructions
	if err == nil {
		code, err = movedProgram(states, m.times.FD())
	}
	if err == nil {
		m.iter, err = m.AttachIterator(bpf.IterTCP, "tcp", code)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("eBPF tcp iterator: %w", err), m.Close())
	}
	return m, nil
}

// Each calls each with every socket that has sent or received anything since the last call began, that has unread,
// unsent or unacknowledged data, or that no process has opened yet. The first call may report all sockets. It is not
// atomic.
func (m *Moved) Each(each func(ID)) error {
	err := m.pass(each)
	if err != nil {
		return fmt.Errorf("eBPF tcp iterator: %w", err)
	}
	return nil
}

// Begin makes the next call of Each report the sockets that move from now on. It is not needed before the first call,
// which reports all.
func (m *Moved) Begin() error {
	err := m.open(func(file io.Reader) error {
		// The first socket sets the time; the records are discarded.
		var one [movedRecord]byte
		_, err := file.Read(one[:])
		if err == io.EOF {
			err = nil
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("eBPF tcp iterator: %w", err)
	}
	return nil
}

// jiffiesSeen is how many jiffies a processor may be late to see time go on.
const jiffiesSeen = 2

func (m *Moved) pass(each func(ID)) error {
	return m.open(func(file io.Reader) error {
		if m.records == nil {
			m.records = bufio.NewReaderSize(nil, bufferSize)
		}
		m.records.Reset(file)
		var one [movedRecord]byte
		for {
			switch _, err := io.ReadFull(m.records, one[:]); {
			case err == io.EOF:
				return nil
			case err != nil:
				return err
			}
			each(idOf(&one))
		}
	})
}

// open begins a pass. read reads its records.
func (m *Moved) open(read func(io.Reader) error) error {
	var times passTimes
	if err := m.times.Lookup(uint32(0), &times); err != nil {
		return err
	}
	if times.Began != 0 { // else the last pass met no socket
		times = passTimes{Since: times.Began - jiffiesSeen}
	}
	if err := m.times.Put(uint32(0), times); err != nil {
		return err
	}
	file, err := m.iter.Open()
	if err != nil {
		return err
	}
	defer file.Close()
	return read(patient{file})
}

// patient reads on where an iterator has passed a million sockets without a record (bpf_seq_read,
// kernel/bpf/bpf_iter.c).
type patient struct{ io.Reader }

func (p patient) Read(b []byte) (int, error) {
	for {
		n, err := p.Reader.Read(b)
		if n > 0 || !errors.Is(err, unix.EAGAIN) {
			return n, err
		}
	}
}

// idOf makes struct inet_diag_sockid of a record.
func idOf(b *[movedRecord]byte) (id ID) {
	id.family = byte(ne.Uint16(b[recordFamily:]))
	be.PutUint16(id.raw[0:], ne.Uint16(b[recordLocal:]))
	copy(id.raw[2:4], b[recordRemote:])
	copy(id.raw[4:36], b[recordFrom:])
	copy(id.raw[36:40], b[recordInterface:])
	cookie := ne.Uint64(b[:])
	ne.PutUint32(id.raw[40:], uint32(cookie))
	ne.PutUint32(id.raw[44:], uint32(cookie>>32))
	return id
}

// movedProgram returns a program that the kernel calls with each locked socket of the namespace:
//
//	if (!(1 << sk->skc_state & states) || !(tp = bpf_skc_to_tcp_sock(sk)))
//		return 0;
//	if (!times->began)
//		times->began = jiffies;
//	if (sent, received or acknowledged at times->since or later, or write_seq != snd_una,
//	    or rcv_nxt != copied_seq, or established and no sk_socket)
//		bpf_seq_write(meta->seq, record);
//
// rcv_tstamp is the time of the last acknowledgement, lsndtime and lrcvtime those of the last data.
func movedProgram(states States, times int) (asm.Instructions, error) {
	kernel, err := bpf.KernelLayout()
	if err != nil {
		return nil, err
	}
	at := kernel.At
	const sk, tp, clock, news, out = asm.R6, asm.R7, asm.R8, "news", "out"
	const ctx, tcp = "bpf_iter__tcp", "tcp_sock"
	const context, record = -8 - movedRecord, -movedRecord // on the stack
	field := func(name string, plus int16, size asm.Size, to int16) asm.Instructions {
		return asm.Instructions{asm.LoadMem(asm.R1, sk, at("sock_common", name)+plus, size),
			asm.StoreMem(asm.RFP, record+to+plus, asm.R1, size)}
	}
	code := asm.Instructions{
		asm.StoreMem(asm.RFP, context, asm.R1, asm.DWord),
		asm.LoadMem(sk, asm.R1, at(ctx, "sk_common"), asm.DWord),
		asm.JEq.Imm(sk, 0, out),
		asm.LoadMem(asm.R1, sk, at("sock_common", "skc_state"), asm.Byte),
		asm.Mov.Imm(asm.R2, 1),
		asm.LSh.Reg(asm.R2, asm.R1),
		asm.And.Imm(asm.R2, int32(states)),
		asm.JEq.Imm(asm.R2, 0, out),
		asm.Mov.Reg(asm.R1, sk),
		asm.FnSkcToTcpSock.Call(),
		asm.JEq.Imm(asm.R0, 0, out),
		asm.Mov.Reg(tp, asm.R0),
		asm.LoadMapValue(clock, times, 0),
		asm.LoadMem(asm.R1, clock, 4, asm.Word),
		asm.JNE.Imm(asm.R1, 0, "begun"),
		asm.FnJiffies64.Call(),
		asm.StoreMem(clock, 4, asm.R0, asm.Word),
		asm.LoadMem(clock, clock, 0, asm.Word).WithSymbol("begun"),
	}
	for _, stamp := range []int16{at(tcp, "rcv_tstamp"), at(tcp, "lsndtime"),
		at(tcp, "inet_conn", "icsk_ack", "lrcvtime")} {
		code = append(code,
			asm.LoadMem(asm.R1, tp, stamp, asm.Word),
			asm.Sub.Reg32(asm.R1, clock),
			asm.JSGE.Imm32(asm.R1, 0, news), // they wrap
		)
	}
	for _, pair := range [][2]int16{{at(tcp, "write_seq"), at(tcp, "snd_una")},
		{at(tcp, "rcv_nxt"), at(tcp, "copied_seq")}} {
		code = append(code,
			asm.LoadMem(asm.R1, tp, pair[0], asm.Word),
			asm.LoadMem(asm.R2, tp, pair[1], asm.Word),
			asm.JNE.Reg(asm.R1, asm.R2, news),
		)
	}
	code = append(code,
		asm.LoadMem(asm.R1, sk, at("sock_common", "skc_state"), asm.Byte),
		asm.JNE.Imm(asm.R1, int32(Established), out),
		asm.LoadMem(asm.R1, tp, at(tcp, "inet_conn", "icsk_inet", "sk", "sk_socket"), asm.DWord),
		asm.JNE.Imm(asm.R1, 0, out),
		asm.Mov.Imm(asm.R1, 0).WithSymbol(news),
	)
	for offset := int16(0); offset < movedRecord; offset += 8 {
		code = append(code, asm.StoreMem(asm.RFP, record+offset, asm.R1, asm.DWord))
	}
	code = append(code, field("skc_num", 0, asm.Half, recordLocal)...)
	code = append(code, field("skc_dport", 0, asm.Half, recordRemote)...)
	code = append(code, field("skc_bound_dev_if", 0, asm.Word, recordInterface)...)
	code = append(code, field("skc_family", 0, asm.Half, recordFamily)...)
	code = append(code, asm.JEq.Imm(asm.R1, familyIPv6, "six"))
	code = append(code, field("skc_rcv_saddr", 0, asm.Word, recordFrom)...)
	code = append(code, field("skc_daddr", 0, asm.Word, recordTo)...)
	code = append(code, asm.Ja.Label("write"))
	six := asm.Instructions{}
	for _, half := range []int16{0, 8} {
		six = append(six, field("skc_v6_rcv_saddr", half, asm.DWord, recordFrom)...)
		six = append(six, field("skc_v6_daddr", half, asm.DWord, recordTo)...)
	}
	six[0] = six[0].WithSymbol("six")
	code = append(append(code, six...),
		asm.Mov.Reg(asm.R1, sk).WithSymbol("write"),
		asm.FnGetSocketCookie.Call(),
		asm.StoreMem(asm.RFP, record, asm.R0, asm.DWord),
		asm.LoadMem(asm.R1, asm.RFP, context, asm.DWord),
		asm.LoadMem(asm.R1, asm.R1, at(ctx, "meta"), asm.DWord),
		asm.LoadMem(asm.R1, asm.R1, at("bpf_iter_meta", "seq"), asm.DWord),
		asm.Mov.Reg(asm.R2, asm.RFP),
		asm.Add.Imm(asm.R2, record),
		asm.Mov.Imm(asm.R3, movedRecord),
		asm.FnSeqWrite.Call(),
		asm.Mov.Imm(asm.R0, 0).WithSymbol(out),
		asm.Return(),
	)
	return code, kernel.Err()
}
