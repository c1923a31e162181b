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

// activeSockets finds the connections that moved by eBPF, so that only those are read. Without eBPF every pass is a
// dump.
type activeSockets struct {
	moved *sockdiag.Moved // nil: it is not to be had, or not open yet
	tried bool
	left  int           // passes that may follow before the next dump
	rest  int           // dumps that follow before a pass is tried again: too many moved
	lost  uint64        // dropped reports of ends at the last dump
	ids   []sockdiag.ID // of a pass
	found map[uint64]bool
	// recheck are sockets that had unread data or no open descriptor: a pass does not report the end of either state.
	recheck []sockdiag.ID
}

// due reports whether a pass may replace a dump.
func (m *activeSockets) due(w *watcher) bool {
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

// begin makes the next pass report the sockets that move from now on. The dump after it reads all sockets.
func (m *activeSockets) begin() {
	if m.moved != nil && m.moved.Begin() != nil {
		m.close()
	}
}

// pass finds the sockets that moved since the last pass.
func (m *activeSockets) pass() error {
	m.ids = m.ids[:0]
	return m.moved.Each(func(id sockdiag.ID) { m.ids = append(m.ids, id) })
}

// dumped notes a dump. Where it missed sockets the next pass is a dump too.
func (m *activeSockets) dumped(missing bool) {
	m.left = passesInTurn
	if missing {
		m.left = 0
	}
}

// note notes a socket that was read.
func (m *activeSockets) note(s *sockdiag.Socket) {
	if m.moved != nil && (s.ReadQueue > 0 || s.Inode == 0 && s.State == sockdiag.Established) {
		m.recheck = append(m.recheck, s.ID())
	}
}

// reread adds the sockets of recheck to the pass where it did not find them.
func (m *activeSockets) reread() {
	if len(m.recheck) == 0 {
		return
	}
	if clear(m.found); m.found == nil {
		m.found = map[uint64]bool{}
	}
	for i := range m.ids {
		m.found[m.ids[i].Cookie()] = true
	}
	for i := range m.recheck {
		if !m.found[m.recheck[i].Cookie()] {
			m.ids = append(m.ids, m.recheck[i])
		}
	}
}

func (m *activeSockets) close() {
	if m.moved != nil {
		_ = m.moved.Close() // it has been read from, no more
		m.moved = nil
	}
}

// readMoved reads the connections that moved since the last pass. It returns false where all have to be read.
func (w *watcher) readMoved() bool {
	m := &w.activeSockets
	if m.pass() != nil {
		m.close()
		return false
	}
	if len(m.ids)*movedPart > w.account.Len() {
		m.rest = passesInTurn
		return false
	}
	m.reread()
	m.recheck = m.recheck[:0]
	asked := m.ids[:0]
	results := 0
	for _, id := range m.ids {
		if local, remote := id.Ends(); w.cfg.Match.ends(local, remote) {
			asked = append(asked, id)
		}
	}
	w.dumpAt = w.now()
	gone, err := w.sockets.Look(asked, ask, func(s *sockdiag.Socket) { results++; w.read(s) })
	return err == nil && gone+results == len(asked)
}
