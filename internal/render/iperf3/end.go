package iperf3

import (
	"cmp"

	"github.com/fullpipe-net/fullpipe/internal/iperf3"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// end tells the test as a whole, each stream by both ends' results.
func (d *Document) end(a *iperf3.Account) {
	n := max(a.Params.Streams, 1)
	for i, leg := range a.Legs {
		var streams []EndStream
		for k := range n {
			id := i*n + k
			if id < len(a.Mine.Streams) && (id < len(a.Far.Streams) || d.accepted()) {
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
	wall := a.Mine.CPUTotal
	cpu := &CPU{HostTotal: wall, RemoteTotal: a.Far.CPUTotal, RemoteUser: a.Far.CPUUser, RemoteSystem: a.Far.CPUSystem}
	if both := (a.User + a.System).Seconds(); both > 0 {
		cpu.HostUser = wall * a.User.Seconds() / both
		cpu.HostSystem = wall * a.System.Seconds() / both
	}
	d.End.CPU = cpu
	switch {
	case a.Params.UDP:
	case d.accepted() && !a.Params.Reverse && !a.Params.Both:
		d.End.ReceiverCongestion = a.Mine.Congestion
	case d.accepted(): // 3.12 has no second one there
		d.End.SenderCongestion = a.Mine.Congestion
	default:
		d.End.SenderCongestion = a.Mine.Congestion
		d.End.ReceiverCongestion = a.Far.Congestion
		if a.Params.Reverse {
			d.End.SenderCongestion, d.End.ReceiverCongestion = d.End.ReceiverCongestion, d.End.SenderCongestion
		}
	}
}

// accepted says that this end is the server.
func (d *Document) accepted() bool { return d.Start.Accepted != nil }

// theirs is a stream as the far end counted it; nothing of one that broke off.
func theirs(a *iperf3.Account, id int) (r iperf3.StreamResult) {
	if id < len(a.Far.Streams) {
		r = a.Far.Streams[id]
	}
	return r
}

// tcpStream is one stream by its sender and its receiver.
func (d *Document) tcpStream(a *iperf3.Account, leg *transfer.Result, id int) EndStream {
	mine := a.Mine.Streams[id]
	far := theirs(a, id)
	up := leg.Spec.Direction == transfer.Up
	sent := mine
	received := far
	if !up {
		sent = far
		received = mine
	}
	sender := whole(sent)
	receiver := whole(received)
	sender.Socket = socketOf(id)
	receiver.Socket = socketOf(id)
	sender.Sender = up
	receiver.Sender = up
	if !up && d.accepted() { // a server tells of its own sending only
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

// whole is a stream as one end counted it.
func whole(r iperf3.StreamResult) *Span {
	seconds := r.End - r.Start
	s := &Span{End: r.End, Seconds: r.End, Bytes: r.Bytes}
	if seconds > 0 {
		s.Bps = float64(r.Bytes) * 8 / seconds
	}
	return s
}

// sums are those of what was sent and of what arrived; the time is the longest stream's.
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

// udpStream is one stream as its sender timed it and its receiver counted it.
func udpStream(a *iperf3.Account, leg *transfer.DatagramResult, id int) EndStream {
	sent := a.Mine.Streams[id]
	received := theirs(a, id)
	if leg.Spec.Direction == transfer.Down {
		sent, received = received, sent
	}
	s := whole(sent)
	s.Socket = socketOf(id)
	s.Sender = leg.Spec.Direction == transfer.Up
	counted(s, received.Jitter, max(received.Errors, 0), cmp.Or(max(sent.Packets, 0), received.Packets))
	var order int64
	if received.More != nil {
		order = received.More.Reordered
	}
	s.OutOfOrder = &order
	return EndStream{UDP: s}
}

// counted adds what is said of datagrams.
func counted(s *Span, jitter float64, lost, packets int64) {
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

// udpSums are the sums of a leg's UDP streams.
func (d *Document) udpSums(a *iperf3.Account, leg int, streams []EndStream) {
	var sent, received *Span
	var jitter float64
	var lost, packets int64
	n := max(a.Params.Streams, 1)
	for k, s := range streams {
		here := a.Mine.Streams[leg*n+k]
		there := theirs(a, leg*n+k)
		if !s.UDP.Sender {
			here, there = there, here
		}
		there.Start = here.Start
		there.End = here.End // as each stream's line: a receiver's includes waiting
		left := whole(here)
		came := whole(there)
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
	counted(&sum, jitter, lost, packets)
	counted(sent, 0, 0, packets)
	counted(received, jitter, lost, packets)
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
