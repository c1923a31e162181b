package watch

import (
	"github.com/fullpipe-net/fullpipe/internal/sockdiag"
)

const (
	// passesInTurn is how many times in a row only those that moved are read: then a dump reads all, which
	// finds what went without a word. movedPart is the part of all from which a dump is cheaper: a look-up
	// takes four to five times what a socket of a dump does.
	passesInTurn = 15
	movedPart    = 5
)

// movers looks at many connections by eBPF, so that only those that moved are read. Where that is not
// to be had every reading is a dump.
type movers struct {
	moved *sockdiag.Moved // nil: it is not to be had, or not open yet
	tried bool
	left  int           // passes that may follow before the next dump
	rest  int           // dumps that follow before a pass is tried again: too many moved
	lost  uint64        // ends that were not told, when all were read last
	ids   []sockdiag.ID // of a pass
	told  map[uint64]bool
	// restless are those that the last reading found with something unread, or open to nobody. A pass
	// tells of such, and not that this has ended: they are read once more.
	restless []sockdiag.ID
}

// due says whether a pass may stand for a dump.
func (m *movers) due(w *watcher) bool {
	switch {
	case !m.tried && w.account.Len() >= manySockets && w.cfg.Namespace == "":
		m.tried = true
		m.moved, _ = sockdiag.OpenMoved(states) // where it is not permitted, or not known, all are read
		m.begin()
	case m.rest > 0:
		m.rest--
		if m.rest == 0 {
			m.begin()
		}
	case m.moved != nil && m.left > 0:
		m.left--
		lost, err := w.sockets.Ends.Dropped()
		if err == nil && lost == m.lost {
			return true
		}
		m.lost = lost
	}
	return false
}

// begin lets the next pass tell of what moves from now on. The dump that follows reads what stands.
func (m *movers) begin() {
	if m.moved != nil && m.moved.Begin() != nil {
		m.close()
	}
}

// pass finds those that moved since the last.
func (m *movers) pass() error {
	m.ids = m.ids[:0]
	return m.moved.Each(func(id sockdiag.ID) { m.ids = append(m.ids, id) })
}

// dumped says that all were read, and whether some were missing: the next reading is a dump as well then.
func (m *movers) dumped(missing bool) {
	m.left = passesInTurn
	if missing {
		m.left = 0
	}
}

// note takes a socket's reading.
func (m *movers) note(s *sockdiag.Socket) {
	if m.moved != nil && (s.ReadQueue > 0 || s.Inode == 0 && s.State == sockdiag.Established) {
		m.restless = append(m.restless, s.ID())
	}
}

// reread adds to the pass those that were restless and that it did not tell of.
func (m *movers) reread() {
	if len(m.restless) == 0 {
		return
	}
	if clear(m.told); m.told == nil {
		m.told = map[uint64]bool{}
	}
	for i := range m.ids {
		m.told[m.ids[i].Cookie()] = true
	}
	for i := range m.restless {
		if !m.told[m.restless[i].Cookie()] {
			m.ids = append(m.ids, m.restless[i])
		}
	}
}

func (m *movers) close() {
	if m.moved != nil {
		_ = m.moved.Close() // it has been read from, no more
		m.moved = nil
	}
}

// readMoved takes a reading of the connections that moved since the last. false: all have to be read.
func (w *watcher) readMoved() bool {
	m := &w.movers
	if m.pass() != nil {
		m.close()
		return false
	}
	if len(m.ids)*movedPart > w.account.Len() {
		m.rest = passesInTurn
		return false
	}
	m.reread()
	m.restless = m.restless[:0]
	asked := m.ids[:0]
	answers := 0
	for _, id := range m.ids {
		if local, remote := id.Ends(); w.cfg.Match.ends(local, remote) {
			asked = append(asked, id)
		}
	}
	w.reading = w.now()
	gone, err := w.sockets.Look(asked, ask, func(s *sockdiag.Socket) { answers++; w.read(s) })
	return err == nil && gone+answers == len(asked)
}
