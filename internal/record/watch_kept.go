package record

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// WatchKept is the document that `watch --record` stores for up to an hour: bytes and limiters by minute and by group
// of connections. It contains networks, no addresses.
type WatchKept struct {
	Header
	// Anonymized says that networks are made-up ones.
	Anonymized bool          `json:"anonymized,omitempty"`
	Minutes    []WatchMinute `json:"minutes"` // the oldest first
}

// WatchMinute is about a minute of it; with --for all of it.
type WatchMinute struct {
	At     units.Duration `json:"at_s"` // when it ended, since started_at
	Length units.Duration `json:"length_s"`
	// LostEnds counts closed connections whose last counters the kernel dropped, because its queue was full.
	LostEnds int64        `json:"lost_ends,omitempty"`
	Groups   []WatchGroup `json:"groups"` // the heaviest first
}

// WatchGroup is one group in a minute.
type WatchGroup struct {
	Owner   string `json:"owner,omitempty"`   // a unit, else a program
	Network string `json:"network,omitempty"` // of the far ends: a /24 or a /48
	Port    int    `json:"port,omitempty"`    // of the service
	// Folded is how many lighter groups this is the sum of.
	Folded      int                   `json:"folded,omitempty"`
	Connections int                   `json:"connections"` // the most in one period
	Directions  []WatchGroupDirection `json:"directions"`
}

// WatchGroupDirection is one direction of a group.
type WatchGroupDirection struct {
	Direction          transfer.Direction `json:"direction"`
	Bytes              int64              `json:"bytes"`
	RetransmittedBytes int64              `json:"retransmitted_bytes,omitempty"`
	RTTMin             units.Duration     `json:"rtt_min_s,omitzero"`
	// MovingS is the time of its connections that Shares divide. A limiter may be "network":
	// congestion, bottleneck, pacing or a local queue, undivided.
	MovingS float64            `json:"moving_s"`
	Shares  map[string]float64 `json:"shares"`
}

// summarize names the limiter of the most bytes. It leaves goodput out, which is the demand of programs and no property
// of a path.
func (d *WatchKept) summarize(s *Summary) {
	s.Far = "this host's connections"
	by := map[transfer.Direction]map[string]float64{}
	for i := range d.Minutes {
		for j := range d.Minutes[i].Groups {
			for _, w := range d.Minutes[i].Groups[j].Directions {
				if by[w.Direction] == nil {
					by[w.Direction] = map[string]float64{}
				}
				for name, share := range w.Shares {
					by[w.Direction][name] += share * float64(w.Bytes)
				}
			}
		}
	}
	for _, way := range []transfer.Direction{transfer.Up, transfer.Down} {
		if limited := by[way]; len(limited) > 0 {
			most := slices.MaxFunc(slices.Collect(maps.Keys(limited)), func(a, b string) int {
				return cmp.Or(cmp.Compare(limited[a], limited[b]), strings.Compare(b, a))
			})
			s.add(Figure{Direction: string(way), Limiter: most})
		}
	}
}

// Outgrows says whether a document is an earlier state of this one, which it replaces.
func (d *WatchKept) Outgrows(before Document) bool {
	was, ok := before.(*WatchKept)
	if !ok || was.Envelope == nil || d.Envelope == nil || was.ID != d.ID {
		return false
	}
	return len(d.Minutes) > len(was.Minutes) ||
		len(d.Minutes) == len(was.Minutes) && was.Outcome == Interrupted && d.Outcome == Done
}
