package hub

import (
	"container/heap"
	"time"
)

// dueQueue has the times at which pairs are due, the earliest first. A pair may have several; the caller checks that
// one is still current.
type dueQueue struct{ entries dueEntries }

type dueEntry struct {
	at   time.Time
	pair string
}

type dueEntries []dueEntry

func (e dueEntries) Len() int           { return len(e) }
func (e dueEntries) Less(i, j int) bool { return e[i].at.Before(e[j].at) }
func (e dueEntries) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *dueEntries) Push(x any)        { *e = append(*e, x.(dueEntry)) }
func (e *dueEntries) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

func (q *dueQueue) add(at time.Time, pair string) { heap.Push(&q.entries, dueEntry{at, pair}) }

// first returns the earliest entry, and false in an empty queue.
func (q *dueQueue) first() (at time.Time, pair string, ok bool) {
	if len(q.entries) == 0 {
		return at, "", false
	}
	return q.entries[0].at, q.entries[0].pair, true
}

// remove removes the earliest entry.
func (q *dueQueue) remove() { heap.Pop(&q.entries) }
