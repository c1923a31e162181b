package hub

import (
	"math"
	"sync"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/fleet/incident"
	"github.com/fullpipe-net/fullpipe/internal/recheck"
	"github.com/fullpipe-net/fullpipe/internal/store"
)

// follower detects changes of one pair. Its directions are named by their sender's ID.
type follower struct {
	mu     sync.Mutex // locked also while the database is asked: results of a pair are taken one after the other
	knows  bool       // the stored results
	path   recheck.Detector
	last   time.Time               // of the newest result that it knows
	levels map[string]store.Levels // by sender, as the grid has them
}

// newLevels returns the levels that differ from the grid's by 1 % or more, or in a dip. Those of frozen directions
// stay.
func (f *follower) newLevels(job store.Job, frozen map[incident.Path]bool) (all []store.Levels) {
	for sender, now := range f.path.Levels() {
		known := f.levels[sender]
		levels := store.Levels{Task: job.Task, Sender: sender, Receiver: job.Other(sender), Goodput: now[0], RTT: now[1]}
		if frozen[incident.Path{Task: job.Task, From: sender, To: levels.Receiver}] {
			levels.Goodput = incident.Freeze(known.Goodput, now[0])
			levels.RTT = incident.Freeze(known.RTT, now[1])
		}
		if !differs(known.Goodput, levels.Goodput) && !differs(known.RTT, levels.RTT) {
			continue
		}
		f.levels[sender] = levels
		all = append(all, levels)
	}
	return all
}

func differs(a, b recheck.Level) bool {
	off := math.Abs(a.Usual.Level-b.Usual.Level) + math.Abs(a.Usual.Within-b.Usual.Within)
	return off >= 0.01*b.Usual.Level && off > 0 || !a.Worse.Equal(b.Worse)
}
