package diagnose

import (
	"github.com/fullpipe-net/fullpipe/internal/flow"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// twin is a connection as the other capture has it.
type twin struct {
	*flow.Connection
	// swapped: the client of the near capture is the server there. Without the SYN
	// either is a guess.
	swapped bool
	// renumbered: the ends are the same and the initial sequence numbers are not.
	renumbered bool
}

// passes are the twin's segments, by the near capture's view of who the client is.
func (w *twin) passes() tapped {
	return tapped{w.Passes(!w.swapped), w.Passes(w.swapped)}
}

// offer is what an end's SYN said, by that view.
func (w *twin) offer(client bool) flow.Offer {
	if client != w.swapped {
		return w.ClientOffer()
	}
	return w.ServerOffer()
}

// sentBy is what one of the ends sent, by that view; nil for nothing.
func (w *twin) sentBy(client bool) *flow.Direction { return sentBy(w.Connection, client != w.swapped) }

type endpoints [2]flow.Endpoint

// twins finds the connections of one capture in another: by their initial sequence numbers,
// by their addresses and, behind address translation where a SYN is missing, by segments
// that both hold.
type twins struct {
	all       []*flow.Connection
	byNumbers map[[2]uint32]*flow.Connection
	byEnds    map[endpoints][]*flow.Connection // in both orders
	byName    map[flow.Name]*flow.Connection   // made when it is needed
}

func newTwins(all []*flow.Connection) *twins {
	t := &twins{all: all, byNumbers: map[[2]uint32]*flow.Connection{}, byEnds: map[endpoints][]*flow.Connection{}}
	for _, c := range all {
		a := c.Client()
		b := c.Server()
		t.byEnds[endpoints{a, b}] = append(t.byEnds[endpoints{a, b}], c)
		t.byEnds[endpoints{b, a}] = append(t.byEnds[endpoints{b, a}], c)
		if c.SYN && c.SYNACK {
			t.byNumbers[[2]uint32{c.ClientOffer().ISN, c.ServerOffer().ISN}] = c
		}
	}
	return t
}

// find returns nil where the other capture does not contain the connection.
func (t *twins) find(near *flow.Connection) *twin {
	if near.SYN && near.SYNACK {
		if c := t.byNumbers[[2]uint32{near.ClientOffer().ISN, near.ServerOffer().ISN}]; c != nil {
			return &twin{Connection: c}
		}
	}
	if w := t.ofEnds(near); w != nil {
		return w
	}
	return t.ofSegments(near)
}

// ofEnds looks among the connections between the same ends, which may have used the same
// ports more than once: most segments in common decide.
func (t *twins) ofEnds(near *flow.Connection) (best *twin) {
	most := 0
	for _, c := range t.byEnds[endpoints{near.Client(), near.Server()}] {
		w := &twin{Connection: c, swapped: c.Client() != near.Client()}
		w.renumbered = renumbered(near.ClientOffer(), w.offer(true)) || renumbered(near.ServerOffer(), w.offer(false))
		common := inCommon(near, w)
		switch far := w.passes(); {
		case common == 0 && !w.renumbered && len(far.client)+len(far.server) > int(threshold.AlignedSegments.Value):
			// other times of the same ports
		case best == nil, best.renumbered && !w.renumbered, best.renumbered == w.renumbered && common > most:
			best = w
			most = common
		}
	}
	return best
}

func renumbered(a, b flow.Offer) bool { return a.Seen && b.Seen && a.ISN != b.ISN }

// inCommon is how many segments two captures of a connection share, of those that were kept.
func inCommon(near *flow.Connection, w *twin) (n int) {
	far := w.passes()
	for _, ways := range [][2][]flow.Pass{{near.Passes(true), far.client}, {near.Passes(false), far.server}} {
		n += len(passings(ways[0], ways[1], 0))
	}
	return n
}

// indexed is how many segments of either end are enough to find a connection by.
const indexed = 256

// index notes whose segments are whose: a share of them, drawn by their names.
func (t *twins) index() {
	t.byName = map[flow.Name]*flow.Connection{}
	for _, c := range t.all {
		for _, client := range []bool{true, false} {
			passes := c.Passes(client)
			below := uint64(float64(1<<32) * min(1, indexed/float64(max(len(passes), 1))))
			for _, p := range passes {
				if uint64(p.Name)>>32 < below {
					t.byName[p.Name.Unstamped()] = c
				}
			}
		}
	}
}

// ofSegments looks for a connection that shares segments, with any addresses.
func (t *twins) ofSegments(near *flow.Connection) *twin {
	if t.byName == nil {
		t.index()
	}
	hits := map[*flow.Connection]int{}
	var best *flow.Connection
	for _, client := range []bool{true, false} {
		for _, p := range near.Passes(client) {
			c := t.byName[p.Name.Unstamped()]
			if c == nil {
				continue
			}
			hits[c]++
			if best == nil || hits[c] > hits[best] {
				best = c
			}
		}
	}
	if best == nil || hits[best] < int(threshold.AlignedSegments.Value) {
		return nil
	}
	straight := &twin{Connection: best}
	swapped := &twin{Connection: best, swapped: true}
	if inCommon(near, swapped) > inCommon(near, straight) {
		return swapped
	}
	return straight
}
