package watch

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// snapshot returns a snapshot at a time in seconds, with acknowledged and received bytes.
func snapshot(cookie uint64, at, acked, received int64) Snapshot {
	return Snapshot{Cookie: cookie, Inode: 7, Sample: transfer.Sample{At: time.Duration(at) * time.Second,
		Acked: acked + 1,
		Sent:  acked, Received: received}}
}

func TestPayloadLeavesOutSynAndFin(t *testing.T) {
	for _, c := range []struct {
		name string
		s    transfer.Sample
		want int64
	}{
		{"nothing sent", transfer.Sample{Acked: 1}, 0},
		{"all acknowledged, with SYN and FIN", transfer.Sample{Acked: 1002, Sent: 1000}, 1000},
		{"resent bytes count once", transfer.Sample{Acked: 1002, Sent: 1500, RetransmittedBytes: 500}, 1000},
		{"on its way", transfer.Sample{Acked: 601, Sent: 1000}, 601},
		{"an old kernel", transfer.Sample{Acked: 1001}, 1000},
	} {
		snap := Snapshot{Sample: c.s}
		now := snap.counters()
		if got := now.payloadSent(0); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

// TestTheSYNIsLearnt: which end began shows once all that was written is acknowledged, and
// then what was cut off in its middle is counted to the byte too.
func TestTheSYNIsLearnt(t *testing.T) {
	for _, began := range []int64{0, 1} {
		a := NewTracker()
		a.EndDump(0)
		lookup := func(at time.Duration, acked, sent, unacked int64, established bool) Snapshot {
			return Snapshot{Cookie: 1, Inode: 7, Unacked: unacked, Established: established, Sample: transfer.Sample{At: at,
				Have: transfer.HaveSendWnd, Acked: acked + began, Sent: sent}}
		}
		c := a.Read(lookup(1, 0, 0, 0, true))
		for i, r := range []struct{ acked, sent, unacked int64 }{{0, 5000, 5000}, {3000, 5000, 2000}, {5000, 5000, 0},
			{8000, 9000, 1000}} {
			a.Read(lookup(time.Duration(i+2), r.acked, r.sent, r.unacked, true))
			if c.Sent() != r.acked {
				t.Errorf("SYN %d: %+v is counted as %d", began, r, c.Sent())
			}
		}
		a.End(lookup(9, 8500, 9000, 0, false)) // reset
		if got := a.totals.Sent; got != 8500 {
			t.Errorf("SYN %d: %d at its end", began, got)
		}
	}
	closed := Connection{Snapshot: Snapshot{Sample: transfer.Sample{Have: transfer.HaveSendWnd, Acked: 2}}}
	if n := closed.Sent(); n != 0 {
		t.Errorf("SYN and FIN alone are %d bytes", n)
	}
}

func TestAccount(t *testing.T) {
	a := NewTracker()
	a.Read(snapshot(1, 0, 5000, 100)) // older than the watch
	a.EndDump(0)
	a.Read(snapshot(1, 2, 9000, 100))
	a.Read(snapshot(2, 2, 70, 0)) // born since: all of it is ours
	a.EndDump(2 * time.Second)
	if got := a.totals; got.Sent != 4070 || got.Received != 0 || got.Opened != 1 {
		t.Errorf("after two dumps: %+v", got)
	}
	a.End(snapshot(3, 3, 12, 34)) // no dump saw it
	end := snapshot(1, 3, 9500, 101)
	end.Inode = 0 // as the kernel's message has it
	if c := a.End(end); !c.Final || !c.Ended || c.Inode != 7 {
		t.Errorf("%+v", c)
	}
	a.EndDump(4 * time.Second) // without 2: once is not gone
	if a.Len() != 1 {
		t.Errorf("%d open after a dump that missed one", a.Len())
	}
	a.Read(snapshot(2, 6, 80, 0))
	a.EndDump(6 * time.Second)
	a.EndDump(8 * time.Second)
	a.EndDump(10 * time.Second)
	want := Totals{Sent: 4500 + 80 + 12, Received: 1 + 34, Opened: 2, Closed: 2, Unfinished: 1}
	if got := a.totals; got != want || a.Len() != 0 {
		t.Errorf("%+v, want %+v", got, want)
	}
	seen := 0
	a.Period(func(c *Connection) { seen++ })
	a.Period(func(c *Connection) { t.Errorf("%d is reported again", c.Cookie) })
	if seen != 3 {
		t.Errorf("%d reported of 3", seen)
	}
}

// TestAnEndDuringTheFirstDump checks that a connection which ends in the first dump is not counted.
func TestAnEndDuringTheFirstDump(t *testing.T) {
	a := NewTracker()
	if a.End(snapshot(1, 0, 1e9, 0)) != nil {
		t.Error("it was counted")
	}
	a.EndDump(0)
	if got := a.totals; got != (Totals{}) {
		t.Errorf("%+v", got)
	}
}

func TestAccount_OlderSnapshotsAndWraps(t *testing.T) {
	a := NewTracker()
	a.EndDump(0)
	first := snapshot(1, 1, 100, 0)
	first.Sample.Retransmitted = 1<<32 - 10
	a.Read(first)
	second := snapshot(1, 3, 300, 0)
	second.Sample.Retransmitted = 5
	c := a.Read(second)
	if c.Sample.Retransmitted != 1<<32+5 {
		t.Errorf("%d segments after a wrap", c.Sample.Retransmitted)
	}
	a.Read(snapshot(1, 2, 200, 0))
	if c.Sent() != 300 {
		t.Errorf("an older reading won: %d", c.Sent())
	}
}

// TestTotalsNeverFall plays a host at random: connections come, move bytes, end with a
// message, or end with the message lost, and dumps miss some.
func TestTotalsNeverFall(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		a := NewTracker()
		type live struct{ sent int64 }
		host := map[uint64]*live{}
		var cookie uint64
		var before Totals
		var told0, finals, sent int64
		a.EndDump(0)
		for at := int64(1); at < 60; at++ {
			for range rng.IntN(5) {
				cookie++
				host[cookie] = &live{}
			}
			for id, l := range host {
				more := rng.Int64N(1000)
				l.sent, sent = l.sent+more, sent+more
				if rng.IntN(4) > 0 {
					continue
				}
				delete(host, id)
				if rng.IntN(5) > 0 {
					a.End(snapshot(id, at, l.sent, 0))
					told0 += l.sent
					finals++
				}
			}
			for id, l := range host {
				if rng.IntN(10) > 0 {
					a.Read(snapshot(id, at, l.sent, 0))
				}
			}
			a.EndDump(time.Duration(at) * time.Second)
			now := a.totals
			if now.Sent < before.Sent || now.Opened < before.Opened || now.Closed < before.Closed ||
				now.Unfinished < before.Unfinished {
				t.Fatalf("from %+v to %+v", before, now)
			}
			before = now
			a.Period(func(*Connection) {})
		}
		// Ends that came after two dumps had missed the connection are counted as unfinished.
		if before.Closed > finals || before.Closed+before.Unfinished+int64(a.Len()) < before.Opened ||
			before.Sent < told0 || before.Sent > sent {
			t.Fatalf("%+v of %d ends and %d to %d bytes", before, finals, told0, sent)
		}
	}
}

// TestEndsThatComeLate: a connection missing from dumps may end later and is not
// counted again. One whose socket was emptied keeps its last snapshot.
func TestEndsThatComeLate(t *testing.T) {
	a := NewTracker()
	a.EndDump(0)
	a.Read(snapshot(1, 1, 500, 70))
	a.Read(snapshot(2, 1, 900, 0))
	a.EndDump(2 * time.Second)
	a.EndDump(4 * time.Second) // 1 and 2 vanished
	want := Totals{Sent: 1400, Received: 70, Opened: 2, Unfinished: 2}
	if got := a.totals; got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	a.End(snapshot(1, 5, 600, 80))
	a.End(Snapshot{Cookie: 2, Sample: transfer.Sample{At: 5 * time.Second}})
	want.Sent, want.Received = 1500, 80
	if got := a.totals; got != want || a.Knows(1) || a.Knows(2) {
		t.Errorf("%+v, want %+v", got, want)
	}
	a.Read(snapshot(3, 6, 40, 0))
	a.EndDump(8 * time.Second)
	a.EndDump(8 * time.Second)
	if c := a.Read(snapshot(3, 9, 45, 0)); a.Len() != 1 || c.Ended || a.totals.Sent != 1545 {
		t.Errorf("%d open after one was seen again: %+v, %+v", a.Len(), c, a.totals)
	}
	if c := a.End(Snapshot{Cookie: 3, Sample: transfer.Sample{At: 7 * time.Second}}); c == nil || c.Final || !c.Ended {
		t.Errorf("%+v", c)
	}
	want.Sent, want.Opened, want.Unfinished = 1545, 3, 4
	if got := a.totals; got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// TestAccount_Unchanged repeats a record: only the snapshot's time moves, until a lookup comes between.
func TestAccount_Unchanged(t *testing.T) {
	a := NewTracker()
	a.EndDump(0)
	c := a.Read(snapshot(1, 1, 500, 70))
	c.fingerprint = 77
	before := a.totals
	if a.Unchanged(1, 78, 2*time.Second) || a.Unchanged(2, 77, 2*time.Second) {
		t.Error("another fingerprint, or nobody's")
	}
	for at := 2 * time.Second; at < 9*time.Second; at += time.Second {
		if !a.Unchanged(1, 77, at) {
			t.Fatal("the same fingerprint")
		}
		a.EndDump(at)
	}
	if c.Sample.At != 8*time.Second || a.Len() != 1 || a.totals != before {
		t.Errorf("%+v, %+v, %d open", c, a.totals, a.Len())
	}
	a.Read(snapshot(1, 9, 500, 70)) // a look-up
	if a.Unchanged(1, 77, 10*time.Second) {
		t.Error("a lookup came between")
	}
}

// TestThePeersFIN is no payload: once it is known to have come it stays known, though the
// kernel's last account has no state.
func TestThePeersFIN(t *testing.T) {
	a := NewTracker()
	a.EndDump(0)
	a.Read(snapshot(1, 1, 0, 1000))
	closing := snapshot(1, 2, 0, 2001)
	closing.closedByPeer()
	a.Read(closing)
	if got := a.totals.Received; got != 2000 {
		t.Errorf("%d received once the peer has closed, of 2000", got)
	}
	a.End(snapshot(1, 3, 0, 2001))
	none := snapshot(2, 3, 0, 0)
	none.closedByPeer()
	a.End(none)
	if got := a.totals; got.Received != 2000 || got.Closed != 2 {
		t.Errorf("%+v, of 2000 received", got)
	}
}
