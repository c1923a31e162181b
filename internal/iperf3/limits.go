package iperf3

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/probe"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

const (
	defaultTests   = 64
	defaultStreams = 512
	defaultBuffers = 1 << 30
	// dawdling is how long a client may take to begin when others wait, beginTime when
	// nobody does.
	dawdling    = time.Second
	beginTime   = 30 * time.Second
	defaultTime = time.Hour
	// overtime is how long a client may stay beyond the time it asked for.
	overtime = 40 * time.Second
	// dataPatience is how long a test may pass without any data.
	dataPatience = 120 * time.Second
)

func (s *Server) maxTests() int           { return cmp.Or(s.MaxTests, defaultTests) }
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
		return CodeDuration, fmt.Errorf("%v were asked for; at most %v are allowed", units.Size(p.total()), units.Size(s.MaxBytes))
	case streams > s.maxStreams():
		return CodeParams, fmt.Errorf("%d streams were asked for; at most %d are allowed", streams, s.maxStreams())
	case buffers > s.maxBuffers():
		return CodeBuffer, fmt.Errorf("%v of buffers were asked for; at most %v are allowed", units.Size(buffers), units.Size(s.maxBuffers()))
	case s.MaxBps > 0 && (p.rate() == 0 || p.rate()*float64(p.Streams) > s.MaxBps):
		return CodeRate, fmt.Errorf("%d streams of %v were asked for (0: as fast as it goes); at most %v are allowed", p.Streams,
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

// reserve takes a test's streams and buffers out of what all tests share, until forget
// or makeRoom gives them back.
func (s *Server) reserve(t *test) error {
	streams, buffers := t.params.needs()
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.streams+streams > s.maxStreams() || s.buffers+buffers > s.maxBuffers() {
		if !s.makeRoom() {
			return fmt.Errorf("%d streams with %v of buffers were asked for beside %d with %v", streams, units.Size(buffers),
				s.streams, units.Size(s.buffers))
		}
	}
	if s.tests[t.cookie] != t {
		return errors.New("it had to make room")
	}
	t.streams, t.buffers = streams, buffers
	s.streams += streams
	s.buffers += buffers
	return nil
}

// remove takes a test out of the server's books. The caller holds mu.
func (s *Server) remove(t *test) {
	if s.tests[t.cookie] == t {
		delete(s.tests, t.cookie)
	}
	s.streams -= t.streams
	s.buffers -= t.buffers
	t.streams, t.buffers = 0, 0
}

// excess says that one direction has moved more than the server's limits allow.
func (s *Server) excess(bytes int64, elapsed time.Duration) error {
	err := probe.Limits{Bps: s.MaxBps, Bytes: s.MaxBytes}.Excess(bytes, elapsed)
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
