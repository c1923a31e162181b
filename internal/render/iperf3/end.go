package iperf3

import (
	"cmp"

	"github.com/fullpipe-net/fullpipe/internal/iperf3"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// end adds the results of the whole test, each stream as both ends counted it.
func (d *Document) end(a *iperf3.TestResult) {
	n := max(a.Params.Streams, 1)
	for i, leg := range a.Legs {
		var streams []EndStream
		for k := range n {
			id := i*n + k
			if id < len(a.Near.Streams) && (id < len(a.Far.Streams) || d.isServer()) {
				if leg.TCP != nil {
					streams = append(streams, d.tcpStream(a, leg.TCP, id))
				} else {
					streams = append(streams, udpStream(a, leg.Datagrams, id))
				}
			}
		}
		d.End.Streams = append(d.End.Streams, streams...)
		sent, received := sums(streams)
		switch {
		case leg.TCP == nil:
			d.udpSums(a, i, streams)
		case i == 0:
			d.End.Sent = sent
			d.End.Received = received
		default:
			d.End.SentReverse = sent
			d.End.ReceivedReverse = received
		}
	}
	wall := a.Near.CPUTotal
	cpu := &CPU{HostTotal: wall, RemoteTotal: a.Far.CPUTotal, RemoteUser: a.Far.CPUUser, RemoteSystem: a.Far.CPUSystem}
	if both := (a.User + a.System).Seconds(); both > 0 {
		cpu.HostUser = wall * a.User.Seconds() / both
		cpu.HostSystem = wall * a.System.Seconds() / both
	}
	d.End.CPU = cpu
	switch {
	case a.Params.UDP:
	case d.isServer() && !a.Params.Reverse && !a.Params.Both:
		d.End.ReceiverCongestion = a.Near.Congestion
	case d.isServer(): // 3.12 prints only one at a server
		d.End.SenderCongestion = a.Near.Congestion
	default:
		d.End.SenderCongestion = a.Near.Congestion
		d.End.ReceiverCongestion = a.Far.Congestion
		if a.Params.Reverse {
			d.End.SenderCongestion, d.End.ReceiverCongestion = d.End.ReceiverCongestion, d.End.SenderCongestion
		}
	}
}

// isServer reports whether this end is the server.
func (d *Document) isServer() bool { return d.Start.Accepted != nil }

// farStream returns the far end's result of a stream, zero if the test was aborted.
func farStream(a *iperf3.TestResult, id int) (r iperf3.StreamResult) {
	if id < len(a.Far.Streams) {
		r = a.Far.Streams[id]
	}
	return r
}

// tcpStream returns one stream as its sender and receiver counted it.
func (d *Document) tcpStream(a *iperf3.TestResult, leg *transfer.Result, id int) EndStream {
	mine := a.Near.Streams[id]
	far := farStream(a, id)
	up := leg.Spec.Direction == transfer.Up
	sent := mine
	received := far
	if !up {
		sent = far
		received = mine
	}
	sender := spanOf(sent)
	receiver := spanOf(received)
	sender.Socket = socketOf(id)
	receiver.Socket = socketOf(id)
	sender.Sender = up
	receiver.Sender = up
	if !up && d.isServer() { // a server prints details of its own sending only
		return EndStream{Sender: sender, Receiver: receiver}
	}
	resent := max(sent.Retransmits, 0)
	sender.Retransmits = &resent
	var most, window, slowest, fastest, mean, count int64
	for _, one := range d.Intervals {
		for _, s := range one.Streams {
			if s.Socket != sender.Socket || s.RTT == nil {
				continue
			}
			most = max(most, *s.Cwnd)
			window = max(window, *s.SendWnd)
			slowest = max(slowest, *s.RTT)
			if fastest == 0 || *s.RTT < fastest {
				fastest = *s.RTT
			}
			mean = mean + *s.RTT
			count = count + 1
			sender.Reorder = s.Reorder
		}
	}
	mean /= max(count, 1)
	sender.MaxCwnd = &most
	sender.MaxSendWnd = &window
	sender.MaxRTT = &slowest
	sender.MinRTT = &fastest
	sender.MeanRTT = &mean
	return EndStream{Sender: sender, Receiver: receiver}
}

// spanOf returns one end's result of a stream.
func spanOf(r iperf3.StreamResult) *Span {
	seconds := r.End - r.Start
	s := &Span{End: r.End, Seconds: r.End, Bytes: r.Bytes}
	if seconds > 0 {
		s.Bps = float64(r.Bytes) * 8 / seconds
	}
	return s
}

// sums returns the sums of sent and received data. The time is the longest stream's.
func sums(streams []EndStream) (sent, received *Span) {
	for _, s := range streams {
		if s.Sender == nil {
			continue
		}
		add(&sent, s.Sender)
		add(&received, s.Receiver)
	}
	return sent, received
}

func add(to **Span, s *Span) {
	if *to == nil {
		*to = &Span{Sender: s.Sender}
	}
	sum := *to
	sum.Bytes += s.Bytes
	sum.End = max(sum.End, s.End)
	sum.Seconds = sum.End
	if sum.End > 0 {
		sum.Bps = float64(sum.Bytes) * 8 / sum.End
	}
	if s.Retransmits != nil {
		resent := *s.Retransmits
		if sum.Retransmits != nil {
			resent += *sum.Retransmits
		}
		sum.Retransmits = &resent
	}
}

// udpStream returns one stream with the sender's time and the receiver's counts.
func udpStream(a *iperf3.TestResult, leg *transfer.DatagramResult, id int) EndStream {
	sent := a.Near.Streams[id]
	received := farStream(a, id)
	if leg.Spec.Direction == transfer.Down {
		sent, received = received, sent
	}
	s := spanOf(sent)
	s.Socket = socketOf(id)
	s.Sender = leg.Spec.Direction == transfer.Up
	setDatagrams(s, received.Jitter, max(received.Errors, 0), cmp.Or(max(sent.Packets, 0), received.Packets))
	var order int64
	if received.Extended != nil {
		order = received.Extended.Reordered
	}
	s.OutOfOrder = &order
	return EndStream{UDP: s}
}

// setDatagrams sets the datagram counts.
func setDatagrams(s *Span, jitter float64, lost, packets int64) {
	ms := jitter * 1000
	percent := 0.0
	if packets > 0 {
		percent = 100 * float64(lost) / float64(packets)
	}
	s.JitterMs = &ms
	s.Lost = &lost
	s.Packets = &packets
	s.LostPercent = &percent
}

// udpSums sets the sums of a leg's UDP streams.
func (d *Document) udpSums(a *iperf3.TestResult, leg int, streams []EndStream) {
	var sent, received *Span
	var jitter float64
	var lost, packets int64
	n := max(a.Params.Streams, 1)
	for k, s := range streams {
		here := a.Near.Streams[leg*n+k]
		there := farStream(a, leg*n+k)
		if !s.UDP.Sender {
			here, there = there, here
		}
		there.Start = here.Start
		there.End = here.End // as in each stream's line: a receiver's time includes waiting
		left := spanOf(here)
		came := spanOf(there)
		left.Sender = s.UDP.Sender
		came.Sender = !s.UDP.Sender
		add(&sent, left)
		add(&received, came)
		jitter += *s.UDP.JitterMs / 1000 / float64(len(streams))
		lost = lost + *s.UDP.Lost
		packets = packets + *s.UDP.Packets
	}
	if sent == nil {
		return
	}
	sum := *received
	sum.Sender = sent.Sender
	setDatagrams(&sum, jitter, lost, packets)
	setDatagrams(sent, 0, 0, packets)
	setDatagrams(received, jitter, lost, packets)
	if leg == 0 {
		d.End.Sum = &sum
		d.End.Sent = sent
		d.End.Received = received
	} else {
		d.End.Reverse = &sum
		d.End.SentReverse = sent
		d.End.ReceivedReverse = received
	}
}
