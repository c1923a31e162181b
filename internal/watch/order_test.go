package watch

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// TestDumpsInAnyOrder dumps connections in any order: each snapshot goes to its own connection.
func TestDumpsInAnyOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	a := NewTracker()
	acked := map[uint64]int64{}
	var cookies []uint64
	for cookie := range uint64(100) {
		cookies = append(cookies, cookie+1)
	}
	for turn := range 60 {
		at := time.Duration(turn) * time.Second
		if turn > 20 && turn%3 == 0 {
			r.Shuffle(len(cookies), func(i, j int) { cookies[i], cookies[j] = cookies[j], cookies[i] })
		}
		for range r.IntN(20) { // some end, others begin in their places
			i := r.IntN(len(cookies))
			a.End(Snapshot{Cookie: cookies[i], Sample: transfer.Sample{At: at, Acked: acked[cookies[i]] + 1,
				Sent: acked[cookies[i]]}})
			delete(acked, cookies[i])
			cookies[i] = uint64(1000*(turn+1) + i)
		}
		a.BeginDump(at)
		for _, cookie := range cookies {
			fingerprint := uint64(acked[cookie]) + 1
			if r.IntN(4) > 0 && a.Unchanged(cookie, fingerprint, at) {
				continue
			}
			acked[cookie] += 10
			c := a.Read(Snapshot{Cookie: cookie, Inode: 7, Sample: transfer.Sample{At: at, Acked: acked[cookie] + 1,
				Sent: acked[cookie]}})
			c.fingerprint = uint64(acked[cookie]) + 1
		}
		if a.EndDump(at) || a.Len() != len(cookies) {
			t.Fatalf("turn %d: %d of %d open", turn, a.Len(), len(cookies))
		}
		for _, cookie := range cookies {
			if c := a.open[cookie]; c.Cookie != cookie || c.Sample.Sent != acked[cookie] || c.Sample.At != at {
				t.Fatalf("turn %d: %d is at %v with %d bytes, not %d", turn, cookie, c.Sample.At, c.Sample.Sent, acked[cookie])
			}
		}
	}
	if len(a.order.last) != len(cookies) {
		t.Errorf("the order of %d is kept, of %d", len(a.order.last), len(cookies))
	}
}

// TestIdleConnectionsAreSmall: an unchanged connection keeps nothing of a period.
func TestIdleConnectionsAreSmall(t *testing.T) {
	a := NewTracker()
	c := a.Read(snapshot(1, 1, 100, 0))
	a.EndDump(0)
	a.Period(func(*Connection) {})
	if c.moves != nil {
		t.Error("room for its moves")
	}
	a.Read(snapshot(1, 3, 700, 0))
	a.moved(func(c *Connection) {
		if c.mark.At != time.Second || c.sentSince(&c.mark) != 600 {
			t.Errorf("%d bytes since %v, want 600 since 1 s", c.sentSince(&c.mark), c.mark.At)
		}
	})
}
