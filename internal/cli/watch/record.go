package watch

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/cli/console"
	"github.com/fullpipe-net/fullpipe/internal/cli/present"
	"github.com/fullpipe-net/fullpipe/internal/history"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/units"
	"github.com/fullpipe-net/fullpipe/internal/watch"
)

const (
	// minutesOfARecord is the number of minutes in one stored result.
	minutesOfARecord = 60
	// waitingMinutes may wait while the history is written. Further ones are lost and counted.
	waitingMinutes = 16
)

// keeper writes what a watch sees into the history, by the minute. Writing has a goroutine
// of its own: a slow disk must not hold up the watch.
type keeper struct {
	cmd        *cobra.Command
	anonymized bool
	minutes    watch.Minutes
	queue      chan *record.WatchMinute // closed by close
	done       chan struct{}
	lost       int // minutes that found no room

	// Of the goroutine that writes:
	doc    *record.WatchKept
	began  units.Duration // of doc, on the watch's clock
	opened time.Time
	kept   int   // minutes of doc that are written
	unkept int   // minutes of earlier ones that are not
	failed error // the newest
	// waiting says that the history's server has not stored what waits on this host.
	waiting error
}

func newKeeper(cmd *cobra.Command, anonymized bool) *keeper {
	k := &keeper{cmd: cmd, anonymized: anonymized, queue: make(chan *record.WatchMinute, waitingMinutes),
		done: make(chan struct{})}
	go func() {
		defer close(k.done)
		for m := range k.queue {
			k.keep(m)
		}
		k.finish()
	}()
	return k
}

// follow is next, with what each view shows kept.
func (k *keeper) follow(next following) following {
	return func(ctx context.Context, cfg watch.Config, each func(*watch.View) error) error {
		return next(ctx, cfg, func(v *watch.View) error {
			k.send(k.minutes.Add(v))
			return each(v)
		})
	}
}

func (k *keeper) send(m *record.WatchMinute) {
	if m == nil {
		return
	}
	select {
	case k.queue <- m:
	default:
		k.lost++
	}
}

// close stores the remaining minutes. It returns an error if some are not stored.
func (k *keeper) close() error {
	k.send(k.minutes.Flush())
	close(k.queue)
	<-k.done
	if k.lost > 0 {
		console.Note(k.cmd, "the history took too long: %d minutes are not in it", k.lost)
	}
	if k.waiting != nil {
		history.NoteWaiting(k.cmd, k.waiting)
	}
	if k.unkept > 0 {
		return fmt.Errorf("%d minutes are %w", k.unkept, history.Unkept(k.failed))
	}
	return nil
}

// keep adds a minute to the record and stores the record, so that a killed process loses only the current minute.
func (k *keeper) keep(m *record.WatchMinute) {
	if k.doc != nil && len(k.doc.Minutes) >= minutesOfARecord {
		k.finish()
	}
	if k.doc == nil {
		k.open(m)
	}
	m.At -= k.began
	k.doc.Minutes = append(k.doc.Minutes, *m)
	const seldom = 10 // minutes: each copy that waits for a server takes space
	if k.waiting == nil || len(k.doc.Minutes)%seldom == 0 {
		k.write(record.Interrupted)
	}
}

// finish ends the record.
func (k *keeper) finish() {
	if k.doc != nil {
		k.write(record.Done)
		k.unkept += len(k.doc.Minutes) - k.kept
		k.doc = nil
		k.kept = 0
	}
}

// open begins a record with a minute that is over now.
func (k *keeper) open(m *record.WatchMinute) {
	k.began = m.At - m.Length
	k.opened = time.Now().Add(-time.Duration(m.Length))
	k.doc = &record.WatchKept{Header: present.Header(k.cmd), Anonymized: k.anonymized}
	history.Seal(k.cmd, k.doc)
	k.doc.ID = history.NewID(k.opened)
	k.doc.StartedAt = k.opened.UTC()
	k.doc.PathKey = record.SeriesID{HostID: k.doc.HostID, Far: record.Summarize(k.doc).Far, Kind: "watch"}.Key()
}

// write keeps the record's state. Until its time is over its outcome is that of a watch that
// was cut off.
func (k *keeper) write(outcome record.Outcome) {
	elapsed := time.Since(k.opened)
	took := elapsed.Seconds()
	k.doc.Outcome = outcome
	k.doc.TookS = &took
	k.doc.EndedAt = record.NsTime(k.opened.Add(elapsed).UnixNano())
	ctx, cancel := history.KeepContext(k.cmd)
	defer cancel()
	switch err := history.KeepNow(ctx, k.cmd, k.doc); {
	case history.IsWaiting(err): // on this host, which is safe too
		k.waiting = err
	case err != nil:
		k.failed = err
		return
	default:
		k.waiting = nil
	}
	k.kept = len(k.doc.Minutes)
}
