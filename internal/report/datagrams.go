package report

import (
	"slices"

	"github.com/fullpipe-net/fullpipe/internal/lost"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// Datagrams describes one UDP transfer and its verdict.
func Datagrams(r *transfer.DatagramResult, v verdict.Verdict) record.Datagrams {
	d := record.Datagrams{Direction: r.Spec.Direction, Protocol: "udp", GoodputBps: r.Bps(),
		DurationS:     r.Duration.Seconds(),
		Bytes:         r.Bytes,
		DatagramBytes: r.Spec.Size, Streams: max(r.Spec.Streams, 1), Sent: r.Sent, Received: r.Received, Lost: r.Lost,
		LossRatio: r.LossRatio(), Reordered: r.Reordered, Duplicates: r.Duplicates, JitterS: r.Jitter.Seconds(),
		Limiter: v.Limiter, Confidence: v.Confidence, Candidates: v.Candidates, Evidence: text.EvidenceSentences(v.Evidence),
		Interrupted: !r.Complete, Warnings: r.Warnings}
	if r.Spec.Bps > 0 {
		d.OfferedBps = &r.Spec.Bps
	}
	if v := r.Variation; v != nil {
		d.Variation = &record.Variation{MedianS: v.Median.Seconds(), P95S: v.P95.Seconds(), P99S: v.P99.Seconds(),
			LargestS: v.Largest.Seconds()}
	}
	if r.CPU != nil && r.CPU.Wall > 0 {
		d.CPURatio = rate(r.CPU.Process.Seconds() / r.CPU.Wall.Seconds())
	}
	if r.FarCPU != nil && r.FarCPU.Wall > 0 {
		d.FarCPURatio = rate(r.FarCPU.Process.Seconds() / r.FarCPU.Wall.Seconds())
	}
	d.LostAt = datagramsLostAt(r)
	return d
}

// datagramsLostAt returns the places of lost datagrams: the receiver's sockets, a place of this host
// by its counters, or neither. It is nil if the receiver's sockets are not known and no counter
// explains the losses.
func datagramsLostAt(r *transfer.DatagramResult) (all []record.LostAt) {
	rest := r.Lost
	size := int64(r.Spec.Size)
	add := func(one record.LostAt) {
		one.Watched = record.ReceiverHost
		one.Share = shareOf(one.Segments, r.Lost)
		rest -= one.Segments
		all = append(all, one)
	}
	if n := min(record.OrZero(r.SocketDrops), rest); n > 0 {
		add(record.LostAt{Confidence: verdict.High, Place: string(lost.Socket), Side: record.ReceiverHost,
			Reason: "SOCKET_RCVBUFF", Segments: n, Bytes: n * size, DroppedPackets: *r.SocketDrops})
	}
	side := record.SenderHost
	if r.Spec.Direction == transfer.Down {
		side = record.ReceiverHost
	}
	watched := r.Losses != nil && !r.Losses.Incomplete && !r.Losses.NamespaceOnly
	if r.Losses != nil {
		for _, p := range r.Losses.Places {
			one := place(p, side, r.DropCounters)
			one.NamespaceOnly = r.Losses.NamespaceOnly
			one.Segments = min((p.Dropped+size-1)/max(size, 1), rest)
			one.Bytes = one.Segments * size
			counted := one.Place == string(lost.Socket) && r.SocketDrops != nil && side == record.ReceiverHost
			if one.Segments > 0 && !counted {
				add(one)
			}
		}
	}
	counters := slices.DeleteFunc(slices.Clone(r.DropCounters), func(c transfer.DropCounter) bool {
		return c.Place == string(lost.Socket) && r.SocketDrops != nil && r.Spec.Direction == transfer.Down
	})
	senders := counters
	receivers := counters
	if r.Spec.Direction == transfer.Down {
		senders = nil
	} else {
		receivers = nil
	}
	if watched { // drops of the own datagrams are known
		senders = nil
		receivers = nil
	}
	one, ok := explained(lost.Lost{Segments: rest, MSS: size, Headers: lost.HeadersUDP}, senders, receivers)
	if ok {
		add(one)
	}
	if rest > r.Lost/20 && r.SocketDrops != nil { // fewer may be batches of another size
		confidence := verdict.Medium // counters may have missed a place of this host
		if watched {
			confidence = verdict.High
		}
		add(record.LostAt{Confidence: confidence, Place: record.Elsewhere, Segments: rest, Bytes: rest * size})
	}
	return all
}
