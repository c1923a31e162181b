package mesh

import (
	"cmp"
	"slices"
	"time"
)

// Run is one due test of a pair.
type Run struct {
	ID    string
	Pair  string // Pair.Key
	Needs []Resource
	Bytes int64     // reserved of each byte budget
	Due   time.Time // when it became due
	Late  time.Time // its latest start; it is skipped after
	First bool      // starts before others: a repetition that confirms a change, or a user's request
}

// SkippedRun is a run that did not start before its latest time, with the last obstacle.
type SkippedRun struct {
	Run
	Reason   Reason
	Resource Resource  // the obstacle
	By       string    // ID of the run that used the resource, "" where none did
	Since    time.Time // of AgentAway
}

// Book knows which runs wait and which use their hosts and links. It starts runs greedily: whenever a resource becomes
// free, the first waiting run whose resources are all free starts. It is not safe for concurrent use.
type Book struct {
	waiting  []Run // in the order in which they are tried
	leases   map[string]lease
	users    map[Resource]string // resource → ID of its run
	away     map[Resource]time.Time
	buckets  map[Resource]*bucket
	examined int // waiting runs examined by Next, for tests of its cost
}

// lease is the hosts and links of a started run.
type lease struct {
	needs []Resource
	bytes int64     // reserved
	until time.Time // when it ends without Free
}

// NewBook returns an empty book with full budgets.
func NewBook(budgets map[Resource]Budget, now time.Time) *Book {
	b := &Book{leases: map[string]lease{}, users: map[Resource]string{}, away: map[Resource]time.Time{}}
	b.SetBudgets(budgets, nil, now)
	return b
}

// Charge is what an ended run took of the byte budgets of its hosts and links.
type Charge struct {
	At    time.Time
	Needs []Resource
	Bytes int64
}

// Lacks reports whether one of the budgets is new to the book: SetBudgets then needs the charges.
func (b *Book) Lacks(budgets map[Resource]Budget) bool {
	for r, budget := range budgets {
		if budget.Bytes > 0 && b.buckets[r] == nil {
			return true
		}
	}
	return false
}

// SetBudgets replaces the budgets. One that the book has keeps its level. A new one is full a day
// ago, then reduced by the charges, in order of time, and by the runs that have leases.
func (b *Book) SetBudgets(budgets map[Resource]Budget, charges []Charge, now time.Time) {
	buckets := make(map[Resource]*bucket, len(budgets))
	unknown := map[Resource]*bucket{}
	for r, budget := range budgets {
		old := b.buckets[r]
		if old == nil {
			buckets[r] = newBucket(budget.Bytes, now.Add(-day))
			unknown[r] = buckets[r]
			continue
		}
		fresh := newBucket(budget.Bytes, now)
		if fresh != nil {
			old.refill(now)
			fresh.level = min(old.level, fresh.level) // a lower budget counts what was taken under the higher one
		}
		buckets[r] = fresh
	}
	for _, c := range charges {
		for _, r := range c.Needs {
			unknown[r].take(c.Bytes, c.At)
		}
	}
	for _, run := range b.leases {
		for _, r := range run.needs {
			unknown[r].take(run.bytes, now)
		}
	}
	b.buckets = buckets
}

// Has reports whether a run waits or has a lease.
func (b *Book) Has(id string) bool {
	_, runs := b.leases[id]
	return runs || slices.ContainsFunc(b.waiting, func(r Run) bool { return r.ID == id })
}

// order is the order in which waiting runs are tried: First before others, then by latest start.
func order(a, b Run) int {
	if a.First != b.First {
		if a.First {
			return -1
		}
		return 1
	}
	return cmp.Or(a.Late.Compare(b.Late), cmp.Compare(a.ID, b.ID))
}

// Due adds a run that waits. A run that is in the book already changes nothing.
func (b *Book) Due(r Run) {
	i, waits := slices.BinarySearchFunc(b.waiting, r, order)
	if _, runs := b.leases[r.ID]; waits || runs {
		return
	}
	b.waiting = slices.Insert(b.waiting, i, r)
}

// Lease records a run that is already started, for example by a hub before its restart. Its lease ends by Free, or at
// until.
func (b *Book) Lease(id string, needs []Resource, bytes int64, until, now time.Time) {
	b.waiting = slices.DeleteFunc(b.waiting, func(r Run) bool { return r.ID == id })
	b.leases[id] = lease{needs, bytes, until}
	for _, r := range needs {
		b.users[r] = id
		b.buckets[r].take(bytes, now)
	}
}

// Free ends a run's lease. moved is the bytes that it really moved; the rest of its reservation returns to the budgets.
func (b *Book) Free(id string, moved int64, now time.Time) {
	run, known := b.leases[id]
	if !known {
		return
	}
	delete(b.leases, id)
	for _, r := range run.needs {
		if b.users[r] == id {
			delete(b.users, r)
		}
		b.buckets[r].take(moved-run.bytes, now)
	}
}

// Away records that an agent cannot be reached since a time. Its runs wait.
func (b *Book) Away(agent string, since time.Time) { b.away[HostResource(agent)] = since }

// Back records that an agent can be reached.
func (b *Book) Back(agent string) { delete(b.away, HostResource(agent)) }

// Remove takes all waiting runs out of the book that drop selects, and returns them.
func (b *Book) Remove(drop func(Run) bool) (removed []Run) {
	b.waiting = slices.DeleteFunc(b.waiting, func(r Run) bool {
		if drop(r) {
			removed = append(removed, r)
			return true
		}
		return false
	})
	return removed
}

// Next returns the runs that start now and the runs whose latest start has passed. lasts returns the longest time that
// a run takes, which is its lease. Leases that have passed end.
func (b *Book) Next(now time.Time, lasts func(Run) time.Duration) (start []Run, skipped []SkippedRun) {
	for id, run := range b.leases {
		if !run.until.After(now) {
			b.Free(id, run.bytes, now)
		}
	}
	kept := b.waiting[:0]
	for _, r := range b.waiting {
		b.examined++
		obstacle, blocked := b.obstacle(r, now)
		switch {
		case !blocked:
			b.start(r, now.Add(lasts(r)), now)
			start = append(start, r)
		case now.Before(r.Late):
			kept = append(kept, r)
		default:
			skipped = append(skipped, obstacle)
		}
	}
	clear(b.waiting[len(kept):])
	b.waiting = kept
	return start, skipped
}

func (b *Book) start(r Run, until, now time.Time) {
	b.leases[r.ID] = lease{r.Needs, r.Bytes, until}
	for _, resource := range r.Needs {
		b.users[resource] = r.ID
		b.buckets[resource].take(r.Bytes, now)
	}
}

// obstacle returns the first obstacle to a start of a run now, and false without one.
func (b *Book) obstacle(r Run, now time.Time) (SkippedRun, bool) {
	for _, resource := range r.Needs {
		if since, away := b.away[resource]; away {
			return SkippedRun{Run: r, Reason: AgentAway, Resource: resource, Since: since}, true
		}
	}
	for _, resource := range r.Needs {
		if by, used := b.users[resource]; used {
			reason := LinkTaken
			if _, isHost := resource.Host(); isHost {
				reason = HostTaken
			}
			return SkippedRun{Run: r, Reason: reason, Resource: resource, By: by}, true
		}
		if !b.buckets[resource].has(r.Bytes, now) {
			return SkippedRun{Run: r, Reason: BytesBudget, Resource: resource}, true
		}
	}
	return SkippedRun{}, false
}

// Wake returns when Next may have something to do without a further call of Due, Free or Back: the end
// of a lease, a latest start, or a budget that suffices again. It returns false in an empty book.
func (b *Book) Wake(now time.Time) (at time.Time, ok bool) {
	earlier := func(t time.Time) {
		if !ok || t.Before(at) {
			at = t
		}
		ok = true
	}
	for _, run := range b.leases {
		earlier(run.until)
	}
	for _, r := range b.waiting {
		earlier(r.Late)
		if obstacle, blocked := b.obstacle(r, now); blocked && obstacle.Reason == BytesBudget {
			if t, ever := b.buckets[obstacle.Resource].ready(r.Bytes, now); ever {
				earlier(t)
			}
		}
	}
	return at, ok
}
