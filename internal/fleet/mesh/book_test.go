package mesh

import (
	"fmt"
	"testing"
	"time"
)

var start = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

func at(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }

func lasts10(Run) time.Duration { return 10 * time.Second }

func run(id string, late int, needs ...Resource) Run {
	return Run{ID: id, Needs: needs, Due: start, Late: at(late), Bytes: 100}
}

func ids(runs []Run) (out string) {
	for _, r := range runs {
		out += r.ID
	}
	return out
}

func TestBook_OneRunOnEachResource(t *testing.T) {
	b := NewBook(nil, start)
	b.Due(run("a", 60, "host:1", "host:2", "link:x"))
	b.Due(run("b", 50, "host:3", "host:4", "link:x")) // the earlier latest start goes first
	b.Due(run("c", 70, "host:1", "host:5"))
	b.Due(run("c", 70, "host:1", "host:5")) // twice is once
	started, skipped := b.Next(start, lasts10)
	if ids(started) != "bc" || skipped != nil {
		t.Fatalf("started %q, skipped %v", ids(started), skipped)
	}
	b.Free("b", 100, at(5))
	if started, _ = b.Next(at(5), lasts10); ids(started) != "" {
		t.Errorf("host 1 is in use, and %q started", ids(started))
	}
	if started, _ = b.Next(at(10), lasts10); ids(started) != "a" { // c's lease is 10 s
		t.Errorf("after the lease %q started", ids(started))
	}
}

func TestBook_FirstBeforeOthers(t *testing.T) {
	b := NewBook(nil, start)
	b.Due(run("a", 10, "host:1"))
	urgent := run("z", 99, "host:1")
	urgent.First = true
	b.Due(urgent)
	if started, _ := b.Next(start, lasts10); ids(started) != "z" {
		t.Errorf("started %q", ids(started))
	}
}

// TestBook_SkipReasons checks that a run that cannot start names the obstacle.
func TestBook_SkipReasons(t *testing.T) {
	b := NewBook(map[Resource]Budget{"host:9": {Bytes: 400}}, start) // 80 at once
	b.Lease("old", []Resource{"host:1", "link:x"}, 0, at(1000), start)
	b.Away("7", at(-30))
	b.Due(run("a", 5, "host:1", "host:2"))
	b.Due(run("b", 5, "host:3", "link:x"))
	b.Due(run("c", 5, "host:3", "host:7"))
	b.Due(run("d", 5, "host:4", "host:9"))
	_, skipped := b.Next(at(5), lasts10)
	want := map[string]string{"a": "host-taken host:1 old", "b": "link-taken link:x old", "c": "agent-away host:7 ",
		"d": "bytes-budget host:9 "}
	for _, s := range skipped {
		if got := fmt.Sprintf("%s %s %s", s.Reason, s.Resource, s.By); got != want[s.ID] {
			t.Errorf("%s: %s, want %s", s.ID, got, want[s.ID])
		}
		if s.Reason == AgentAway && !s.Since.Equal(at(-30)) {
			t.Errorf("away since %v", s.Since)
		}
		delete(want, s.ID)
	}
	if len(want) > 0 {
		t.Errorf("not skipped: %v", want)
	}
}

func TestBook_WakesWhenBudgetSuffices(t *testing.T) {
	b := NewBook(map[Resource]Budget{"link:x": {Bytes: 500}}, start) // 100 at once, 400 a day
	b.Due(run("a", 10, "host:1", "link:x"))
	b.Due(run("b", 2*86400, "host:2", "link:x"))
	if started, _ := b.Next(start, lasts10); ids(started) != "a" {
		t.Fatalf("started %q", ids(started))
	}
	b.Free("a", 60, at(10)) // 40 return
	wake, ok := b.Wake(at(10))
	if want := start.Add(60 * day / 400); !ok || wake.Sub(want).Abs() > time.Second {
		t.Fatalf("wakes at %v, want %v", wake, want)
	}
	if started, _ := b.Next(wake, lasts10); ids(started) != "b" {
		t.Errorf("started %q", ids(started))
	}
}

func TestBook_Remove(t *testing.T) {
	b := NewBook(nil, start)
	b.Due(run("a", 10, "host:1"))
	b.Due(run("b", 10, "host:2"))
	if removed := b.Remove(func(r Run) bool { return r.ID == "a" }); ids(removed) != "a" {
		t.Errorf("removed %q", ids(removed))
	}
	if started, _ := b.Next(start, lasts10); ids(started) != "b" {
		t.Errorf("started %q", ids(started))
	}
	if _, ok := NewBook(nil, start).Wake(start); ok {
		t.Error("an empty book wakes")
	}
}

// TestBook_BudgetsHoldOverRestarts makes the book anew at each hour of three days, from the charges of the last one.
// Runs that take what they can move no more than the budget in any 24 hours.
func TestBook_BudgetsHoldOverRestarts(t *testing.T) {
	wan := LinkResource("wan")
	needs := []Resource{HostResource("a"), HostResource("b"), wan}
	budgets := map[Resource]Budget{wan: {Bytes: 1000}}
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var charges []Charge
	var b *Book
	for minute := range 3 * 24 * 60 {
		now := start.Add(time.Duration(minute) * time.Minute)
		if minute%60 == 0 {
			b = NewBook(nil, now)
			if !b.Lacks(budgets) {
				t.Fatal("a new book knows the budgets")
			}
			var recent []Charge
			for _, c := range charges {
				if now.Sub(c.At) < day {
					recent = append(recent, c)
				}
			}
			b.SetBudgets(budgets, recent, now)
		}
		id := fmt.Sprint(minute)
		b.Due(Run{ID: id, Needs: needs, Bytes: 20, Due: now, Late: now.Add(time.Second)})
		started, _ := b.Next(now, func(Run) time.Duration { return time.Minute })
		b.Remove(func(Run) bool { return true })
		for range started {
			b.Free(id, 20, now)
			charges = append(charges, Charge{now, needs, 20})
		}
		sum := int64(0)
		for _, c := range charges {
			if now.Sub(c.At) < day {
				sum += c.Bytes
			}
		}
		if sum > 1000 || now.Sub(start) > day && sum < 800 {
			t.Fatalf("the 24 hours before %v moved %d of 1000 bytes", now, sum)
		}
	}
	if b.Lacks(budgets) {
		t.Error("the book does not know its budgets")
	}
	// A run that another hub ordered is charged once: by its lease until its end, by its charge later.
	b = NewBook(nil, start)
	b.Lease("adopted", needs, 150, start.Add(time.Minute), start)
	b.SetBudgets(budgets, nil, start)
	if b.buckets[wan].level != 50 {
		t.Errorf("%.0f bytes are left with a lease of 150 of 200", b.buckets[wan].level)
	}
	b.Free("adopted", 100, start)
	if b.buckets[wan].level != 100 {
		t.Errorf("%.0f bytes are left after a run of 100 of 200", b.buckets[wan].level)
	}
}
