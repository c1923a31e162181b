package model

import (
	"math"
	"net/netip"
	"time"
)

// IPHeaders is the size of the IPv4 and TCP headers of a segment without options.
const IPHeaders = 40

// HeadersTo returns the bytes of the IP and TCP headers without options in packets to an address: the MTU less the
// MSS.
func HeadersTo(to netip.Addr) int {
	if to.Unmap().Is6() {
		return IPHeaders + 20
	}
	return IPHeaders
}

// TimestampBytes is the size of the timestamps option in each segment (RFC 7323 section 3.2, padded).
const TimestampBytes = 12

// InitialWindow is a sender's first window in segments (RFC 6928).
const InitialWindow = 10

// Goodput returns the largest goodput of a link of rateBps with segments of mss bytes. headers counts the other
// bytes of a segment on the link: IPHeaders, TimestampBytes, and framing if the rate includes it (38 for Ethernet,
// RFC 6349 section 4.1.1).
func Goodput(rateBps float64, mss, headers int) float64 {
	return rateBps * float64(mss) / float64(mss+headers)
}

// LinkRate returns the link rate that a goodput needs. It inverts Goodput.
func LinkRate(goodputBps float64, mss, headers int) float64 {
	return goodputBps * float64(mss+headers) / float64(mss)
}

// TransferTime returns the time from the first segment to the last acknowledgement. The window doubles each RTT
// from InitialWindow until it fills the path, which then carries goodputBps. It assumes no loss.
func TransferTime(bytes float64, goodputBps float64, rtt time.Duration, mss int) time.Duration {
	if bytes <= 0 || goodputBps <= 0 {
		return 0
	}
	full := goodputBps / 8 * rtt.Seconds() // bytes per RTT in steady state
	window := float64(InitialWindow * max(mss, 1))
	rounds := 0.0
	for window < full && bytes > window {
		bytes -= window
		window *= 2
		rounds++
	}
	seconds := (rounds+1)*rtt.Seconds() + bytes*8/goodputBps
	if window < full { // the last round sends less than a full window
		seconds = (rounds + 1) * rtt.Seconds()
	}
	return time.Duration(math.Min(seconds, math.MaxInt64/2e9) * float64(time.Second))
}

// Frames returns the packets per second of a link of rateBps. overhead is the framing in bytes that the rate
// includes (RFC 6349 section 4.1.1, which rounds down).
func Frames(rateBps float64, packet, overhead int) float64 {
	return rateBps / 8 / float64(packet+overhead)
}

// TransferTimeRatio returns RFC 6349's first metric: the transfer time relative to that at the largest TCP rate
// (section 4.1.2). 1 is ideal.
func TransferTimeRatio(actual, ideal time.Duration) float64 { return float64(actual) / float64(ideal) }

// Efficiency returns RFC 6349's second metric: the share (0 to 1) of the sent bytes, retransmissions included, that
// were not retransmissions (section 4.2.1).
func Efficiency(sent, retransmitted int64) float64 {
	return float64(sent-retransmitted) / float64(sent)
}

// BufferDelay returns RFC 6349's third metric: the increase of the mean RTT during a transfer relative to the idle
// RTT (section 4.3.1). 0 means no queue.
func BufferDelay(during, idle time.Duration) float64 { return float64(during-idle) / float64(idle) }

// Connections returns the number of connections with this window that keep bytes in flight (RFC 6349 section 5.1).
func Connections(bytes float64, window int) int {
	return max(int(math.Ceil(bytes/float64(max(window, 1))-1e-9)), 1)
}

// GoodputBesideAcks returns Goodput on a link that also carries the ACKs of otherBps of payload in the other
// direction: one of headers bytes for every second segment.
func GoodputBesideAcks(rateBps, otherBps float64, mss, headers int) float64 {
	acks := otherBps / float64(2*mss) * float64(headers)
	return Goodput(math.Max(rateBps-acks, 0), mss, headers)
}
