package bulk

import (
	"slices"
	"sync"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// MaxSamples is the largest number of samples of one end, all its streams together.
const MaxSamples = 8192

// Cadence returns the interval to the next sample at a time of the transfer. It is short at first, so that samples show
// slow start on short paths.
func Cadence(at time.Duration) time.Duration {
	switch {
	case at < 500*time.Millisecond:
		return 5 * time.Millisecond
	case at < 2*time.Second:
		return 10 * time.Millisecond
	}
	return 40 * time.Millisecond
}

// sampler reads all streams of one end. It runs in a goroutine of its own.
type sampler struct {
	clock   clock
	loops   []*loop
	sender  bool
	series  [][]transfer.Sample
	latest  *Latest
	stretch time.Duration // by how much the spacing grew to stay within MaxSamples
}

func newSampler(c clock, loops []*loop, sender bool, latest *Latest) *sampler {
	s := &sampler{clock: c, loops: loops, sender: sender, latest: latest, series: make([][]transfer.Sample, len(loops)),
		stretch: 1}
	for i := range s.series {
		s.series[i] = make([]transfer.Sample, 0, min(512, s.most()))
	}
	return s
}

func (s *sampler) most() int { return max(MaxSamples/len(s.loops), 64) }

// next is the cadence, stretched once that was needed to stay within MaxSamples.
func (s *sampler) next() time.Duration { return Cadence(s.clock.now()) * s.stretch }

// read takes one sample of every stream. A connection that is gone gives none.
func (s *sampler) read() {
	s.thin()
	var sending transfer.Sending
	for i, l := range s.loops {
		var sample transfer.Sample
		if l.stream.Sample(&sample, s.sender) != nil {
			continue
		}
		sample.At = s.clock.now()
		l.account.fill(&sample)
		s.series[i] = append(s.series[i], sample)
		sending.Add(&sample)
	}
	if s.sender && sending.Streams > 0 {
		s.latest.Set(sending)
	}
}

// thin halves the series once one of them is full. The first stream may have ended early.
func (s *sampler) thin() {
	if !slices.ContainsFunc(s.series, func(one []transfer.Sample) bool { return len(one) >= s.most() }) {
		return
	}
	for i, series := range s.series {
		s.series[i] = transfer.Downsample(series, len(series)/2)
	}
	s.stretch *= 2
}

// Latest has a sender's newest counters.
type Latest struct {
	mu    sync.Mutex // guards what follows
	is    transfer.Sending
	known bool
}

// Set stores new counters.
func (l *Latest) Set(s transfer.Sending) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.is = s
	l.known = true
}

// Get returns the newest counters, or nil before the first.
func (l *Latest) Get() *transfer.Sending {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.known {
		return nil
	}
	is := l.is
	return &is
}

// last is each stream's latest sample; the zero value of one that gave none.
func (s *sampler) last() []transfer.Sample {
	all := make([]transfer.Sample, len(s.series))
	for i, series := range s.series {
		if n := len(series); n > 0 {
			all[i] = series[n-1]
		}
	}
	return all
}

// run samples until done is closed, and calls interval as often as every, and at each cut.
func (s *sampler) run(done <-chan struct{}, every time.Duration, cut transfer.IntervalSchedule, interval func()) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	due := every
	next := cut.Next(0)
	for {
		select {
		case <-done:
			return
		case <-timer.C:
		}
		at := s.clock.now() // no sample is older
		s.read()
		if now := s.clock.now(); now >= due || next > 0 && at >= next {
			interval()
			due = s.clock.now() + every
			next = cut.Next(at)
		}
		wait := s.next()
		if next > 0 {
			wait = min(wait, next-s.clock.now())
		}
		timer.Reset(wait)
	}
}
