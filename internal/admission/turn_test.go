package admission

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"
)

// TestTurn_Ends checks at which second the holder's turn ends, for each rank of holder and waiting client.
func TestTurn_Ends(t *testing.T) {
	const never = -1
	for _, c := range []struct {
		name   string
		holder Rank
		lease  int          // s from the start
		wants  map[int]Rank // second from which clients wait
		end    int
	}{
		{"nobody waits", Unauthenticated, 60, nil, never},
		{"an unauthenticated client's hour, a key holder at 10 s", Unauthenticated, 3600, map[int]Rank{10: KeyHolder}, 40},
		{"an unauthenticated client's hour, a user at 10 s", Unauthenticated, 3600, map[int]Rank{10: User}, 40},
		{"a user's hour, a key holder at once", User, 3600, map[int]Rank{0: KeyHolder}, 30},
		{"the same rank waits for the lease", KeyHolder, 100, map[int]Rank{10: KeyHolder}, 100},
		{"the same rank comes after the lease", KeyHolder, 100, map[int]Rank{150: KeyHolder}, 150},
		{"a lease lasts at least 30 s", Unauthenticated, 0, map[int]Rank{1: Unauthenticated}, 30},
		{"a lower rank waits", KeyHolder, 60, map[int]Rank{10: Unauthenticated, 20: User}, never},
		{"the first of several rights", User, 100, map[int]Rank{10: User, 20: Unauthenticated, 50: KeyHolder}, 80},
	} {
		var turn Turn
		ended := never
		second := 0
		holder := &Claim{Rank: c.holder, Lease: epoch.Add(time.Duration(c.lease) * time.Second),
			End: func() { ended = second }}
		if !turn.Take(holder, epoch) {
			t.Fatalf("%s: the turn was not free", c.name)
		}
		var next time.Time
		for ; second < 200; second++ {
			now := epoch.Add(time.Duration(second) * time.Second)
			if rank, comes := c.wants[second]; comes {
				w := &Claim{Rank: rank, Host: netip.PrefixFrom(netip.AddrFrom4([4]byte{1: byte(second)}), 32)}
				if _, _, err := turn.Wait(w, now); err != nil {
					t.Fatalf("%s: %v", c.name, err)
				}
				next = now
			}
			if !next.IsZero() && !now.Before(next) { // like a waiting client
				next = turn.EndExpired(now)
			}
		}
		if ended != c.end {
			t.Errorf("%s: ended at %d s; want %d", c.name, ended, c.end)
		}
	}
}

// A client that does not wait ends only turns of its own rank after their lease. It gets the turn after the
// holder's release.
func TestTurn_Take(t *testing.T) {
	var turn Turn
	ended := 0
	holder := &Claim{Rank: Unauthenticated, Lease: epoch.Add(Lease(10 * time.Second)), End: func() { ended++ }}
	other := &Claim{Rank: Unauthenticated}
	if !turn.Take(holder, epoch) || turn.Take(other, epoch.Add(50*time.Second-1)) || ended != 0 {
		t.Fatalf("within the lease: ended %d times", ended)
	}
	for range 2 {
		if turn.Take(other, epoch.Add(50*time.Second)) || ended != 1 {
			t.Fatalf("after the lease: ended %d times", ended)
		}
	}
	turn.Release(other, epoch) // has no claim
	turn.Release(holder, epoch)
	if !turn.Take(other, epoch.Add(time.Minute)) {
		t.Error("the turn was not released")
	}
	if got := Lease(0); got != MaxTurn+40*time.Second {
		t.Errorf("a test without a time: %v", got)
	}
}

// The queue is ordered by rank, then by arrival. It reports places and is limited in total and per host.
func TestTurn_Queue(t *testing.T) {
	var turn Turn
	names := map[*Claim]string{}
	var moved []<-chan struct{}
	wait := func(name string, rank Rank, host byte) (*Claim, int, error) {
		c := &Claim{Rank: rank, Host: netip.PrefixFrom(netip.AddrFrom4([4]byte{3: host}), 32), End: func() {}}
		names[c] = name
		place, m, err := turn.Wait(c, epoch)
		moved = append(moved, m)
		return c, place, err
	}
	queue := func() string {
		var all []string
		for _, c := range turn.waiting {
			all = append(all, names[c])
		}
		return strings.Join(all, " ")
	}
	holder, place, err := wait("holder", User, 1)
	if place != 0 || err != nil {
		t.Fatal(place, err)
	}
	_, p1, _ := wait("user", User, 2)
	_, p2, _ := wait("key", KeyHolder, 3)
	_, p3, _ := wait("key2", KeyHolder, 3)
	leaves, p4, _ := wait("user2", User, 4)
	if got := fmt.Sprint(p1, p2, p3, p4, " ", queue()); got != "1 1 2 4 key key2 user user2" {
		t.Errorf("queue: %s", got)
	}
	select {
	case <-moved[1]:
	default:
		t.Error("a client that moved down is not woken")
	}
	if contended := turn.ContendedTime(holder, epoch.Add(time.Minute)); contended != time.Minute {
		t.Errorf("contended for %v", contended)
	}
	turn.Release(leaves, epoch)
	turn.Release(holder, epoch)
	if got := fmt.Sprint(queue(), " ", names[turn.holder]); got != "key2 user key" {
		t.Errorf("after the holder: %s", got)
	}
	<-moved[2] // the new holder and the next in the queue
	<-moved[3]
	for n := range maxWaitingPerHost {
		if _, _, err := wait("crowd", Unauthenticated, 9); err != nil {
			t.Errorf("client %d of one host: %v", n, err)
		}
	}
	if _, _, err := wait("crowd", Unauthenticated, 9); !errors.Is(err, ErrQueueFull) {
		t.Errorf("one too many of a host: %v", err)
	}
	for host := byte(10); len(turn.waiting) < maxWaiting; host++ {
		if _, _, err := wait("many", Unauthenticated, host); err != nil {
			t.Error(err)
		}
	}
	if _, _, err := wait("one more", KeyHolder, 99); !errors.Is(err, ErrQueueFull) {
		t.Errorf("one too many: %v", err)
	}
}
