package datagram

import (
	"encoding/binary"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/search"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// Between two fullpipes a UDP sender can search the path's capacity while it sends. Every 50 ms the receiver sends
// a status on the same flow. iperf3 does not support this.

// status is a receiver's state: counters since the first datagram.
type status struct {
	elapsed   time.Duration // receiver's clock since the first datagram
	bytes     int64
	highest   int64
	lost      int64
	reordered int64         // reordered and duplicates
	delay     time.Duration // above the minimum, mean since the last status
}

// statusMagic begins a status of statusSize bytes.
var statusMagic = [4]byte{'F', 'P', 'S', '1'}

const statusSize = 4 + 6*8

func (s *status) put(b []byte) {
	copy(b, statusMagic[:])
	for i, v := range []int64{int64(s.elapsed), s.bytes, s.highest, s.lost, s.reordered, int64(s.delay)} {
		binary.BigEndian.PutUint64(b[4+8*i:], uint64(v))
	}
}

// readStatus parses a status. ok is false if it is none or invalid.
func readStatus(b []byte) (s status, ok bool) {
	if len(b) != statusSize || [4]byte(b) != statusMagic {
		return s, false
	}
	var v [6]int64
	for i := range v {
		v[i] = int64(binary.BigEndian.Uint64(b[4+8*i:]))
		if v[i] < 0 || v[i] > 1<<60 {
			return s, false
		}
	}
	return status{time.Duration(v[0]), v[1], v[2], v[3], v[4], time.Duration(v[5])}, true
}

// statusTracker turns statuses into feedback and per-second results, at either end.
type statusTracker struct {
	last    status
	second  status // at the last full second
	delays  time.Duration
	n       int
	seconds []transfer.DatagramSecond

	congested bool
}

// add returns the change since the last status. ok is false for a late status, or one without new datagrams.
func (a *statusTracker) add(s status) (f search.Feedback, ok bool) {
	if s.elapsed <= a.last.elapsed || s.bytes < a.last.bytes || s.highest < a.last.highest {
		return f, false
	}
	lost := max(s.lost-a.last.lost, 0)
	reordered := max(s.reordered-a.last.reordered, 0)
	f = search.Feedback{SequenceErrors: lost + reordered, Delay: s.delay}
	news := s.highest > a.last.highest
	a.last = s
	a.congested = a.congested || f.Congested()
	a.delays += s.delay
	a.n++
	if span := s.elapsed - a.second.elapsed; span >= time.Second {
		a.seconds = append(a.seconds, transfer.DatagramSecond{Duration: span, Sent: s.highest - a.second.highest,
			Lost: max(s.lost-a.second.lost, 0), Bytes: s.bytes - a.second.bytes, Delay: a.delays / time.Duration(a.n)})
		a.second = s
		a.delays = 0
		a.n = 0
	}
	return f, news
}

// rateSearch is the state of a flow's rate search, at either end.
type rateSearch struct {
	bps atomic.Int64 // current send rate, IP layer

	mu      sync.Mutex // guards the fields below and a receiver's arrivals
	account statusTracker
	load    search.Load
	heard   time.Time     // a sender's last status
	delays  time.Duration // a receiver's, since its last status
	n       int
}

// feedbackTimeout is the longest time that a sender sends without a status.
const feedbackTimeout = time.Second

// follow adjusts a sender to received statuses until the socket's deadline.
func (s *rateSearch) follow(one *Flow) {
	buffer := make([]byte, 1<<16)
	remote := one.Socket.Remote()
	for {
		n, _, from, err := one.Socket.Receive(buffer)
		if err != nil {
			return
		}
		received, ok := readStatus(buffer[:n])
		if !ok || from != remote {
			continue
		}
		s.mu.Lock()
		s.heard = time.Now()
		if f, ok := s.account.add(received); ok {
			s.load.Observe(f)
			s.bps.Store(int64(s.load.Bps()))
		}
		s.mu.Unlock()
	}
}

// rate returns the send rate in bit/s of payload. limit, if not 0, is its maximum.
func (s *rateSearch) rate(size, headers int, most float64) float64 {
	s.mu.Lock()
	if !s.heard.IsZero() && time.Since(s.heard) > feedbackTimeout {
		s.load.Silent()
		s.heard = time.Now()
		s.bps.Store(int64(s.load.Bps()))
	}
	s.mu.Unlock()
	bps := float64(s.bps.Load()) * float64(size) / float64(size+headers)
	if most > 0 {
		bps = min(bps, most)
	}
	return bps
}

// Headers returns the size of IP and UDP headers, bytes.
func (f *Flow) Headers() int {
	if f.Socket.Remote().Addr().Is4() {
		return 20 + 8
	}
	return 40 + 8
}

// sendFeedback sends a receiver's statuses until done is closed.
func (s *rateSearch) sendFeedback(f *Flows, one *Flow, done <-chan struct{}) {
	tick := time.NewTicker(search.FeedbackEvery)
	defer tick.Stop()
	var datagram [statusSize]byte
	for {
		select {
		case <-done:
			return
		case <-tick.C:
		}
		s.mu.Lock()
		a := &one.Arrivals
		now := status{elapsed: time.Since(f.started) - one.First, bytes: a.Bytes, highest: int64(a.Highest),
			lost: a.Lost, reordered: a.Reordered + a.Duplicates}
		if s.n > 0 {
			now.delay = s.delays / time.Duration(s.n)
		}
		s.delays = 0
		s.n = 0
		begun := a.Datagrams > 0
		if begun {
			s.account.add(now)
		}
		s.mu.Unlock()
		if begun {
			now.put(datagram[:])
			one.Socket.Send(datagram[:], statusSize) // a lost one is followed by the next
		}
	}
}
