package transfer

import (
	"fmt"
	"net/netip"
	"slices"
)

// Losses are what the kernel of an end's host retransmitted and dropped of a transfer's data.
type Losses struct {
	// Retransmits reports that the sending socket is on this host, so that Segments and Bytes are
	// known.
	Retransmits bool        `json:"retransmits,omitempty"`
	Segments    int64       `json:"segments,omitempty"` // retransmitted
	Bytes       int64       `json:"bytes,omitempty"`    // retransmitted
	Places      []LossPlace `json:"places,omitempty"`
	// NamespaceOnly reports that packets may pass network namespaces of this host that do not
	// count: those between a container and the host's devices.
	NamespaceOnly bool `json:"namespace_only,omitempty"`
	// Incomplete reports that some of the kernel's records did not fit into a buffer.
	Incomplete bool `json:"incomplete,omitempty"`
}

// LossPlace is a place of a host that dropped packets.
type LossPlace struct {
	Reason string `json:"reason"` // the kernel's, without SKB_DROP_REASON_
	// Device and Qdisc, its queueing discipline, stay on their host. Empty: not known.
	Device string `json:"-"`
	Qdisc  string `json:"-"`
	// Forwarded reports that the packets were dropped in another network namespace than the
	// socket's.
	Forwarded bool  `json:"forwarded,omitempty"`
	Packets   int64 `json:"packets,omitempty"`
	Dropped   int64 `json:"dropped,omitempty"` // bytes of sequence space in these packets
	// Segments and Bytes are retransmissions that these drops explain.
	Segments int64 `json:"segments,omitempty"`
	Bytes    int64 `json:"bytes,omitempty"`
}

// Add adds the losses of another stream.
func (l *Losses) Add(other Losses) {
	l.Retransmits = l.Retransmits || other.Retransmits
	l.Segments += other.Segments
	l.Bytes += other.Bytes
	l.Incomplete = l.Incomplete || other.Incomplete
	l.NamespaceOnly = l.NamespaceOnly || other.NamespaceOnly
	for _, p := range other.Places {
		i := slices.IndexFunc(l.Places, func(q LossPlace) bool {
			return q.Reason == p.Reason && q.Device == p.Device && q.Forwarded == p.Forwarded
		})
		if i < 0 {
			l.Places = append(l.Places, p)
			continue
		}
		q := &l.Places[i]
		q.Packets += p.Packets
		q.Dropped += p.Dropped
		q.Segments += p.Segments
		q.Bytes += p.Bytes
	}
}

// maxLossPlaces limits the places of one end.
const maxLossPlaces = 256

// losses checks what a far end reports of its drops.
func (b *validator) losses(l *Losses) {
	b.bytes("losses.segments", l.Segments)
	b.bytes("losses.bytes", l.Bytes)
	b.within("losses.places", float64(len(l.Places)), 0, maxLossPlaces)
	if b.err != nil {
		return
	}
	for i, p := range l.Places {
		name := fmt.Sprintf("losses.places[%d].", i)
		b.text(name+"reason", p.Reason)
		b.bytes(name+"packets", p.Packets)
		b.bytes(name+"dropped", p.Dropped)
		b.within(name+"bytes", float64(p.Bytes), 0, float64(l.Bytes))
		b.within(name+"segments", float64(p.Segments), 0, float64(l.Segments))
	}
}

// AddressesChange reports whether the two ends of a stream see different addresses or ports: a NAT
// or a proxy is between them.
func (r *Result) AddressesChange() bool {
	if r.Near == nil || r.Far == nil {
		return false
	}
	same := func(a, b netip.AddrPort) bool {
		return a.Port() == b.Port() && a.Addr().Unmap().WithZone("") == b.Addr().Unmap().WithZone("")
	}
	for _, near := range r.Near.Streams {
		if !slices.ContainsFunc(r.Far.Streams, func(far Stream) bool {
			return same(near.Local, far.Remote) && same(near.Remote, far.Local)
		}) {
			return true
		}
	}
	return false
}

// Spurious returns the retransmitted segments that had already arrived, as the receiver reported
// to the sender (DSACK, RFC 2883). known is false if a stream does not report them.
func (e *End) Spurious() (segments int64, known bool) {
	for i := range e.Streams {
		s := e.Streams[i].Samples
		if len(s) == 0 || s[len(s)-1].Have&HaveDSACKDups == 0 {
			return 0, false
		}
		segments += s[len(s)-1].DSACKDups
	}
	return segments, len(e.Streams) > 0
}
