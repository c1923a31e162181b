package watch

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/socklist"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// Systems that do not tell of a connection's end are asked for the list of all more often, and what held a sender back
// is told by what it was seen in.

const (
	// listEvery is the least time between two readings of the list, which take at most a part of a core: one in
	// listPart.
	listEvery = 250 * time.Millisecond
	listPart  = 20
)

// listing is a system's list of its connections; socklist.List is one.
type listing interface {
	Read(want socklist.Want, each func(*socklist.Socket)) (untold int, err error)
	Untold() []string
	Close() error
}

// lister follows connections by a list.
type lister struct {
	cfg     Config
	list    listing
	program func(pid int) string
	account *Account
	start   time.Time
	took    time.Duration // the last reading
	untold  int           // connections that it could not tell of
	missed  int           // readings that failed
	failure error         // the last of them
}

// follow watches by a list, and closes it.
func follow(ctx context.Context, cfg Config, list listing, program func(pid int) string, each func(*View) error) error {
	l := &lister{cfg: cfg, list: list, program: program, account: NewAccount(), start: time.Now()}
	defer list.Close() // where it was not yet
	if err := l.read(); err != nil {
		return err
	}
	l.account.Period(func(*Connection) {})
	began := l.now()
	next := l.now() + cfg.Every
	for {
		over := false
		select {
		case <-ctx.Done():
			over = true
		case <-time.After(max(listEvery, listPart*l.took)):
		}
		if err := l.read(); err != nil { // what is known stays
			l.missed = l.missed + 1
			l.failure = err
		}
		now := l.now()
		if !over && (cfg.Cumulative || now < next) {
			continue
		}
		v := &View{At: now, Length: now - began, Took: l.took, Anonymized: cfg.Anonymize, Unread: l.unread()}
		if over {
			if err := list.Close(); err != nil {
				v.Unread = append(v.Unread, fmt.Sprintf("whether all is as it was (%v)", err))
			}
		}
		l.account.look(v, v.Length, &l.cfg, func(c *Connection) Owner { return c.Owner })
		v.finish()
		if err := each(v); err != nil {
			return err
		}
		if over {
			return ctx.Err()
		}
		for began = now; next <= l.now(); {
			next += cfg.Every
		}
	}
}

func (l *lister) now() time.Duration { return time.Since(l.start) }

// unread is what cannot be seen in this way, or was not.
func (l *lister) unread() []string {
	every := max(listEvery, listPart*l.took).Round(time.Millisecond)
	all := append(slices.Clone(l.list.Untold()), "services and containers", fmt.Sprintf("what connections moved before "+
		"they were first listed and after they were last (every %v)", every))
	if l.untold > 0 {
		all = append(all, fmt.Sprintf("%d connections, which the system would not tell of", l.untold))
	}
	if l.missed > 0 {
		all = append(all, fmt.Sprintf("%d readings (%v)", l.missed, l.failure))
	}
	return all
}

// read takes a reading. One that fails is none: what it did not list may stand all the same.
func (l *lister) read() (err error) {
	began := l.now()
	l.account.Dumping(began)
	programs := map[int]string{}
	l.untold, err = l.list.Read(l.cfg.Match.ends, func(s *socklist.Socket) {
		c := l.account.Read(l.told(s))
		if c.Handshake == nil || c.Handshake.MSS == 0 {
			h := s.Handshake
			c.Handshake = &h
		}
		if c.Owner == (Owner{}) && s.PID > 0 {
			if _, known := programs[s.PID]; !known {
				programs[s.PID] = l.program(s.PID)
			}
			c.Owner = Owner{PID: s.PID, Program: programs[s.PID]}
		}
	})
	if err == nil {
		l.account.Dumped(began)
	}
	l.took = l.now() - began
	return err
}

// told turns what is listed into a reading.
func (l *lister) told(s *socklist.Socket) Told {
	t := Told{Sample: s.Sample, Cookie: s.Key, Local: s.Local, Remote: s.Remote, UID: s.UID, Unread: s.Unread,
		Unacked: s.Unacked, SendQueued: s.SendQueued, SendBuffer: s.SendBuffer, ReceiveBuffer: s.ReceiveBuffer,
		Established: s.Established, PeerClosed: s.PeerClosed, ByReadings: true}
	t.Sample.At = l.now()
	t.Sample.Have |= transfer.HaveLimits
	before := l.account.open[s.Key]
	born := l.account.first
	if before != nil {
		born = before.Born
		t.since(&before.Told, before.Handshake.SegmentSize(), s.WindowClock)
	}
	switch given := s.Sample.Have&transfer.HaveMinRTT != 0; {
	case !born: // a queue may have stood in it all the time
		t.Sample.MinRTT = 0
	case !given && (t.Sample.MinRTT == 0 || t.Sample.RTT < t.Sample.MinRTT):
		t.Sample.MinRTT = t.Sample.RTT
	}
	return t
}

// since makes what the system does not tell of what it told before: the rate, and clocks, which run by what this
// reading shows, but for the window's where the system has it.
func (t *Told) since(before *Told, mss int64, windowClock bool) {
	s := &t.Sample
	was := &before.Sample
	span := s.At - was.At
	if span > 0 {
		s.DeliveryBps = float64(max(s.Acked-was.Acked, 0)) * 8 / span.Seconds()
	}
	if s.Have&transfer.HaveMinRTT == 0 {
		s.MinRTT = was.MinRTT
	}
	s.Busy = was.Busy
	if !windowClock {
		s.RwndLimited = was.RwndLimited
	}
	if t.Unacked == 0 {
		return
	}
	s.Busy += span
	if !windowClock && s.NotSent > 0 && s.InFlight+mss > s.SendWnd && s.SendWnd < s.Cwnd {
		s.RwndLimited += span
	}
}
