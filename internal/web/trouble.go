package web

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/report"
	"github.com/fullpipe-net/fullpipe/internal/store"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// trouble is the greatest trouble of a path. Its zero value is none.
type trouble struct {
	kind troubleKind
	left float64 // the share of the usual goodput that is left; 0 of other kinds than lower: it is not lower
}

// troubleKind is the kind of a trouble, the worst first.
type troubleKind int

const (
	noTrouble  troubleKind = iota
	failed                 // the newest result has no figures
	lower                  // its goodput is below that before
	bySetting              // a host's setting or a program limits it
	otherRoute             // its round trip shifted among the results that it is compared with
)

// rank orders paths, the least first.
func (t trouble) rank() float64 {
	switch {
	case t.kind == failed:
		return -1
	case t.kind == lower || t.kind == bySetting && t.left > 0:
		return t.left
	case t.kind == noTrouble:
		return float64(otherRoute) + 1
	}
	return float64(t.kind)
}

// bySettings are the limiters that a setting of a host or a program is, on any path.
var bySettings = []verdict.Name{verdict.ReceiverWindow, verdict.SendBuffer, verdict.LocalQueue,
	verdict.NagleDelayedAck, verdict.ReceiverApplication}

// troubles has the trouble of every path, so that a page reads only paths with new results.
type troubles struct {
	mu   sync.Mutex // guards seen
	seen map[string]standingTrouble
}

// standingTrouble is the trouble of a path when it had this newest result, this number of results and this newest
// accepted one.
type standingTrouble struct {
	newest, accepted time.Time
	runs             int
	trouble          trouble
}

// of returns the trouble of each path by its key.
func (t *troubles) of(ctx context.Context, history *store.Store, paths []store.Series) (map[string]trouble, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	accepted, err := history.Labelled(ctx, record.AcceptedLabel)
	if err != nil {
		return nil, err
	}
	all := make(map[string]trouble, len(paths))
	for _, p := range paths {
		now := t.seen[p.Path]
		if !now.newest.Equal(p.Newest) || now.runs != p.Runs || !now.accepted.Equal(accepted[p.Path]) {
			runs, err := history.Of(ctx, p.Path, store.Page{Limit: standingRuns})
			if err != nil {
				return nil, err
			}
			kept := short(runs)
			now = standingTrouble{p.Newest, accepted[p.Path], p.Runs,
				troubleOf(report.Standings(kept, len(kept)), report.Changes(record.Header{}, kept).Changes)}
			t.seen[p.Path] = now
		}
		all[p.Path] = now.trouble
	}
	maps.DeleteFunc(t.seen, func(path string, _ standingTrouble) bool {
		_, exists := all[path]
		return !exists
	})
	return all, nil
}

// troubleOf returns the greatest trouble of a path by the results of its directions and their changes. A fall by a
// setting counts for the setting.
func troubleOf(directions []record.KeptDirection, changes []record.PathChange) (worst trouble) {
	for _, d := range directions {
		if len(d.Results) == 0 {
			continue
		}
		newest := &d.Results[len(d.Results)-1]
		now := trouble{}
		if newest.Against == record.Lower && newest.GoodputBps != nil && newest.UsualBps != nil {
			now = trouble{lower, max(*newest.GoodputBps / *newest.UsualBps, 0)}
		}
		switch {
		case newest.Against == record.NoFigures && newest.Outcome != record.Done:
			now.kind = failed
		case limitedBySetting(d.Results):
			now.kind = bySetting
		case now.kind == noTrouble && routeChanged(&d, changes):
			now.kind = otherRoute
		}
		if now.rank() < worst.rank() {
			worst = now
		}
	}
	return worst
}

// limitedBySetting reports whether a setting limits the newest result and one of the two before it, and nobody has
// accepted that. An acceptance ends with another limiter, or with a rate below that of before.
func limitedBySetting(results []record.KeptPoint) bool {
	newest := &results[len(results)-1]
	if !slices.Contains(bySettings, verdict.Name(newest.Limiter)) {
		return false
	}
	before := results[max(len(results)-3, 0) : len(results)-1]
	same := func(p record.KeptPoint) bool { return p.Limiter == newest.Limiter }
	if len(before) > 0 && !slices.ContainsFunc(before, same) {
		return false
	}
	for _, p := range slices.Backward(results) {
		if p.Accepted {
			return p.Limiter != newest.Limiter || newest.Against == record.Lower
		}
	}
	return true
}

// routeChanged reports whether a direction's round trip shifted, and nobody has accepted a result since.
func routeChanged(d *record.KeptDirection, changes []record.PathChange) bool {
	return slices.ContainsFunc(changes, func(c record.PathChange) bool {
		since := func(p record.KeptPoint) bool { return p.Accepted && !p.StartedAt.Before(c.At) }
		return c.Metric == "rtt" && c.Direction == d.Direction && !slices.ContainsFunc(d.Results, since)
	})
}
