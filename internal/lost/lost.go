// Package lost finds where a host lost packets of TCP connections. It matches each retransmission
// to the drops before it, by connection and sequence range. Package drops provides both from the
// kernel.
//
// Packet counts do not match: the kernel merges segments (GSO, GRO), so that one dropped packet
// becomes many retransmitted segments. Ranges do. Each byte of a drop explains one retransmission
// of that byte.
package lost

import (
	"net/netip"
	"slices"
	"time"
)

// Flow is one direction of a connection: from the sender of the data to its receiver.
type Flow struct {
	Source, Destination netip.AddrPort
	UDP                 bool
}

// Place is where packets were dropped.
type Place struct {
	// Reason is the kernel's number of the reason, and Namespace the inode of the network
	// namespace, 0 if not known.
	Reason, Namespace uint32
	Device            [16]byte // the name; empty if not known
}

// Range is a range of sequence numbers.
type Range struct{ Seq, End uint32 }

// Drop is a dropped packet.
type Drop struct {
	Flow
	Place
	At         time.Duration
	Seq, Bytes uint32 // of sequence space: payload, SYN and FIN; of UDP payload only
	// Unsent is the segment at SND.NXT, the first that the socket had not sent when the packet was
	// dropped; zero if it is not known.
	Unsent Range
}

// Retransmission is a retransmitted range. The kernel may send it as several segments.
type Retransmission struct {
	Flow
	Range
	At        time.Duration
	Segments  uint32
	Namespace uint32 // the socket's
	// Refused reports that the host did not transmit it: TCP tries again, which is no further loss.
	Refused bool
}

// The matcher's memory is bounded by these numbers.
const (
	maxFlows  = 1024
	maxDrops  = 1024 // of a flow, that no retransmission has explained yet
	maxPlaces = 16   // of a flow
)

// maxAge is the greatest time from a drop to its retransmission (measured: 143 of 143 below 2 s).
// Where the retransmission timer has backed off, the time since the last retransmission of the same
// range is allowed.
const maxAge = 2 * time.Second

// synchronous is the most time by which the kernel reports a drop before the retransmission that it
// belongs to: the packet may be dropped inside the call that transmits it.
const synchronous = 20 * time.Millisecond

// Matcher matches retransmissions to drops. Its zero value is ready. It is not safe for concurrent
// use.
type Matcher struct {
	flows map[Flow]*flow
	// Forgotten counts the flows and drops that did not fit into its memory.
	Forgotten int64
}

type flow struct {
	drops     []interval // oldest first
	places    []Count
	namespace uint32 // of the retransmitting socket; 0: no retransmission
	segments  int64
	bytes     int64
	lastSeq   uint32        // of the last retransmission
	lastAt    time.Duration // of the last retransmission
	usedAt    time.Duration
	// refused is a segment that was dropped, at least in part, while TCP transmitted it for the
	// first time, and refusedBytes how much of it.
	refused      Range
	refusedBytes uint32
}

// interval is the part of a drop that explains no retransmission yet.
type interval struct {
	at       time.Duration
	seq, end uint32
	place    uint8
}

// Count is a place with the packets and bytes that it dropped, and the retransmitted segments and
// bytes that these drops explain.
type Count struct {
	Place
	Packets, Dropped int64
	Segments, Bytes  int64
}

// Counts has the counts of one flow.
type Counts struct {
	// of the retransmitting socket; 0: no retransmission was seen on this host
	Namespace       uint32
	Segments, Bytes int64 // retransmitted
	Places          []Count
}

// Drop records a dropped packet.
func (m *Matcher) Drop(d Drop) {
	if d.Bytes == 0 {
		return
	}
	f := m.flowOf(d.Flow, d.At)
	place, ok := f.placeOf(d.Place)
	if !ok {
		m.Forgotten++
		return
	}
	f.places[place].Packets++
	f.places[place].Dropped += int64(d.Bytes)
	if d.UDP { // nothing is retransmitted
		return
	}
	if len(f.drops) == maxDrops {
		m.Forgotten++
		f.remove(0)
	}
	f.drops = append(f.drops, interval{d.At, d.Seq, d.Seq + d.Bytes, place})
	f.refuse(d)
}

// refuse forgets the drops of a segment that the host refused to transmit as a whole. TCP then
// leaves SND.NXT and sends the segment again later, which is no retransmission. A segment that the
// host has split and dropped in part counts as sent.
func (f *flow) refuse(d Drop) {
	unsent := d.Unsent
	if before(d.Seq, unsent.Seq) || before(unsent.End, d.Seq+d.Bytes) {
		return
	}
	if f.refused != unsent {
		f.refused = unsent
		f.refusedBytes = 0
	}
	f.refusedBytes += d.Bytes
	if f.refusedBytes < unsent.End-unsent.Seq {
		return
	}
	f.refused = Range{}
	f.refusedBytes = 0
	f.forget(unsent, d.At-synchronous)
}

// forget removes the newest drops of a range since a time, each byte once: an older drop of the same
// bytes is the loss that TCP repairs.
func (f *flow) forget(r Range, since time.Duration) {
	left := r.End - r.Seq
	for i := len(f.drops) - 1; i >= 0 && left > 0 && f.drops[i].at >= since; i-- {
		d := f.drops[i]
		if !before(d.seq, r.Seq) && !before(r.End, d.end) {
			left -= min(left, d.end-d.seq)
			f.remove(i)
		}
	}
}

// Retransmission records a retransmission and attributes its bytes to the oldest drops of these
// bytes.
func (m *Matcher) Retransmission(r Retransmission) {
	length := r.End - r.Seq
	if length == 0 || length > 1<<30 { // no range: TCP's windows are at most 1 GiB
		return
	}
	f := m.flowOf(r.Flow, r.At)
	f.namespace = r.Namespace
	if r.Refused {
		f.forget(r.Range, r.At-synchronous)
		return
	}
	f.segments += int64(r.Segments)
	f.bytes += int64(length)
	f.expire(r)
	left := r.Segments
	for seq := r.Seq; before(seq, r.End); {
		i, from := f.oldest(seq, r.End)
		if i < 0 {
			break
		}
		drop := f.drops[i]
		end := drop.end
		if before(r.End, end) {
			end = r.End
		}
		f.cut(i, from, end)
		bytes := end - from
		segments := min(uint32((uint64(bytes)*uint64(r.Segments)+uint64(length)/2)/uint64(length)), left)
		left -= segments
		f.places[drop.place].Bytes += int64(bytes)
		f.places[drop.place].Segments += int64(segments)
		seq = end
	}
	f.lastSeq = r.Seq
	f.lastAt = r.At
}

// Of returns the counts of a flow.
func (m *Matcher) Of(f Flow) Counts {
	known := m.flows[f]
	if known == nil {
		return Counts{}
	}
	return Counts{Namespace: known.namespace, Segments: known.segments, Bytes: known.bytes,
		Places: append([]Count(nil), known.places...)}
}

// Take is like Of, and begins to count anew. Drops without a retransmission stay.
func (m *Matcher) Take(f Flow) Counts {
	counts := m.Of(f)
	if known := m.flows[f]; known != nil {
		known.segments = 0
		known.bytes = 0
		for i := range known.places {
			known.places[i] = Count{Place: known.places[i].Place}
		}
	}
	counts.Places = slices.DeleteFunc(counts.Places, func(c Count) bool { return c.Dropped == 0 && c.Bytes == 0 })
	return counts
}

// Forget removes a flow.
func (m *Matcher) Forget(f Flow) { delete(m.flows, f) }

// flowOf returns the state of a flow. A new one may displace the one that was used least recently.
func (m *Matcher) flowOf(key Flow, at time.Duration) *flow {
	f := m.flows[key]
	if f == nil {
		if m.flows == nil {
			m.flows = map[Flow]*flow{}
		}
		if len(m.flows) >= maxFlows {
			m.displace()
		}
		f = &flow{}
		m.flows[key] = f
	}
	f.usedAt = at
	return f
}

func (m *Matcher) displace() {
	var oldest Flow
	at := time.Duration(1<<63 - 1)
	for key, f := range m.flows {
		if f.usedAt <= at {
			at = f.usedAt
			oldest = key
		}
	}
	m.Forgotten++
	delete(m.flows, oldest)
}

func (f *flow) placeOf(p Place) (uint8, bool) {
	for i := range f.places {
		if f.places[i].Place == p {
			return uint8(i), true
		}
	}
	if len(f.places) == maxPlaces {
		return 0, false
	}
	f.places = append(f.places, Count{Place: p})
	return uint8(len(f.places) - 1), true
}

// expire removes drops that are too old to explain a retransmission.
func (f *flow) expire(r Retransmission) {
	age := maxAge
	if f.lastSeq == r.Seq && f.lastAt > 0 {
		age = max(age, r.At-f.lastAt+synchronous)
	}
	n := 0
	for n < len(f.drops) && f.drops[n].at < r.At-age {
		n++
	}
	if n > 0 {
		f.drops = f.drops[:copy(f.drops, f.drops[n:])]
	}
}

// oldest returns the oldest drop of the first byte in [seq, end) that any drop has, and that byte.
func (f *flow) oldest(seq, end uint32) (index int, from uint32) {
	index = -1
	for i := range f.drops {
		d := &f.drops[i]
		if !before(seq, d.end) || !before(d.seq, end) {
			continue
		}
		if !before(seq, d.seq) {
			return i, seq
		}
		if index < 0 || before(d.seq, from) {
			index = i
			from = d.seq
		}
	}
	return index, from
}

// cut takes [from, end) out of drop i, which has it.
func (f *flow) cut(i int, from, end uint32) {
	d := &f.drops[i]
	left := before(d.seq, from)
	right := before(end, d.end)
	switch {
	case left && right:
		rest := *d
		d.end = from
		rest.seq = end
		if len(f.drops) < maxDrops {
			f.drops = append(f.drops, interval{})
			copy(f.drops[i+2:], f.drops[i+1:])
			f.drops[i+1] = rest
		}
	case left:
		d.end = from
	case right:
		d.seq = end
	default:
		f.remove(i)
	}
}

func (f *flow) remove(i int) { f.drops = f.drops[:i+copy(f.drops[i:], f.drops[i+1:])] }

// before reports whether a sequence number precedes another (RFC 9293, section 3.4).
func before(a, b uint32) bool { return int32(a-b) < 0 }
