package recheck

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"net"
	"path/filepath"
	"strings"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/atomicfile"
	"github.com/fullpipe-net/fullpipe/internal/history"
	"github.com/fullpipe-net/fullpipe/internal/recheck"
	"github.com/fullpipe-net/fullpipe/internal/recheck/runner"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/store"
)

// Limits of the history from which a path's state is rebuilt: results with levels and limiters, and the newest
// documents, which also have the MTU and the handshake.
const (
	pastRuns      = 300
	pastDocuments = 24
)

// withStore opens the history for one use, after it delivered the outbox.
func (k *rechecker) withStore(ctx context.Context, do func(*store.Store) error) error {
	s, err := history.Open(ctx, k.cmd)
	if err != nil {
		return err
	}
	defer s.Close()
	if err := s.Deliver(ctx); history.IsUnavailable(err) {
		return err
	}
	return do(s)
}

// load rebuilds a path from the history, and finds the events that were not reported.
func (k *rechecker) load(ctx context.Context, peer string) (past runner.Past, err error) {
	series := k.fars[peer].series
	reported, marked := k.readMark(series)
	past.Path = &recheck.Detector{Public: k.fars[peer].public}
	err = k.withStore(ctx, func(s *store.Store) error {
		runs, err := s.List(ctx, store.Filter{Path: series, Limit: pastRuns, MeasuredHere: true})
		if err != nil {
			return err
		}
		all := history.ShortRuns(runs)
		for i := range all {
			r := recheck.ResultOfRun(&all[i])
			if i >= len(all)-pastDocuments && all[i].Kind == "measure" {
				doc, err := documentOf(ctx, s, all[i].ID)
				if err != nil {
					return err
				}
				r = recheck.ResultOf(doc)
			}
			events := past.Path.Add(r)
			if at := (mark{r.At, r.RunID}); marked && len(events) > 0 && at.after(reported) {
				past.Unreported = append(past.Unreported, recheck.Visit{Peer: peer, At: r.At, Retest: r.Retest, Result: &r,
					Events: events})
			}
			if all[i].Origin == record.Scheduled {
				past.Last = all[i].StartedAt
			}
			if !marked {
				reported = mark{r.At, r.RunID}
			}
		}
		return nil
	})
	if err == nil && !marked { // the first time that this host follows the series
		k.mark(series, reported)
	}
	return past, err
}

func documentOf(ctx context.Context, s *store.Store, id string) (*record.Measure, error) {
	text, _, err := s.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	doc, err := record.Decode(text, nil)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", id, err)
	}
	if m, ok := doc.(*record.Measure); ok {
		return m, nil
	}
	return &record.Measure{Header: *doc.Head()}, nil
}

// account is the cost of one test and its start.
type account struct {
	at   time.Time
	cost recheck.Cost
}

// spent returns the cost of all tests of this host on the day that began at a time: those in the history, and those
// of this process that are not in it. It ignores results with later dates, from a clock that was ahead. If the history
// is unavailable, it counts the tests of this process only.
func (k *rechecker) spent(ctx context.Context, since time.Time) (all recheck.Cost, err error) {
	maps.DeleteFunc(k.accounts, func(_ string, a account) bool { return a.at.Before(since) })
	err = k.withStore(ctx, func(s *store.Store) error {
		runs, err := s.List(ctx, store.Filter{Since: since, MeasuredHere: true})
		if err != nil {
			return err
		}
		for i := range runs {
			r := &runs[i]
			if _, known := k.accounts[r.ID]; known || r.Kind != "measure" || r.Origin == record.Manual ||
				!r.StartedAt.Before(since.Add(longestDay)) {
				continue
			}
			doc, err := documentOf(ctx, s, r.ID)
			if err != nil {
				return err
			}
			k.accounts[r.ID] = account{r.StartedAt, recheck.ResultOf(doc).Cost}
		}
		return nil
	})
	if err != nil && !history.IsUnavailable(err) && !history.IsWaiting(err) {
		return all, err
	}
	for _, a := range k.accounts {
		if a.at.Before(since.Add(longestDay)) {
			all = all.Plus(a.cost)
		}
	}
	return all.Plus(k.charged(since)), nil
}

// lock keeps this user's other processes from testing a far end at the same time.
func (k *rechecker) lock(peer string) (unlock func(), err error) {
	of := farHost(peer)
	if far := k.fars[peer]; far != nil && far.public {
		of = "public servers" // not the name of a host
	}
	name := sha256.Sum256([]byte(of))
	file, err := atomicfile.LockFile(filepath.Join(k.dir, "recheck-"+hex.EncodeToString(name[:8])+".lock"))
	if file == nil {
		return nil, err
	}
	return func() { file.Close() }, nil
}

// farHost returns the host of a PEER, without scheme, port and path.
func farHost(peer string) string {
	_, rest, found := strings.Cut(peer, "://")
	if !found {
		rest = peer
	}
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		rest = rest[:end]
	}
	rest = rest[strings.LastIndexByte(rest, '@')+1:]
	if name, _, err := net.SplitHostPort(rest); err == nil {
		rest = name
	}
	return strings.ToLower(strings.Trim(rest, "[]"))
}
