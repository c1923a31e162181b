package web

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/report"
	"github.com/fullpipe-net/fullpipe/internal/store"
)

// trouble ranks a path, the least first: failed, then the share of the usual goodput that is left, then noTrouble.
type trouble float64

const (
	failed    trouble = -1
	noTrouble trouble = 1e6
)

// troubles has the trouble of every path, so that a page reads only paths with new results.
type troubles struct {
	mu   sync.Mutex // guards seen
	seen map[string]standingTrouble
}

// standingTrouble is the trouble of a path when it had this newest result and this number of results.
type standingTrouble struct {
	newest  time.Time
	runs    int
	trouble trouble
}

// of returns the trouble of each path by its key.
func (t *troubles) of(ctx context.Context, history *store.Store, paths []store.Series) (map[string]trouble, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := make(map[string]trouble, len(paths))
	for _, p := range paths {
		now := t.seen[p.Path]
		if !now.newest.Equal(p.Newest) || now.runs != p.Runs {
			runs, err := history.Of(ctx, p.Path, store.Page{Limit: standingRuns})
			if err != nil {
				return nil, err
			}
			now = standingTrouble{p.Newest, p.Runs, troubleOf(report.Standings(short(runs), 1))}
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

// troubleOf returns the greatest trouble of a path's directions.
func troubleOf(directions []record.KeptDirection) trouble {
	worst := noTrouble
	for _, d := range directions {
		if len(d.Results) == 0 {
			continue
		}
		newest := &d.Results[len(d.Results)-1]
		switch {
		case newest.Against == record.NoFigures && newest.Outcome != record.Done:
			worst = failed
		case newest.Against == record.Lower && newest.GoodputBps != nil && newest.UsualBps != nil:
			worst = min(worst, max(trouble(*newest.GoodputBps / *newest.UsualBps), 0))
		}
	}
	return worst
}
