package iperf3

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/admission"
	"github.com/fullpipe-net/fullpipe/internal/probe"
	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

const (
	defaultTests   = 64
	defaultStreams = 512
	defaultBuffers = 1 << 30
	// dawdling is how long a client may take to begin when others want its place, beginTime
	// when nobody does.
	dawdling    = time.Second
	beginTime   = 30 * time.Second
	defaultTime = time.Hour
	// overtime is how long a client may stay beyond the time it asked for.
	overtime = 40 * time.Second
	// dataPatience is how long a test may pass without any data.
	dataPatience = 120 * time.Second
)

func (s *Server) maxTests() int           { return cmp.Or(s.MaxTests, defaultTests) }
func (s *Server) maxTestsPerHost() int    { return cmp.Or(s.MaxTestsPerHost, max(s.maxTests()/4, 1)) }
func (s *Server) maxStreams() int         { return cmp.Or(s.MaxStreams, defaultStreams) }
func (s *Server) maxBuffers() int64       { return cmp.Or(s.MaxBuffers, defaultBuffers) }
func (s *Server) maxTime() time.Duration  { return cmp.Or(s.MaxTime, defaultTime) }
func (s *Server) patience() time.Duration { return cmp.Or(s.Patience, answerTimeout) }

// allows holds a test to the server's limits.
func (s *Server) allows(p Params) (Code, error) {
	longest := int(s.maxTime() / time.Second)
	streams, buffers := p.needs()
	switch {
	case p.UDP && !s.UDP:
		return CodeParams, errors.New("this server does not admit UDP")
	case p.Time+p.Omit > longest || p.Time == 0 && p.Num == 0 && p.Blocks == 0:
		return CodeDuration, fmt.Errorf("%d s were asked for; at most %d are allowed", p.Time+p.Omit, longest)
	case s.MaxBytes > 0 && p.total() > s.MaxBytes:
		return CodeDuration, fmt.Errorf("%v were asked for; at most %v are allowed", units.Size(p.total()),
			units.Size(s.MaxBytes))
	case streams > s.maxStreams():
		return CodeParams, fmt.Errorf("%d streams were asked for; at most %d are allowed", streams, s.maxStreams())
	case buffers > s.maxBuffers():
		return CodeBuffer, fmt.Errorf("%v of buffers were asked for; at most %v are allowed", units.Size(buffers),
			units.Size(s.maxBuffers()))
	case s.MaxBps > 0 && s.Average > 0:
		if asked := float64(p.Bandwidth) * float64(streams); asked > s.MaxBps {
			return CodeRate, fmt.Errorf("%v were asked for; at most %v are allowed", units.Rate(asked), units.Rate(s.MaxBps))
		}
	case s.MaxBps > 0 && (p.rate() == 0 || p.rate()*float64(p.Streams) > s.MaxBps):
		return CodeRate, fmt.Errorf("%d streams of %v were asked for (0: as fast as it goes); at most %v are allowed",
			p.Streams,
			units.Rate(p.rate()), units.Rate(s.MaxBps))
	}
	return 0, nil
}

// rate is what a stream is held to by its program or by its kernel; 0: nothing.
func (p *Params) rate() float64 {
	if p.Bandwidth == 0 || p.FQRate > 0 && p.FQRate < p.Bandwidth {
		return float64(p.FQRate)
	}
	return float64(p.Bandwidth)
}

// needs is how many streams a test opens, and the bytes of buffers that it asks for.
func (p *Params) needs() (streams int, buffers int64) {
	streams = p.Streams
	if p.Both {
		streams *= 2
	}
	return streams, int64(streams) * 2 * int64(p.Window)
}

// setUp makes the tables of a Server from its limits.
func (s *Server) setUp() {
	const leastBuffers = 64 << 20
	all := admission.Load{admission.Streams: int64(s.maxStreams()), admission.Buffers: s.maxBuffers()}
	s.granted.Limits.Total = all
	one := admission.Load{int64(s.maxTestsPerHost()),
		max(all[admission.Streams]/2, min(all[admission.Streams], MaxStreams)),
		max(all[admission.Buffers]/2, min(all[admission.Buffers], leastBuffers))}
	all[admission.Places] = int64(s.maxTests())
	s.places.Limits = admission.Limits{Total: all, PerHost: one}
	s.pending.Limits.Total[admission.Places] = int64(socket.BoundByFiles(admission.MaxPending))
	s.tests = map[Cookie]*test{}
	s.opening = map[netip.Addr]*turn{}
}

// newEntry returns the test's entry in a table; leave ends the test.
func (t *test) newEntry(leave func(error)) *admission.Entry {
	e := &admission.Entry{Host: admission.Host(t.from.Addr()), Rank: admission.Stranger,
		Evict: func() { leave(errMadeRoom) }}
	switch {
	case t.keyed:
		e.Rank = admission.KeyHolder
	case t.server.Gate != nil:
		e.Rank = admission.User
	}
	return e
}

// table returns where the test takes its place: the tests of key holders have streams and buffers
// of their own.
func (t *test) table() *admission.Table {
	if t.keyed {
		return &t.server.granted
	}
	return &t.server.places
}

// takePlace takes the place, the streams and the buffers of a test whose client has proven what the
// server demands, and on an exclusive server the turn. release gives them back.
func (t *test) takePlace(leave func(error)) (release func(), err error) {
	streams, buffers := t.params.needs()
	t.entry.Load = admission.Load{admission.Streams: int64(streams), admission.Buffers: buffers}
	now := time.Now()
	if !t.keyed {
		t.entry.ActiveUntil = now.Add(dawdling)
	}
	if err := t.table().Admit(t.entry, now); err != nil {
		return nil, fmt.Errorf("%v was %w: %d streams with %v of buffers were asked for: %w", t.from, ErrTurnedAway, streams,
			units.Size(buffers), err)
	}
	t.leavePending()
	if t.server.Turn == nil || t.keyed {
		return func() { t.table().Release(t.entry) }, nil
	}
	endTurn, ok := t.server.Turn(t.declared(), func() { leave(errTurnOver) })
	if !ok {
		t.table().Release(t.entry)
		return nil, fmt.Errorf("%v was %w: another measures", t.from, ErrTurnedAway)
	}
	return func() { endTurn(); t.table().Release(t.entry) }, nil
}

// declared is the time that the client asked for; 0 where it asked for bytes.
func (t *test) declared() time.Duration {
	if t.params.Time == 0 {
		return 0
	}
	return time.Duration(t.params.Time+t.params.Omit) * time.Second
}

// average is what all directions of a test have moved by the moments that it was asked.
// The zero value is ready.
type average struct {
	mu   sync.Mutex // guards what follows
	told []movedBy  // those of the last Average, and one before
}

// movedBy is how much had moved by a time.
type movedBy struct {
	at    time.Duration
	bytes int64
}

// averageStep bounds how many moments an average keeps.
const averageStep = 50 * time.Millisecond

// excess says that more than the server's MaxBps moved over its Average until now.
func (a *average) excess(s *Server, bytes int64, now time.Duration) error {
	if s.Average == 0 || s.MaxBps == 0 {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if n := len(a.told); n == 0 {
		a.told = append(a.told, movedBy{})
	} else if now-a.told[n-1].at >= averageStep {
		a.told = append(a.told, movedBy{now, bytes})
	}
	for len(a.told) > 1 && now-a.told[1].at >= s.Average {
		a.told = a.told[1:]
	}
	if span := now - a.told[0].at; span >= s.Average &&
		float64(bytes-a.told[0].bytes)*8 > s.MaxBps*span.Seconds() {
		return &excessError{CodeRate, fmt.Errorf("more than %v over %v", units.Rate(s.MaxBps), s.Average)}
	}
	return nil
}

// excess says that one direction has moved more than the server's limits allow.
func (s *Server) excess(bytes int64, elapsed time.Duration) error {
	limits := probe.Limits{Bps: s.MaxBps, Bytes: s.MaxBytes}
	if s.Average > 0 {
		limits.Bps = 0
	}
	err := limits.Excess(bytes, elapsed)
	switch {
	case err == nil:
		return nil
	case s.MaxBytes > 0 && bytes > s.MaxBytes:
		return &excessError{CodeTimeout, err}
	}
	return &excessError{CodeRate, err}
}

// excessError ends a test that moves more than it may.
type excessError struct {
	code Code
	error
}
