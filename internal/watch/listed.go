package watch

import (
	"context"
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/socklist"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// Systems that do not report the end of a connection are asked for their list more often. The limits of a sender are
// computed from the states in which the lists show it.

const (
	// listEvery is the least time between two lists, which take at most one part in listPart of a core.
	listEvery = 250 * time.Millisecond
	listPart  = 20
)

// listing is a system's list of its connections; socklist.List is one.
type listing interface {
	Read(want socklist.Want, each func(*socklist.Socket)) (untold int, err error)
	Retransmissions() bool // whether the system reports them
	Close() error
}

// lister follows connections by repeated lists.
type lister struct {
	cfg     Config
	list    listing
	program func(pid int) string
	account *Tracker // every connection that was seen
	start   time.Time
	took    time.Duration // the last list
	untold  int           // connections without counters
	missed  int           // lists that failed
	failure error         // the last of them
}

// follow watches by repeated lists, and closes the source.
func follow(ctx context.Context, cfg Config, list listing, program func(pid int) string, each func(*View) error) error {
	l := &lister{cfg: cfg, list: list, program: program, account: NewTracker(), start: time.Now()}
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
		if err := l.read(); err != nil { // the known connections remain
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
				v.Unread = append(v.Unread, verdict.Note{Code: verdict.SettingsMayDiffer, Words: []string{err.Error()}})
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

// unread returns the limits of this method and the failures so far.
func (l *lister) unread() []verdict.Note {
	every := max(listEvery, listPart*l.took).Round(time.Millisecond)
	all := []verdict.Note{{Code: verdict.ServicesAndContainers},
		{Code: verdict.OutsideLists, Values: verdict.Values{"every_s": every.Seconds()}}}
	if !l.list.Retransmissions() {
		all = slices.Insert(all, 0, verdict.Note{Code: verdict.Retransmissions})
	}
	if l.untold > 0 {
		all = append(all, counted(verdict.WithoutCounters, "connections", l.untold))
	}
	if l.missed > 0 {
		failed := counted(verdict.ListsFailed, "lists", l.missed)
		failed.Words = []string{l.failure.Error()}
		all = append(all, failed)
	}
	return all
}

// read takes a list. A failed one ends no connection.
func (l *lister) read() (err error) {
	began := l.now()
	l.account.BeginDump(began)
	programs := map[int]string{}
	l.untold, err = l.list.Read(l.cfg.Match.ends, func(s *socklist.Socket) {
		c := l.account.Read(l.snapshot(s))
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
		l.account.EndDump(began)
	}
	l.took = l.now() - began
	return err
}

// snapshot converts a listed socket.
func (l *lister) snapshot(s *socklist.Socket) Snapshot {
	t := Snapshot{Sample: s.Sample, Cookie: s.Key, Local: s.Local, Remote: s.Remote, UID: s.UID, Unread: s.Unread,
		Unacked: s.Unacked, SendQueued: s.SendQueued, SendBuffer: s.SendBuffer, ReceiveBuffer: s.ReceiveBuffer,
		Established: s.Established, PeerClosed: s.PeerClosed, Polled: true}
	t.Sample.At = l.now()
	t.Sample.Have |= transfer.HaveLimits
	before := l.account.open[s.Key]
	born := l.account.dumped
	if before != nil {
		born = before.Born
		t.since(&before.Snapshot, before.Handshake.SegmentSize(), s.WindowClock)
	}
	switch given := s.Sample.Have&transfer.HaveMinRTT != 0; {
	case !born: // a queue may have existed all the time
		t.Sample.MinRTT = 0
	case !given && (t.Sample.MinRTT == 0 || t.Sample.RTT < t.Sample.MinRTT):
		t.Sample.MinRTT = t.Sample.RTT
	}
	return t
}

// since computes the missing fields from the previous snapshot: the rate, and the clocks, which advance by the state in
// this snapshot. The receive window's clock is the system's where it has one.
func (t *Snapshot) since(before *Snapshot, mss int64, windowClock bool) {
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
