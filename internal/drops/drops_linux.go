package drops

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/cilium/ebpf"

	"github.com/fullpipe-net/fullpipe/internal/bpf"
	"github.com/fullpipe-net/fullpipe/internal/lost"
	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

const (
	familyIPv4  = 2  // AF_INET
	familyIPv6  = 10 // AF_INET6
	protocolTCP = 6
	protocolUDP = 17
	ringBytes   = 1 << 20 // 7,000 records
	prefix      = "SKB_DROP_REASON_"
)

// Watch follows all connections of this host until it is closed. Its methods may be called by
// several goroutines.
type Watch struct {
	set     bpf.Set
	events  *bpf.Events
	names   map[uint32]string // of reasons
	own     uint32            // this process's network namespace
	udp     bool              // follows datagrams instead of TCP
	joined  bool              // packets of own may pass other namespaces of this host
	flushed chan struct{}     // a value for each answered Flush
	ended   chan struct{}     // closed when reading has ended

	mu      sync.Mutex // guards what follows
	matcher lost.Matcher
	failed  error

	taking       sync.Mutex // guards what follows
	readAt       time.Time
	missedBefore int64
	incomplete   bool // records were missed before readAt
}

// Open attaches the programs for TCP. The error is *bpf.NotPermittedError without the privilege, and
// socket.ErrNotSupported where the kernel gives no reasons of drops.
func Open() (*Watch, error) { return open(protocolTCP) }

// OpenUDP follows the datagrams that this host drops instead, with the same errors.
func OpenUDP() (*Watch, error) { return open(protocolUDP) }

func open(protocol int32) (*Watch, error) {
	if err := bpf.CheckTracing(); err != nil {
		return nil, err
	}
	own, err := namespaceOf("thread-self", "net")
	if err != nil {
		return nil, err
	}
	w := &Watch{own: own, udp: protocol == protocolUDP, joined: !isInitial(own) && joinsOthers(),
		flushed: make(chan struct{}, 1), ended: make(chan struct{})}
	if err := w.attach(protocol); err != nil {
		_ = w.set.Close() // err says more
		if errors.Is(err, os.ErrPermission) {
			err = &bpf.NotPermittedError{Err: err}
		}
		return nil, err
	}
	go func() {
		defer close(w.ended)
		err := w.events.Each(w.take, func() {
			select {
			case w.flushed <- struct{}{}:
			default: // nobody waits any more
			}
		})
		w.mu.Lock()
		defer w.mu.Unlock()
		w.failed = err
	}()
	return w, nil
}

// Close detaches the programs. It may be called again, and of a nil Watch.
func (w *Watch) Close() error {
	if w == nil {
		return nil
	}
	err := w.set.Close()
	<-w.ended
	return err
}

func (w *Watch) attach(protocol int32) error {
	kernel, err := bpf.KernelLayout()
	if err != nil {
		return fmt.Errorf("places of loss by eBPF need the kernel's BTF: %w: %w", socket.ErrNotSupported, err)
	}
	arguments := kernel.TracepointArguments("kfree_skb")
	w.names = kernel.Enum("skb_drop_reason")
	if arguments < 3 || w.names == nil {
		return fmt.Errorf("reasons of drops (Linux 5.17): %w", socket.ErrNotSupported)
	}
	for number, name := range w.names {
		w.names[number] = strings.TrimPrefix(name, prefix)
	}
	wanted, err := w.set.Map(ebpf.MapSpec{Name: "reasons", Type: ebpf.Array, KeySize: 4, ValueSize: maxReason + 1,
		MaxEntries: 1})
	if err != nil {
		return err
	}
	if err := wanted.Put(uint32(0), wantedReasons(w.names)); err != nil {
		return fmt.Errorf("eBPF map reasons: %w", err)
	}
	w.events, err = w.set.Events(ringBytes)
	if err != nil {
		return err
	}
	retransmitted := retransmission(kernel.At, w.events, kernel.TracepointArguments("tcp_retransmit_skb") > 2)
	dropped := drop(kernel.At, w.events, wanted.FD(), arguments > 3, protocol)
	if err := kernel.Err(); err != nil {
		return fmt.Errorf("places of loss by eBPF: %w: %w", socket.ErrNotSupported, err)
	}
	if err := w.set.AttachTracepoint(bpf.Drops, "kfree_skb", dropped); err != nil {
		return err
	}
	if protocol == protocolUDP {
		return nil
	}
	return w.set.AttachTracepoint(bpf.Retransmissions, "tcp_retransmit_skb", retransmitted)
}

// wantedReasons returns a byte for each reason: 1 if it is a loss.
func wantedReasons(names map[uint32]string) []byte {
	wanted := make([]byte, maxReason+1)
	for number, name := range names {
		if number > 2 && number <= maxReason && lost.KindOf(name) != "" { // 2 is NOT_SPECIFIED
			wanted[number] = 1
		}
	}
	return wanted
}

// namespaceOf returns the inode of a namespace of a process.
func namespaceOf(process, kind string) (uint32, error) {
	link, err := os.Readlink("/proc/" + process + "/ns/" + kind)
	if err != nil {
		return 0, err
	}
	text := strings.TrimSuffix(strings.TrimPrefix(link, kind+":["), "]")
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		return 0, fmt.Errorf("%s namespace %s: %w", kind, link, err)
	}
	return uint32(n), nil
}

// initialPIDs is the inode of the first PID namespace (PROC_PID_INIT_INO, Linux 3.8).
const initialPIDs = 0xeffffffc

// isInitial reports whether a network namespace is that of the host's process 1, and false where
// that process cannot be seen.
func isInitial(namespace uint32) bool {
	pids, err := namespaceOf("self", "pid")
	if err != nil || pids != initialPIDs {
		return false
	}
	first, err := namespaceOf("1", "net")
	return err == nil && first == namespace
}

// take gives a record to the matcher.
func (w *Watch) take(b []byte) {
	if len(b) < recordSize {
		return
	}
	u16 := func(at int) uint16 { return binary.NativeEndian.Uint16(b[at:]) }
	u32 := func(at int) uint32 { return binary.NativeEndian.Uint32(b[at:]) }
	at := time.Duration(binary.NativeEndian.Uint64(b[recTime:]))
	w.mu.Lock()
	defer w.mu.Unlock()
	switch u16(recKind) {
	case kindDrop:
		flow, seq, bytes, ok := lost.ParsePacket(b[recHeaders:recHeaders+headerBytes], u32(recLength))
		if !ok {
			return
		}
		place := lost.Place{Reason: u32(recReason), Namespace: u32(recNamespace), Device: [16]byte(b[recDevice:])}
		d := lost.Drop{Flow: flow, Place: place, At: at, Seq: seq, Bytes: bytes}
		if !flow.UDP && u16(recPort) == flow.Source.Port() && !lost.CountsAsSent(w.names[place.Reason]) {
			d.Unsent = lost.Range{Seq: u32(recSeq), End: u32(recEnd)}
		}
		w.matcher.Drop(d)
	case kindRetransmission:
		w.matcher.Retransmission(lost.Retransmission{Flow: socketFlow(b), At: at,
			Range:    lost.Range{Seq: u32(recSeq), End: u32(recEnd)},
			Segments: max(u32(recLength), 1), Namespace: u32(recNamespace), Refused: u32(recReason) != 0})
	}
}

// socketFlow returns the addresses of a retransmission's socket.
func socketFlow(b []byte) (f lost.Flow) {
	var from, to netip.Addr
	if binary.NativeEndian.Uint16(b[recFamily:]) == familyIPv6 {
		from = netip.AddrFrom16([16]byte(b[recFrom:])).Unmap()
		to = netip.AddrFrom16([16]byte(b[recTo:])).Unmap()
	} else {
		from = netip.AddrFrom4([4]byte(b[recFrom:]))
		to = netip.AddrFrom4([4]byte(b[recTo:]))
	}
	f.Source = netip.AddrPortFrom(from, binary.NativeEndian.Uint16(b[recSource:]))
	f.Destination = netip.AddrPortFrom(to, binary.BigEndian.Uint16(b[recTarget:]))
	return f
}

// flushTimeout bounds the wait for the reader. It only waits for records that exist.
const flushTimeout = time.Second

// takeInterval is how long the answer of the kernel's buffer is used for all flows that are taken.
const takeInterval = 20 * time.Millisecond

// Take returns the losses of a flow since the last call. home is the network namespace of its
// socket on this host, 0 for this process's own, AnyNamespace for that of a socket on this host.
func (w *Watch) Take(flow lost.Flow, home uint32) (transfer.Losses, error) {
	w.taking.Lock()
	defer w.taking.Unlock()
	if time.Since(w.readAt) > takeInterval {
		missed, err := w.missed()
		if err == nil {
			err = w.flush()
		}
		if err != nil {
			return transfer.Losses{}, err
		}
		w.readAt = time.Now()
		w.incomplete = missed > w.missedBefore
		w.missedBefore = missed
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	l := w.losses(w.matcher.Take(unmapped(flow)), home)
	l.Incomplete = w.incomplete
	return l, w.failed
}

// missed returns how many records did not fit into a buffer, of all flows.
func (w *Watch) missed() (int64, error) {
	n, err := w.events.Lost()
	w.mu.Lock()
	defer w.mu.Unlock()
	return int64(n) + w.matcher.Forgotten, err
}

// read returns the counts of a flow and forgets it.
func (w *Watch) read(flow lost.Flow) (lost.Counts, error) {
	if err := w.flush(); err != nil {
		return lost.Counts{}, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	flow = unmapped(flow)
	found := w.matcher.Of(flow)
	w.matcher.Forget(flow)
	return found, w.failed
}

func (w *Watch) losses(found lost.Counts, home uint32) (l transfer.Losses) {
	if home == AnyNamespace {
		home = found.Namespace
	}
	home = cmp.Or(home, w.own)
	l.NamespaceOnly = w.joined || home != w.own
	if found.Namespace == home {
		l.Retransmits = true
		l.Segments = found.Segments
		l.Bytes = found.Bytes
	}
	for _, p := range found.Places {
		if !l.Retransmits { // this kernel may see a sender of another namespace
			p.Segments = 0
			p.Bytes = 0
		}
		if p.Namespace == w.own || p.Namespace == home {
			l.Places = append(l.Places, w.place(p, home))
		}
	}
	return l
}

func unmapped(f lost.Flow) lost.Flow {
	plain := func(a netip.AddrPort) netip.AddrPort {
		return netip.AddrPortFrom(a.Addr().Unmap().WithZone(""), a.Port())
	}
	return lost.Flow{Source: plain(f.Source), Destination: plain(f.Destination), UDP: f.UDP}
}

func (w *Watch) flush() error {
	select {
	case <-w.flushed: // of a call that gave up
	default:
	}
	if err := w.events.Flush(); err != nil {
		return err
	}
	select {
	case <-w.flushed:
		return nil
	case <-w.ended:
		return os.ErrClosed
	case <-time.After(flushTimeout):
		return errors.New("the kernel's records of drops were not read in time")
	}
}

func (w *Watch) place(p lost.Count, home uint32) transfer.LossPlace {
	reason := w.names[p.Reason]
	if reason == "" {
		reason = fmt.Sprintf("reason %#x", p.Reason)
	}
	device, _, _ := strings.Cut(string(p.Device[:]), "\x00")
	qdisc := ""
	if lost.KindOf(reason) == lost.Queue && p.Namespace == w.own {
		qdisc = rootQdisc(device)
	}
	return transfer.LossPlace{Qdisc: qdisc, Reason: reason, Device: device, Forwarded: p.Namespace != home,
		Packets: p.Packets, Dropped: p.Dropped, Segments: p.Segments, Bytes: p.Bytes}
}
