package datagram

import (
	"encoding/binary"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/search"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// Between two fullpipes a UDP sender may search the path's capacity while it sends: the
// receiver tells it every 50 ms how it stands, in a datagram on the same flow. iperf3
// knows nothing of it and is not asked for it.

// status is how a receiver stands: counters since the first datagram.
type status struct {
	elapsed   time.Duration // on the receiver's clock, since the first datagram
	bytes     int64
	highest   int64
	lost      int64
	reordered int64         // reordered and duplicates
	delay     time.Duration // above the least, on average since the last status
}

// statusMagic opens a status; statusSize is all of it.
var statusMagic = [4]byte{'F', 'P', 'S', '1'}

const statusSize = 4 + 6*8

func (s *status) put(b []byte) {
	copy(b, statusMagic[:])
	for i, v := range []int64{int64(s.elapsed), s.bytes, s.highest, s.lost, s.reordered, int64(s.delay)} {
		binary.BigEndian.PutUint64(b[4+8*i:], uint64(v))
	}
}

// readStatus answers false for anything that is none, or that makes no sense.
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

// account turns statuses into feedback and seconds, at either end.
type account struct {
	last    status
	second  status // at the last full second
	delays  time.Duration
	n       int
	seconds []transfer.DatagramSecond

	congested bool
}

// add answers what changed since the last status; ok is false for one that came late, or
// that knows of no further datagram.
func (a *account) add(s status) (f search.Feedback, ok bool) {
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

// rateSearch is the state of one flow that searches, at either end.
type rateSearch struct {
	bps atomic.Int64 // what the sender sends now, at the IP layer

	mu      sync.Mutex // guards what follows, and a receiver's arrivals
	account account
	load    search.Load
	heard   time.Time     // a sender's last status
	delays  time.Duration // a receiver's, since its last status
	n       int
}

// feedbackTimeout is how long a sender goes on without a status.
const feedbackTimeout = time.Second

// follow adjusts a sender to the statuses that come until the socket's deadline.
func (s *rateSearch) follow(one *Flow) {
	buffer := make([]byte, 1<<16)
	remote := one.Socket.Remote()
	for {
		n, _, from, err := one.Socket.Receive(buffer)
		if err != nil {
			return
		}
		told, ok := readStatus(buffer[:n])
		if !ok || from != remote {
			continue
		}
		s.mu.Lock()
		s.heard = time.Now()
		if f, ok := s.account.add(told); ok {
			s.load.Observe(f)
			s.bps.Store(int64(s.load.Bps()))
		}
		s.mu.Unlock()
	}
}

// rate is what to send at, in bit/s of payload under headers; most bounds it where it is not 0.
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

// Headers are what IP and UDP add to a datagram's payload, bytes.
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
			one.Socket.Send(datagram[:], statusSize) // one that is lost is followed by the next
		}
	}
}
