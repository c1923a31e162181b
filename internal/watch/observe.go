package watch

import (
	"cmp"
	"slices"

	"github.com/fullpipe-net/fullpipe/internal/segments"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// observe returns a connection's row of the period, with the directions that moved payload or should have.
func (a *Tracker) observe(c *Connection, cfg *Config, up, down bool, owner func(*Connection) Owner) Observed {
	reached := a.ceilings.reached(&c.Snapshot)
	seen := Observed{Connection: c, Symptoms: c.symptoms(), SendBufferMax: reached.send,
		ReceiveBufferMax: reached.receive}
	if c.moves != nil {
		seen.Requests = c.window.Requests(c.Handshake.SegmentSize())
	}
	c.Owner = owner(c) // a program that is known has a window of its own
	if up {
		seen.Flows = append(seen.Flows, a.flow(c, transfer.Up))
	}
	if down {
		seen.Flows = append(seen.Flows, a.flow(c, transfer.Down))
	}
	slices.SortStableFunc(seen.Flows, func(a, b Flow) int { return cmp.Compare(b.Bytes, a.Bytes) })
	if cfg.Losses != nil {
		for i := range seen.Flows {
			seen.Flows[i].Losses = cfg.Losses(c.Local, c.Remote, seen.Flows[i].Direction)
		}
	}
	if a.names != nil {
		seen.Connection = a.names.connection(c)
	}
	return seen
}

// addTurns adds the turns of the period.
func (v *View) addTurns(from *segments.Watch) error {
	if from == nil {
		return nil
	}
	all, err := from.Take()
	for i := range v.Connections {
		v.Connections[i].Turns = all.Of[v.Connections[i].Cookie]
	}
	v.Segments = all
	return err
}
