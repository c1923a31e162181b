package report

import (
	"time"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/units"
	"github.com/fullpipe-net/fullpipe/internal/watch"
)

// WatchMinute returns the stored form of a minute of a watch. Began is the start of its document's time.
func WatchMinute(m *watch.Minute, began time.Duration) record.WatchMinute {
	out := record.WatchMinute{AtS: (m.At - began).Seconds(), LengthS: m.Length.Seconds(), LostEnds: int64(m.Lost),
		Groups: []record.WatchGroup{}}
	for i := range m.Groups {
		g := &m.Groups[i]
		one := record.WatchGroup{Owner: g.Owner, Port: int(g.Port), Connections: g.Connections,
			Directions: []record.WatchGroupDirection{}}
		if g.Network.IsValid() {
			one.Network = g.Network.String()
		}
		if m.Folded > 0 && i == len(m.Groups)-1 {
			one.Folded = m.Folded
		}
		for _, d := range []transfer.Direction{transfer.Up, transfer.Down} {
			w := g.Ways[d]
			if w == nil {
				continue
			}
			way := record.WatchGroupDirection{Direction: d, Bytes: w.Bytes, RetransmittedBytes: w.RetransmittedBytes,
				RTTMin: units.Duration(w.MinRTT), Shares: map[string]float64{}}
			for _, s := range w.Limited {
				way.MovingS += s
			}
			for name, s := range w.Limited {
				if way.MovingS > 0 {
					way.Shares[name] = s / way.MovingS
				}
			}
			one.Directions = append(one.Directions, way)
		}
		out.Groups = append(out.Groups, one)
	}
	return out
}
