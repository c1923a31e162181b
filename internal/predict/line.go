package predict

import (
	"math"

	"github.com/fullpipe-net/fullpipe/internal/link"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// line computes the time of a segment, the round trip and the queue of the link.
func (r *scenario) line(p link.Path, data, acks link.Config) {
	r.rate = math.Inf(1)
	if data.Rate > 0 {
		r.rate = float64(data.Rate)
		r.segment = onLine(r.mss+r.headers, data, p.VPN) * 8 / r.rate
	}
	ackTime := 0.0
	if acks.Rate > 0 {
		ackTime = onLine(r.headers, acks, p.VPN) * 8 / float64(acks.Rate)
	}
	r.rtt = p.RTT.Seconds() + r.segment + ackTime + (data.Aggregate+acks.Aggregate).Seconds()/2
	r.rtt = math.Max(r.rtt, hosts)
	// Every second segment is acknowledged (RFC 9293 section 3.8.6.3): a window's round
	// trip ends with the second's arrival.
	r.trailing = r.segment
	if p.HalfDuplex { // one acknowledgement for two segments takes its turn on the medium
		r.segment += ackTime / 2
	}
	r.queue = math.Inf(1)
	if data.Rate > 0 {
		packets := math.Inf(1)
		if data.QueueBytes > 0 {
			packets = float64(data.QueueBytes) / (r.mss + r.headers)
		}
		if data.QueuePackets > 0 {
			packets = math.Min(packets, float64(data.QueuePackets))
		}
		if data.MarkBytes > 0 { // a mark slows the sender as a drop does
			packets = math.Min(packets, float64(data.MarkBytes)/(r.mss+r.headers))
		}
		r.queue = packets
	}
	if data.PoliceRate > 0 && (data.Rate == 0 || data.PoliceRate < data.Rate) {
		// A bucket of tokens is a queue that takes no time.
		r.rate = float64(data.PoliceRate)
		r.segment = (r.mss + r.headers) * 8 / r.rate
		r.queue = float64(data.PoliceBurst) / (r.mss + r.headers)
		r.policed = true
		r.warn(verdict.BurstOfPolicer)
	}
	r.jitter = [2]float64{data.Jitter.Seconds(), acks.Jitter.Seconds()}
	r.gateways(p.VPN)
	if data.Reorder > 0 {
		r.warn(verdict.NoReordering)
	}
	if data.Silent && data.MTU > 0 && data.MTU < defaultMTU {
		r.warn(verdict.FullSegmentsVanish)
	}
}

// capFlows limits the rate of each connection, as clouds do. If all connections together get less than the line
// carries, this is the bottleneck. For a limit that is only stated it is not known whether excess packets wait or are
// dropped.
func (r *scenario) capFlows(each float64, data link.Config, stated bool) {
	if all := each * float64(r.connections); each > 0 && all < r.rate {
		before := r.segment
		r.rate = all
		r.capped = true
		r.segment = (r.mss + r.headers) * 8 / all
		r.rtt += r.segment - before
		r.trailing = r.segment
		if data.Rate <= 0 { // the queue is not stated: one BDP, as the lab's lines have
			r.queue = math.Max(r.rtt/r.segment, 10)
		}
		if stated {
			r.warn(verdict.BoundTakenToQueue)
		}
	}
}

// onLine returns the bytes of a packet on the line.
func onLine(packet float64, c link.Config, v link.VPN) float64 {
	switch {
	case c.Tunnelled:
		packet = float64(link.ESPBytes(int(packet)))
	case v.Kind == link.WireGuard:
		packet = float64(link.WireGuardBytes(int(packet), v.MTU))
	}
	return packet + float64(c.Overhead)
}

// gateways models VPN gateways. Their budget serves both directions: a segment and half an ACK each. Every packet takes
// its time there. If they are slower than the line, the queue is theirs.
func (r *scenario) gateways(v link.VPN) {
	if v.Crypto <= 0 {
		return
	}
	budget := float64(v.Crypto)
	r.rtt += (r.mss + 2*r.headers) * 8 / budget
	if segment := (r.mss + 1.5*r.headers) * 8 / budget; segment > r.segment {
		r.rate = budget
		r.segment = segment
		r.queue = float64(v.Depth)
	}
}
