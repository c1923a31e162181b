package recheck

import (
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/changepoint"
	"github.com/fullpipe-net/fullpipe/internal/record"
)

// Result is the result of one test of a path; 0 or "" is not known.
type Result struct {
	RunID      string
	At         time.Time
	Retest     bool // a test that follows an unusual result
	Directions []Direction
	FarKernel  string
	Cost       Cost
}

// Direction is the result in one direction.
type Direction struct {
	Name       string // up or down
	GoodputBps float64
	RTTMin     time.Duration
	Limiter    string
	MTU        string // of the path, bytes; if unknown, the MSS
	Handshake  string // the negotiated options
}

// The metrics of events, a closed list. Goodput and RTT are numbers with noise, the others are words.
const (
	Goodput   = "goodput"
	RTT       = "rtt"
	Limiter   = "limiter"
	MTU       = "mtu"
	Handshake = "handshake"
	FarKernel = "far_kernel"
)

// Rise is the event of a rising level; change.Dipped is that of a falling one.
const Rise changepoint.Event = "rise"

// LeastRTT is the RTT below which all RTTs are equivalent: a shift of 15 % is then less than 0.5 ms, which is a
// host's own delay.
const LeastRTT = 3300 * time.Microsecond

// Detector is the state of one far end. Its zero value has no results. The state depends only on the results, so it can
// be rebuilt from the history.
type Detector struct {
	// Public disables re-tests: only later visits can confirm a change.
	Public bool

	directions []*follower
	farKernel  changepoint.Word
	costs      []Cost
}

// follower is the state of one direction.
type follower struct {
	name         string
	goodput, rtt changepoint.Track
	limiter      changepoint.Word
	mtu, options changepoint.Word
	newest       Direction
}

func (p *Detector) follower(name string) *follower {
	i := slices.IndexFunc(p.directions, func(f *follower) bool { return f.name == name })
	if i < 0 {
		f := &follower{name: name}
		f.limiter.Wavers = true
		f.goodput.Unhurried = p.Public
		f.rtt.Unhurried = p.Public
		p.directions = append(p.directions, f)
		return f
	}
	return p.directions[i]
}

// Cost returns the expected cost of a test, from the newest ones.
func (p *Detector) Cost() Cost { return Dearest(p.costs) }

// Add adds the next result and returns its events.
func (p *Detector) Add(r Result) (events []record.RecheckEvent) {
	p.costs = append(p.costs, r.Cost)
	p.costs = p.costs[max(len(p.costs)-reserve, 0):]
	for _, d := range r.Directions {
		f := p.follower(d.Name)
		f.newest = d
		events = append(events, f.levels(r, d)...)
		events = append(events, f.words(r, d)...)
	}
	if e, ok := word(&p.farKernel, r, FarKernel, "", r.FarKernel); ok {
		events = append(events, e)
	}
	return events
}

// levels adds a result to the numeric metrics.
func (f *follower) levels(r Result, d Direction) (events []record.RecheckEvent) {
	rtt := max(d.RTTMin, LeastRTT).Seconds()
	if d.RTTMin <= 0 {
		rtt = 0
	}
	for _, s := range []struct {
		metric string
		track  *changepoint.Track
		value  float64
	}{{Goodput, &f.goodput, d.GoodputBps}, {RTT, &f.rtt, rtt}} {
		event := s.track.Add(changepoint.Result{At: r.At, Value: s.value, Retest: r.Retest})
		if event == "" {
			continue
		}
		e := record.RecheckEvent{Event: event, Metric: s.metric, Direction: d.Name, At: r.At, Since: s.track.Since,
			RunID: r.RunID, Confidence: "high"}
		shift := s.track.Shift
		if s.metric == Goodput {
			e.BeforeBps = &shift.Before
			e.AfterBps = &shift.After
		} else {
			e.BeforeRTTMinS = &shift.Before
			e.AfterRTTMinS = &shift.After
		}
		if event != changepoint.Back {
			e.P = &shift.P
		}
		if event == changepoint.Dipped && shift.After > shift.Before {
			e.Event = Rise
		}
		if shift.LowConfidence {
			e.Confidence = "low"
		}
		events = append(events, e)
	}
	return events
}

// words adds a result to the metrics that are words. It ignores the limiter of a re-test: re-tests follow unusual
// results, so their limiters are not representative.
func (f *follower) words(r Result, d Direction) (events []record.RecheckEvent) {
	limiter := d.Limiter
	if r.Retest {
		limiter = ""
	}
	for _, s := range []struct {
		metric string
		word   *changepoint.Word
		is     string
	}{{Limiter, &f.limiter, limiter}, {MTU, &f.mtu, d.MTU}, {Handshake, &f.options, d.Handshake}} {
		if e, ok := word(s.word, r, s.metric, d.Name, s.is); ok {
			events = append(events, e)
		}
	}
	return events
}

func word(w *changepoint.Word, r Result, metric, direction, is string) (record.RecheckEvent, bool) {
	before, changed := w.Add(r.At, is)
	return record.RecheckEvent{Event: changepoint.Changed, Metric: metric, Direction: direction, At: r.At, Since: r.At,
		RunID: r.RunID, Before: before, After: is, Confidence: "high"}, changed
}

// Wants returns the directions to re-test and the time of the re-test.
func (p *Detector) Wants() (at time.Time, directions []string) {
	if p.Public {
		return at, nil
	}
	ask := func(when time.Time, wanted bool, name string) {
		if !wanted {
			return
		}
		directions = append(directions, name)
		if at.IsZero() || when.Before(at) {
			at = when
		}
	}
	for _, f := range p.directions {
		for _, w := range []interface{ Wants() (time.Time, bool) }{&f.goodput, &f.rtt, &f.mtu, &f.options} {
			when, wanted := w.Wants()
			ask(when, wanted, f.name)
		}
	}
	if len(p.directions) > 0 && len(directions) == 0 {
		when, wanted := p.farKernel.Wants()
		ask(when, wanted, p.directions[0].name)
	}
	return at, distinct(directions)
}

// NotBefore returns the earliest time at which another scheduled result counts.
func (p *Detector) NotBefore() (at time.Time) {
	for _, f := range p.directions {
		for _, t := range []*changepoint.Track{&f.goodput, &f.rtt} {
			if when := t.NotBefore(); when.After(at) {
				at = when
			}
		}
	}
	return at
}

// Standings returns the newest result of each direction against the level before it, in the order in which the
// directions were first measured.
func (p *Detector) Standings() (all []record.RecheckDirection) {
	for _, f := range p.directions {
		s := record.RecheckDirection{Figure: record.Figure{Direction: f.newest.Name, Limiter: f.newest.Limiter},
			Results: f.goodput.Known(), State: f.goodput.Standing()}
		if f.newest.GoodputBps > 0 {
			s.GoodputBps = &f.newest.GoodputBps
		}
		if f.newest.RTTMin > 0 {
			s.RTTMinS = new(f.newest.RTTMin.Seconds())
		}
		if usual, ok := f.goodput.Usual(); ok {
			s.UsualBps = &usual.Level
			s.WithinBps = usual.Within
		}
		all = append(all, s)
	}
	return all
}

// Level is the past of a numeric metric.
type Level struct {
	Usual changepoint.Past // Level 0: too few results
	// Worse is since when repeated tests show another level that is worse; zero: they do not.
	Worse time.Time
}

// Levels returns the past of the goodput and the RTT by direction.
func (p *Detector) Levels() map[string][2]Level {
	all := map[string][2]Level{}
	for _, f := range p.directions {
		all[f.name] = [2]Level{levelOf(&f.goodput, false), levelOf(&f.rtt, true)}
	}
	return all
}

func levelOf(t *changepoint.Track, moreIsWorse bool) (l Level) {
	l.Usual, _ = t.Usual()
	if t.Standing() == changepoint.Dip && (t.Shift.After > t.Shift.Before) == moreIsWorse {
		l.Worse = t.Since
	}
	return l
}
