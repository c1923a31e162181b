package lab

import (
	"encoding/binary"
	"net/netip"
	"runtime"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/fullpipe-net/fullpipe/internal/link"
)

// carrier moves packets from one TUN device to the other as the link's lanes say: one
// thread for each direction, or one for both where they share something.
type carrier struct{ up, down *duct }

// duct carries one direction. The mutex of its loop guards it.
type duct struct {
	loop     *loop
	lane     *link.Lane
	from, to *tun
	arena    *arena
	packets  []packet
	free     []int32
	config   link.Config
	tap      *tap  // or nil
	overflow int64 // packets dropped because memory ended
	head     [virtioHeader + 256]byte
	notice   [virtioHeader + 1280]byte
	vectors  [2]unix.Iovec
	spill    [largest]byte // where packets go that there is no memory for
}

// packet is what was read at once from a device: one packet, or a train of segments.
type packet struct {
	bytes     []byte // with its virtio header
	chunk     int32
	waits     int32 // segments still in the lane
	transport int32
	header    int32 // length of all headers; 0: a single packet
	mss       int32
	segments  int32
}

type loop struct {
	mu    sync.Mutex // held while the loop works, not while it waits
	ducts []*duct
}

var origin = time.Now()

func clock() int64 { return int64(time.Since(origin)) }

func carry(p *link.Path, nearTUN, farTUN *tun, t *tap) *carrier {
	// Devices of old hosts took packets one by one, and a tap tells them apart.
	p.Up.Single, p.Down.Single = t != nil || p.Far.Window > 0, t != nil || p.Near.Window > 0
	up, down := p.Lanes()
	c := &carrier{newDuct(up, p, p.Up, nearTUN, farTUN), newDuct(down, p, p.Down, farTUN, nearTUN)}
	c.up.tap, c.down.tap = t, t
	loops := []*loop{{ducts: []*duct{c.up}}, {ducts: []*duct{c.down}}}
	if p.Share() {
		loops = []*loop{{ducts: []*duct{c.up, c.down}}}
	}
	for _, l := range loops {
		for _, d := range l.ducts {
			d.loop = l
		}
		go l.run()
	}
	return c
}

func newDuct(lane *link.Lane, p *link.Path, c link.Config, from, to *tun) *duct {
	return &duct{lane: lane, from: from, to: to, arena: newArena(memoryFor(c, p.VPN.Depth)), config: c}
}

// memoryFor bounds what one direction holds: four times what its rate brings in the delay
// and what its queue and its gateway, so many packets, hold, because a train stays as long as any of its segments. Without
// a rate it is a figure that no TCP window exceeds.
func memoryFor(c link.Config, gateway int) int64 {
	const without, most = 256 << 20, 4 << 30
	if c.Rate == 0 {
		return without
	}
	delay := c.Delay + c.Jitter/2 + c.HoldBack + c.Aggregate
	flying := float64(c.Rate) / 8 * delay.Seconds()
	queue := float64(c.QueueBytes + (c.QueuePackets+int64(gateway))*65535)
	return int64(min(4*(flying+queue), most)) + 8<<20
}

func (c *carrier) counters() (up, down link.Counters) {
	read := func(d *duct) link.Counters {
		d.loop.mu.Lock()
		defer d.loop.mu.Unlock()
		n := d.lane.Counters
		n.DroppedQueue += d.overflow
		return n
	}
	return read(c.up), read(c.down)
}

// together is how long a thread that has just worked leaves what falls due: waking for
// each packet of a fast link would cost more than a timer can tell apart.
const together = 30_000 // ns

// early is what waking costs a packet on an idle machine, when it is read and when it is
// handed over, and no clock here sees: so much before it is due it goes. Measured with
// ping, whose least round trips then come out within 0.05 ms of what was asked.
const early = 70_000 // ns

// hurry makes the thread's timers exact and has it run as soon as they fire. Real-time
// scheduling, where allowed, keeps a loaded machine from showing up as jitter; a fast
// link would starve with it the programs that it carries, and makes do with a short
// slice (Linux 6.12), by which a waking thread may interrupt one with a long slice.
func (l *loop) hurry() {
	const fast = 200e6 // bit/s
	unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	slow := true
	for _, d := range l.ducts {
		slow = slow && d.config.Rate > 0 && d.config.Rate <= fast
	}
	attr := unix.SchedAttr{Size: unix.SizeofSchedAttr}
	if attr.Policy, attr.Priority = unix.SCHED_FIFO, 1; slow && unix.SchedSetAttr(0, &attr, 0) == nil {
		return
	}
	attr.Policy, attr.Priority, attr.Runtime = unix.SCHED_NORMAL, 0, 100_000
	if attr.Nice = -20; unix.SchedSetAttr(0, &attr, 0) != nil {
		attr.Nice = 0
		unix.SchedSetAttr(0, &attr, 0) // without it the machine is only less exact under load
	}
}

// run is a loop's thread: deliver what is due, take in what is there, wait for either.
func (l *loop) run() {
	runtime.LockOSThread()
	l.hurry()
	var waitFor []unix.PollFd
	var wait unix.Timespec
	woken := clock()
	for _, d := range l.ducts {
		waitFor = append(waitFor, unix.PollFd{Fd: int32(d.from.fd), Events: unix.POLLIN})
	}
	l.mu.Lock()
	for {
		more := false
		for _, d := range l.ducts {
			d.deliver()
			more = d.takeIn() || more
		}
		if more {
			continue
		}
		next := link.Never
		for _, d := range l.ducts {
			next = min(next, d.lane.Next())
		}
		var timeout *unix.Timespec
		if next != link.Never {
			left := max(next-early, woken+together) - clock()
			if left <= 0 {
				continue
			}
			wait = unix.NsecToTimespec(left)
			timeout = &wait
		}
		l.mu.Unlock()
		unix.Ppoll(waitFor, timeout, nil)
		l.mu.Lock()
		woken = clock()
		for i := range waitFor {
			if waitFor[i].Revents&^unix.POLLIN != 0 {
				waitFor[i].Fd = -1 // the host has deleted its device
			}
		}
	}
}

// takeIn reads what the host has sent, and answers whether there may be more.
func (d *duct) takeIn() bool {
	const atOnce = 16
	for range atOnce {
		room := d.arena.room()
		if room == nil {
			if _, err := unix.Read(d.from.fd, d.spill[:]); err == nil {
				d.overflow++
			}
			return false
		}
		n, err := unix.Read(d.from.fd, room[:largest])
		if err != nil || n <= virtioHeader {
			return false
		}
		d.offer(n)
	}
	return true
}

func (d *duct) offer(n int) {
	chunk, bytes := d.arena.keep(n)
	ip := bytes[virtioHeader:]
	frame, ok := link.Inspect(ip)
	if !ok || frame.Multicast {
		d.arena.release(chunk)
		return
	}
	p := packet{bytes: bytes, chunk: chunk, transport: int32(frame.Transport), segments: 1}
	t := link.Train{Segments: 1, Bytes: len(ip), Last: len(ip)}
	if bytes[1]&^gsoECN != gsoNone {
		mss := int(binary.NativeEndian.Uint16(bytes[4:]))
		header, train, ok := link.Split(ip, frame.Transport, mss)
		if ok && header <= len(d.head)-virtioHeader {
			t = train
			p.header, p.mss, p.segments = int32(header), int32(mss), int32(train.Segments)
		}
	} else if d.config.Strip != 0 {
		link.StripOptions(ip, frame, d.config.Strip, bytes[0]&needsChecksum != 0)
	}
	t.ID, t.Beside = d.slot(), d.config.Tunnelled && !behindGateways(ip, frame)
	kept, tooBig := d.lane.Offer(clock(), t)
	if tooBig > 0 && !d.config.Silent {
		d.tellTooBig(ip, frame, t.Beside)
	}
	if kept == 0 {
		d.arena.release(chunk)
		d.free = append(d.free, t.ID)
		return
	}
	p.waits = int32(kept)
	d.packets[t.ID] = p
}

// behindGateways says whether a packet is for the networks behind a VPN's gateways.
func behindGateways(ip []byte, f link.Frame) bool {
	if f.Version == 4 {
		to := netip.AddrFrom4([4]byte(ip[16:20]))
		return to == nearInside.v4 || to == farInside.v4
	}
	to := netip.AddrFrom16([16]byte(ip[24:40]))
	return to == nearInside.v6 || to == farInside.v6
}

func (d *duct) slot() int32 {
	if n := len(d.free); n > 0 {
		i := d.free[n-1]
		d.free = d.free[:n-1]
		return i
	}
	d.packets = append(d.packets, packet{})
	return int32(len(d.packets) - 1)
}

func (d *duct) deliver() {
	for {
		run, ok := d.lane.Pop(clock() + early)
		if !ok {
			return
		}
		p := &d.packets[run.ID]
		if !run.Lost {
			d.write(p, run)
		}
		p.waits -= int32(run.Count)
		if p.waits == 0 {
			d.arena.release(p.chunk)
			p.bytes = nil
			d.free = append(d.free, run.ID)
		}
	}
}

// write hands a run to the far device: the packet as it came when the run is all of it,
// else a new header and the payload where it lies. A device that does not take it (its
// host is down) has lost it.
func (d *duct) write(p *packet, run link.Run) {
	middle := run.Due - int64(d.config.Delay)/2
	if run.Count == int(p.segments) {
		unix.Write(d.to.fd, p.bytes)
		if d.tap != nil {
			d.tap.add(middle, p.bytes[virtioHeader:], len(p.bytes)-virtioHeader)
		}
		return
	}
	head := d.head[:virtioHeader+int(p.header)]
	copy(head, p.bytes[:virtioHeader])
	payload := link.Cut(p.bytes[virtioHeader:], int(p.transport), int(p.header), int(p.mss), run.First, run.Count,
		head[virtioHeader:])
	if run.Count == 1 {
		head[1] = gsoNone
		binary.NativeEndian.PutUint16(head[4:], 0)
	}
	binary.NativeEndian.PutUint16(head[2:], uint16(p.header))
	if d.tap != nil {
		d.tap.add(middle, head[virtioHeader:], int(p.header)+len(payload))
	}
	d.vectors[0].Base, d.vectors[1].Base = &head[0], &payload[0]
	d.vectors[0].SetLen(len(head))
	d.vectors[1].SetLen(len(payload))
	unix.Syscall(unix.SYS_WRITEV, uintptr(d.to.fd), uintptr(unsafe.Pointer(&d.vectors)), 2)
}

func (d *duct) tellTooBig(ip []byte, f link.Frame, beside bool) {
	clear(d.notice[:virtioHeader])
	if n := link.TooBig(ip, f, d.config.Largest(beside), d.notice[virtioHeader:]); n > 0 {
		unix.Write(d.from.fd, d.notice[:virtioHeader+n])
	}
}
