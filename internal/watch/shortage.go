package watch

import (
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict/live"
)

const (
	// shortageEvery is the interval of the checks whether the kernel's TCP is short of memory.
	shortageEvery = 250 * time.Millisecond
	// maxSpells is the maximum number of spells of shortage that are kept, the newest ones.
	maxSpells = 256
)

// shortage lists the times at which this host's TCP was short of memory, in all network namespaces.
type shortage struct {
	spells []spell
	on     bool          // at the last check
	next   time.Duration // time of the next check
}

type spell struct{ from, to time.Duration }

// note adds a check.
func (s *shortage) note(short bool, at time.Duration) {
	s.next = at + shortageEvery
	switch {
	case short && s.on:
		s.spells[len(s.spells)-1].to = at
	case short:
		if len(s.spells) == maxSpells {
			s.spells = slices.Delete(s.spells, 0, 1)
		}
		s.spells = append(s.spells, spell{at, at})
	}
	s.on = short
}

// between returns the shortage within a time span; nil: none, or not checked.
func (s *shortage) between(from, to time.Duration) *transfer.MemoryPressure {
	if s == nil {
		return nil
	}
	var m transfer.MemoryPressure
	for _, one := range s.spells {
		if one.from <= to && one.to >= from {
			m.Times++
			m.Time += min(one.to, to) - max(one.from, from)
		}
	}
	if m.Times == 0 {
		return nil
	}
	return &m
}

// flow returns one direction of a connection since the period began, with lower confidence where TCP was short of
// memory.
func (a *Tracker) flow(c *Connection, d transfer.Direction) Flow {
	f := c.flow(d, a.ceilings.receive)
	from := c.mark.At
	if f.Sampled {
		from = c.window.Of[0].At
	}
	f.Verdict = live.ShortOfMemory(f.Verdict, d, a.shortage.between(from, c.Sample.At+shortageEvery))
	return f
}
