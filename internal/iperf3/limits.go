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
	// A client must begin within contendedBeginTimeout if others wait for its slot, otherwise within beginTimeout.
	contendedBeginTimeout = time.Second
	beginTimeout          = 30 * time.Second
	defaultMaxTime        = time.Hour
	// maxOvertime is the longest time beyond the requested duration.
	maxOvertime = 40 * time.Second
	// defaultIdleTimeout is the longest time without any data.
	defaultIdleTimeout = 120 * time.Second
)

func (s *Server) maxTests() int              { return cmp.Or(s.MaxTests, defaultTests) }
func (s *Server) maxTestsPerHost() int       { return cmp.Or(s.MaxTestsPerHost, max(s.maxTests()/4, 1)) }
func (s *Server) maxStreams() int            { return cmp.Or(s.MaxStreams, defaultStreams) }
func (s *Server) maxBuffers() int64          { return cmp.Or(s.MaxBuffers, defaultBuffers) }
func (s *Server) maxTime() time.Duration     { return cmp.Or(s.MaxTime, defaultMaxTime) }
func (s *Server) stepTimeout() time.Duration { return cmp.Or(s.StepTimeout, answerTimeout) }

// checkLimits checks a test's parameters against the server's limits.
func (s *Server) checkLimits(p Params) (Code, error) {
	longest := int(s.maxTime() / time.Second)
	streams, buffers := p.resources()
	switch {
	case p.UDP && !s.UDP:
		return CodeParams, errors.New("this server does not admit UDP")
	case p.Time+p.Omit > longest || p.Time == 0 && p.Num == 0 && p.Blocks == 0:
		return CodeDuration, fmt.Errorf("%d s requested; at most %d allowed", p.Time+p.Omit, longest)
	case s.MaxBytes > 0 && p.requestedBytes() > s.MaxBytes:
		return CodeDuration, fmt.Errorf("%v requested; at most %v allowed", units.Size(p.requestedBytes()),
			units.Size(s.MaxBytes))
	case streams > s.maxStreams():
		return CodeParams, fmt.Errorf("%d streams requested; at most %d allowed", streams, s.maxStreams())
	case buffers > s.maxBuffers():
		return CodeBuffer, fmt.Errorf("%v of buffers requested; at most %v allowed", units.Size(buffers),
			units.Size(s.maxBuffers()))
	case s.MaxBps > 0 && s.AveragePeriod > 0:
		if asked := float64(p.Bandwidth) * float64(streams); asked > s.MaxBps {
			return CodeRate, fmt.Errorf("%v requested; at most %v allowed", units.Rate(asked), units.Rate(s.MaxBps))
		}
	case s.MaxBps > 0 && (p.pacedRate() == 0 || p.pacedRate()*float64(p.Streams) > s.MaxBps):
		return CodeRate, fmt.Errorf("%d streams of %v requested (0: unlimited); at most %v allowed",
			p.Streams,
			units.Rate(p.pacedRate()), units.Rate(s.MaxBps))
	}
	return 0, nil
}

// pacedRate returns the rate to which the program or kernel paces a stream, bit/s; 0: unpaced.
func (p *Params) pacedRate() float64 {
	if p.Bandwidth == 0 || p.FQRate > 0 && p.FQRate < p.Bandwidth {
		return float64(p.FQRate)
	}
	return float64(p.Bandwidth)
}

// resources returns the number of streams of a test and the bytes of buffers that it requests.
func (p *Params) resources() (streams int, buffers int64) {
	streams = p.Streams
	if p.Both {
		streams *= 2
	}
	return streams, int64(streams) * 2 * int64(p.Window)
}

// initTables sets up the server's tables from its limits. Streams of other connections may look for their test
// meanwhile.
func (s *Server) initTables() {
	const minHostBuffers = 64 << 20
	s.mu.Lock()
	defer s.mu.Unlock()
	all := admission.Load{admission.Streams: int64(s.maxStreams()), admission.Buffers: s.maxBuffers()}
	s.granted.Limits.Total = all
	one := admission.Load{int64(s.maxTestsPerHost()),
		max(all[admission.Streams]/2, min(all[admission.Streams], MaxStreams)),
		max(all[admission.Buffers]/2, min(all[admission.Buffers], minHostBuffers))}
	all[admission.Slots] = int64(s.maxTests())
	s.places.Limits = admission.Limits{Total: all, PerHost: one}
	s.pending.Limits.Total[admission.Slots] = int64(socket.BoundByFiles(admission.MaxPending))
	s.tests = map[Cookie]*test{}
	s.opening = map[netip.Addr]*openingGroup{}
}

// newEntry returns the test's entry in a table. leave ends the test.
func (t *test) newEntry(leave func(error)) *admission.Entry {
	e := &admission.Entry{Host: admission.Host(t.from.Addr()), Rank: admission.Unauthenticated,
		Evict: func() { leave(errEvicted) }}
	switch {
	case t.hasKey:
		e.Rank = admission.KeyHolder
	case t.server.Auth != nil:
		e.Rank = admission.User
	}
	return e
}

// table returns the table for the test. Key holders have a table of their own.
func (t *test) table() *admission.Table {
	if t.hasKey {
		return &t.server.granted
	}
	return &t.server.places
}

// takeSlot reserves the slot, streams and buffers of an authenticated test, and the turn of an exclusive server.
// release frees them.
func (t *test) takeSlot(leave func(error)) (release func(), err error) {
	streams, buffers := t.params.resources()
	t.entry.Load = admission.Load{admission.Streams: int64(streams), admission.Buffers: buffers}
	now := time.Now()
	if !t.hasKey {
		t.entry.ActiveUntil = now.Add(contendedBeginTimeout)
	}
	if err := t.table().Admit(t.entry, now); err != nil {
		return nil, fmt.Errorf("%v was %w: %d streams with %v of buffers requested: %w", t.from, ErrTurnedAway, streams,
			units.Size(buffers), err)
	}
	t.leavePending()
	if t.server.Turn == nil || t.hasKey {
		return func() { t.table().Release(t.entry) }, nil
	}
	endTurn, ok := t.server.Turn(t.requestedTime(), func() { leave(errTurnOver) })
	if !ok {
		t.table().Release(t.entry)
		return nil, fmt.Errorf("%v was %w: another test runs", t.from, ErrTurnedAway)
	}
	return func() { endTurn(); t.table().Release(t.entry) }, nil
}

// requestedTime returns the duration that the client requested, 0 if it requested bytes.
func (t *test) requestedTime() time.Duration {
	if t.params.Time == 0 {
		return 0
	}
	return time.Duration(t.params.Time+t.params.Omit) * time.Second
}

// rateAverage is the rate over all directions of a test during the last Server.AveragePeriod. The zero value is
// ready.
type rateAverage struct {
	mu      sync.Mutex   // guards samples
	samples []byteSample // of the last AveragePeriod, and one before
}

// byteSample is the number of bytes moved by a time.
type byteSample struct {
	at    time.Duration
	bytes int64
}

// averageSampleInterval limits the number of samples.
const averageSampleInterval = 50 * time.Millisecond

// check returns an error if the average rate exceeds the server's MaxBps.
func (a *rateAverage) check(s *Server, bytes int64, now time.Duration) error {
	if s.AveragePeriod == 0 || s.MaxBps == 0 {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if n := len(a.samples); n == 0 {
		a.samples = append(a.samples, byteSample{})
	} else if now-a.samples[n-1].at >= averageSampleInterval {
		a.samples = append(a.samples, byteSample{now, bytes})
	}
	for len(a.samples) > 1 && now-a.samples[1].at >= s.AveragePeriod {
		a.samples = a.samples[1:]
	}
	if span := now - a.samples[0].at; span >= s.AveragePeriod &&
		float64(bytes-a.samples[0].bytes)*8 > s.MaxBps*span.Seconds() {
		return &limitError{CodeRate, fmt.Errorf("more than %v over %v", units.Rate(s.MaxBps), s.AveragePeriod)}
	}
	return nil
}

// checkMoved returns an error if one direction exceeded the server's limits.
func (s *Server) checkMoved(bytes int64, elapsed time.Duration) error {
	limits := probe.Limits{Bps: s.MaxBps, Bytes: s.MaxBytes}
	if s.AveragePeriod > 0 {
		limits.Bps = 0
	}
	err := limits.Excess(bytes, elapsed)
	switch {
	case err == nil:
		return nil
	case s.MaxBytes > 0 && bytes > s.MaxBytes:
		return &limitError{CodeTimeout, err}
	}
	return &limitError{CodeRate, err}
}

// limitError ends a test that exceeded a limit.
type limitError struct {
	code Code
	error
}
