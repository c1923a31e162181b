package lab

import (
	"encoding/binary"
	"net/netip"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/fullpipe-net/fullpipe/internal/link"
)

// carrier moves packets from one TUN device to the other by the link's lanes: one thread for each direction, or one
// for both when they share state.
//
// Flow of a packet:
//  1. loop.run waits for a device or a due time.
//  2. duct.readHost reads a packet or a batch of segments from the host's device.
//  3. duct.offer passes it to the lane, or to the AckHolder as a delayed ACK.
//  4. link.Lane decides on loss, marks, order and the due time of each segment.
//  5. duct.deliver writes the due segments to the other host's device.
type carrier struct{ up, down *duct }

// duct carries one direction. Only its loop's thread touches it.
type duct struct {
	loop     *loop
	lane     *link.Lane
	from, to *tun
	arena    *arena
	packets  []packet
	free     []int32
	config   link.Config
	acks     *link.AckHolder // or nil
	tap      *tap            // or nil
	overflow int64           // packets dropped for lack of memory
	late     tally
	head     [virtioHeader + 256]byte
	notice   [virtioHeader + 1280]byte
	vectors  [2]unix.Iovec
	spill    [maxPacketBytes]byte // buffer for packets that are dropped for lack of memory
}

// packet is the result of one read from a device: one packet, or a batch of segments.
type packet struct {
	bytes           []byte // with its virtio header
	chunk           int32
	pendingSegments int32 // segments still in the lane
	transport       int32
	header          int32 // length of all headers; 0: a single packet
	mss             int32
	segments        int32
	readAt          int64 // time of the read
	late            int64 // ns of lateness at the read
}

func carry(p *link.Path, nearTUN, farTUN *tun, t *tap) (*carrier, error) {
	// Devices of old hosts read packets one by one, and a tap records each.
	alone := func(s link.Stack) bool { return t != nil || s.Window > 0 || s.DelayedAck > 0 }
	p.Up.Single = alone(p.Far)
	p.Down.Single = alone(p.Near)
	up, down := p.Lanes()
	c := &carrier{up: newDuct(up, p, p.Up, nearTUN, farTUN), down: newDuct(down, p, p.Down, farTUN, nearTUN)}
	c.up.tap = t
	c.down.tap = t
	c.up.delays(p.Near, segmentOf(p.Down, p.VPN))
	c.down.delays(p.Far, segmentOf(p.Up, p.VPN))
	together := [][]*duct{{c.up}, {c.down}}
	if p.Share() {
		together = [][]*duct{{c.up, c.down}}
	}
	for _, ducts := range together {
		l, err := newLoop(ducts...)
		if err != nil {
			return nil, err
		}
		go l.run()
	}
	return c, nil
}

func newDuct(lane *link.Lane, p *link.Path, c link.Config, from, to *tun) *duct {
	return &duct{lane: lane, from: from, to: to, arena: newArena(memoryFor(c, p.VPN.Depth)), config: c}
}

// delays lets the host with this stack delay its acknowledgements of segments of the given size.
func (d *duct) delays(s link.Stack, segment int) {
	if s.DelayedAck > 0 {
		d.acks = &link.AckHolder{Wait: s.DelayedAck, Segment: segment}
	}
}

// next returns the time of the next work without a new packet from the host, or link.Never.
func (d *duct) next() int64 { return min(d.lane.Next(), d.acks.Next()) }

// acknowledge offers the delayed acknowledgements that are due.
func (d *duct) acknowledge(now int64) {
	for d.acks.Next() <= now {
		packet, ok := d.acks.Pop(now)
		room := d.arena.room()
		if !ok || room == nil {
			return
		}
		d.pass(copy(room, packet), 0)
	}
}

// memoryFor limits the memory of one direction: four times its bandwidth-delay product, queue and gateway (in
// packets), because a batch stays as long as any of its segments. Connections with a rate of their own have a queue
// each; some are counted. Without a rate it returns more than any TCP window.
func memoryFor(c link.Config, gateway int) int64 {
	const without, most, queues = 256 << 20, 4 << 30, 8
	if c.Rate == 0 {
		return without
	}
	delay := c.Delay + c.Jitter/2 + c.HoldBack + c.Aggregate
	flying := float64(c.Rate) / 8 * delay.Seconds()
	queue := float64(c.QueueBytes + (c.QueuePackets+int64(gateway))*65535)
	if c.FlowRate > 0 {
		queue *= queues
	}
	return int64(min(4*(flying+queue), most)) + 8<<20
}

// account returns the counters of both directions and their lateness.
func (c *carrier) account() (up, down link.Counters, upLate, downLate Late) {
	read := func(d *duct) (n link.Counters, late Late) {
		d.loop.do(func() {
			late = lateOf(&d.late, &d.loop.late.stalls)
			n = d.lane.Counters
			n.DroppedQueue += d.overflow
		})
		return n, late
	}
	up, upLate = read(c.up)
	down, downLate = read(c.down)
	return up, down, upLate, downLate
}

// readHost reads packets of the host that have waited the given time in ns. It reports whether there may be more.
func (d *duct) readHost(waited int64) (more bool) {
	const atOnce = 16
	for range atOnce {
		room := d.arena.room()
		if room == nil {
			if _, err := unix.Read(d.from.fd, d.spill[:]); err == nil {
				d.overflow++
			}
			return false
		}
		n, err := unix.Read(d.from.fd, room[:maxPacketBytes])
		if err != nil || n <= virtioHeader {
			return false
		}
		d.offer(room, n, waited)
	}
	return true
}

// offer passes a packet on, unless it is an acknowledgement to delay.
func (d *duct) offer(room []byte, n int, waited int64) {
	if d.acks != nil && room[1]&^gsoECN == gsoNone {
		f, ok := link.Inspect(room[virtioHeader:n])
		if ok && d.acks.Hold(clock(), virtioHeader, room[:n], f) {
			return
		}
	}
	d.pass(n, waited)
}

func (d *duct) pass(n int, waited int64) {
	chunk, bytes := d.arena.keep(n)
	ip := bytes[virtioHeader:]
	frame, ok := link.Inspect(ip)
	if !ok || frame.Multicast {
		d.arena.release(chunk)
		return
	}
	p := packet{bytes: bytes, chunk: chunk, transport: int32(frame.Transport), segments: 1}
	t := link.Batch{Segments: 1, Bytes: len(ip), Last: len(ip)}
	if bytes[1]&^gsoECN != gsoNone {
		mss := int(binary.NativeEndian.Uint16(bytes[4:]))
		header, batch, ok := link.Split(ip, frame.Transport, mss)
		if ok && header <= len(d.head)-virtioHeader {
			t = batch
			p.header = int32(header)
			p.mss = int32(mss)
			p.segments = int32(batch.Segments)
		}
	} else if d.config.Strip != 0 {
		link.StripOptions(ip, frame, d.config.Strip, bytes[0]&needsChecksum != 0)
	}
	t.ID = d.slot()
	t.OutsideTunnel = d.config.Tunnelled && !behindGateways(ip, frame)
	t.ECT = d.config.MarkBytes > 0 && link.ECT(ip)
	if d.config.FlowRate > 0 {
		t.Flow = link.FlowOf(ip, frame)
	}
	p.readAt = clock()
	p.late = waited
	kept, tooBig := d.lane.Offer(p.readAt, t)
	if tooBig > 0 && !d.config.Silent {
		d.sendTooBig(ip, frame, t.OutsideTunnel)
	}
	if kept == 0 {
		d.arena.release(chunk)
		d.free = append(d.free, t.ID)
		return
	}
	p.pendingSegments = int32(kept)
	d.packets[t.ID] = p
}

// behindGateways reports whether a packet is for the networks behind a VPN's gateways.
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

// deliver delivers due packets and reports whether there were any.
func (d *duct) deliver() (any bool) {
	for {
		now := clock()
		run, ok := d.lane.Pop(now + d.loop.early)
		if !ok {
			return any
		}
		any = true
		p := &d.packets[run.ID]
		if !run.Lost {
			d.late.add(p.late+now-max(p.readAt, run.Due-d.loop.early), run.Count)
			d.write(p, run)
		}
		p.pendingSegments -= int32(run.Count)
		if p.pendingSegments == 0 {
			d.arena.release(p.chunk)
			p.bytes = nil
			d.free = append(d.free, run.ID)
		}
	}
}

// write writes a run to the far device: the packet unchanged when the run covers it, otherwise a new header and the
// payload in place. Packets that the device refuses, because its host is down, are lost.
func (d *duct) write(p *packet, run link.Run) {
	middle := run.Due - int64(d.config.Delay)/2
	if run.Count == int(p.segments) {
		if run.CE {
			link.MarkCE(p.bytes[virtioHeader:])
		}
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
	if run.CE {
		link.MarkCE(head[virtioHeader:])
	}
	binary.NativeEndian.PutUint16(head[2:], uint16(p.header))
	if d.tap != nil {
		d.tap.add(middle, head[virtioHeader:], int(p.header)+len(payload))
	}
	d.vectors[0].Base = &head[0]
	d.vectors[1].Base = &payload[0]
	d.vectors[0].SetLen(len(head))
	d.vectors[1].SetLen(len(payload))
	unix.Syscall(unix.SYS_WRITEV, uintptr(d.to.fd), uintptr(unsafe.Pointer(&d.vectors)), 2)
}

func (d *duct) sendTooBig(ip []byte, f link.Frame, beside bool) {
	clear(d.notice[:virtioHeader])
	if n := link.TooBig(ip, f, d.config.Largest(beside), d.notice[virtioHeader:]); n > 0 {
		unix.Write(d.from.fd, d.notice[:virtioHeader+n])
	}
}
