package model

import (
	"math"
	"net/netip"
	"time"
)

// IPHeaders are the IPv4 and TCP headers of a segment without options.
const IPHeaders = 40

// HeadersTo returns the bytes of IP and TCP headers without options in packets to an address: by these an MTU exceeds
// the MSS by.
func HeadersTo(to netip.Addr) int {
	if to.Unmap().Is6() {
		return IPHeaders + 20
	}
	return IPHeaders
}

// TimestampBytes is what the timestamps option takes from each segment (RFC 7323
// section 3.2, padded).
const TimestampBytes = 12

// InitialWindow is the window in segments with which a sender starts (RFC 6928).
const InitialWindow = 10

// Goodput is the most payload that a link of rateBps carries: segments of mss bytes,
// each with headers bytes more on the link (IPHeaders, TimestampBytes, and framing
// where the rate counts it: 38 for Ethernet, RFC 6349 section 4.1.1).
func Goodput(rateBps float64, mss, headers int) float64 {
	return rateBps * float64(mss) / float64(mss+headers)
}

// LinkRate is Goodput the other way: the rate that a link needs for a goodput.
func LinkRate(goodputBps float64, mss, headers int) float64 {
	return goodputBps * float64(mss+headers) / float64(mss)
}

// TransferTime is how long bytes take from the first segment to the last
// acknowledgement on a path that carries goodputBps in steady state: a window that
// doubles every round trip from InitialWindow until it fills the path, then goodputBps.
// No loss is assumed.
func TransferTime(bytes float64, goodputBps float64, rtt time.Duration, mss int) time.Duration {
	if bytes <= 0 || goodputBps <= 0 {
		return 0
	}
	full := goodputBps / 8 * rtt.Seconds() // bytes a round trip in steady state
	window := float64(InitialWindow * max(mss, 1))
	rounds := 0.0
	for window < full && bytes > window {
		bytes -= window
		window *= 2
		rounds++
	}
	seconds := (rounds+1)*rtt.Seconds() + bytes*8/goodputBps
	if window < full { // the last round sends less than a full path holds
		seconds = (rounds + 1) * rtt.Seconds()
	}
	return time.Duration(math.Min(seconds, math.MaxInt64/2e9) * float64(time.Second))
}

// Frames is how many packets of the given size a link of rateBps carries in a second,
// each with overhead bytes of framing that the rate counts (RFC 6349 section 4.1.1,
// which leaves the fraction out).
func Frames(rateBps float64, packet, overhead int) float64 {
	return rateBps / 8 / float64(packet+overhead)
}

// TransferTimeRatio is RFC 6349's first metric: how much longer a transfer took than it
// would at the largest TCP rate (section 4.1.2). 1 is ideal.
func TransferTimeRatio(actual, ideal time.Duration) float64 { return float64(actual) / float64(ideal) }

// Efficiency is RFC 6349's second metric: the share (0 to 1) of the bytes sent,
// retransmissions included, that were not sent again (section 4.2.1).
func Efficiency(sent, retransmitted int64) float64 {
	return float64(sent-retransmitted) / float64(sent)
}

// BufferDelay is RFC 6349's third metric: how much the mean round trip during a transfer
// lies above the idle one, as a share of that (section 4.3.1). 0 is no queue at all.
func BufferDelay(during, idle time.Duration) float64 { return float64(during-idle) / float64(idle) }

// Connections is how many connections of one window each hold the given bytes (RFC 6349
// section 5.1).
func Connections(bytes float64, window int) int {
	return max(int(math.Ceil(bytes/float64(max(window, 1))-1e-9)), 1)
}

// GoodputBesideAcks is Goodput on a link that also carries the acknowledgements of
// otherBps of payload going the other way: one of headers bytes for every second segment.
func GoodputBesideAcks(rateBps, otherBps float64, mss, headers int) float64 {
	acks := otherBps / float64(2*mss) * float64(headers)
	return Goodput(math.Max(rateBps-acks, 0), mss, headers)
}
