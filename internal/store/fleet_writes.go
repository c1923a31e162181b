package store

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"sync"
	"time"
)

// write is a change that waits for a commit.
type write struct {
	ctx  context.Context                                    // of the caller
	do   func(ctx context.Context, tx *sql.Tx) (Job, error) // again if the transaction failed
	job  Job
	err  error
	done chan struct{} // closed when job and err are set
}

// writes are the changes that wait. A goroutine makes all of them in one transaction: a commit waits for the disk, and
// meanwhile others arrive.
type writes struct {
	mu         sync.Mutex
	waiting    []*write
	committing bool // one at a time: transactions that store results of the same paths wait for each other
}

const (
	// maxTogether limits the changes of a transaction, and so the time for which others wait.
	maxTogether = 64
	// commitTime limits a transaction.
	commitTime = 20 * time.Second
)

// await makes a change together with others that arrive at the same time.
func (f *Fleet) await(ctx context.Context, do func(context.Context, *sql.Tx) (Job, error)) (job Job, err error) {
	w := &write{ctx: ctx, do: do, done: make(chan struct{})}
	f.writes.add(f, w)
	select {
	case <-w.done:
		return w.job, w.err
	case <-ctx.Done():
		f.writes.drop(w)
		return job, ctx.Err() // one that is in a transaction may be made: the next delivery finds it
	}
}

// together is await for a change without a job.
func (f *Fleet) together(ctx context.Context, do func(context.Context, *sql.Tx) error) error {
	_, err := f.await(ctx, func(ctx context.Context, tx *sql.Tx) (job Job, err error) { return job, do(ctx, tx) })
	return err
}

// add starts commit unless it runs.
func (q *writes) add(f *Fleet, w *write) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = append(q.waiting, w)
	if !q.committing {
		q.committing = true
		go q.commit(f)
	}
}

// drop removes a change that still waits, because nobody waits for it any more.
func (q *writes) drop(w *write) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if i := slices.Index(q.waiting, w); i >= 0 {
		q.waiting = slices.Delete(slices.Clone(q.waiting), i, i+1) // a batch shares the array
	}
}

// commit makes changes until none waits.
func (q *writes) commit(f *Fleet) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.waiting) > 0 {
		n := min(len(q.waiting), maxTogether)
		batch := q.waiting[:n:n]
		q.waiting = q.waiting[n:]
		q.mu.Unlock()
		f.makeAll(batch)
		q.mu.Lock()
	}
	q.waiting = nil // the array of those that are made
	q.committing = false
}

// makeAll makes changes in one transaction. If that fails, each gets its own, so that one spoils no other.
func (f *Fleet) makeAll(batch []*write) {
	ctx, cancel := context.WithTimeout(context.Background(), commitTime)
	defer cancel()
	err := f.change(ctx, func(tx *sql.Tx) error {
		for _, w := range batch {
			w.err = w.ctx.Err()
			if w.err != nil {
				continue // its caller is gone
			}
			var refused *RefusedError
			w.job, w.err = w.do(ctx, tx)
			if w.err != nil && !errors.As(w.err, &refused) {
				return w.err
			}
		}
		return nil
	})
	for _, w := range batch {
		if err != nil && len(batch) > 1 {
			f.makeAll([]*write{w})
			continue
		}
		if err != nil {
			w.err = err
		}
		close(w.done)
	}
}
