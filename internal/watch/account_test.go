package watch

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// told is a reading at a time in seconds, with that much acknowledged and received.
func told(cookie uint64, at, acked, received int64) Told {
	return Told{Cookie: cookie, Inode: 7, Sample: transfer.Sample{At: time.Duration(at) * time.Second, Acked: acked + 1,
		Sent: acked, Received: received}}
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
		if got := payloadSent(&c.s); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

func TestAccount(t *testing.T) {
	a := NewAccount()
	a.Read(told(1, 0, 5000, 100)) // older than the watch
	a.Dumped(0)
	a.Read(told(1, 2, 9000, 100))
	a.Read(told(2, 2, 70, 0)) // born since: all of it is ours
	a.Dumped(2 * time.Second)
	if got := a.Totals(); got.Sent != 4070 || got.Received != 0 || got.Opened != 1 {
		t.Errorf("after two dumps: %+v", got)
	}
	a.End(told(3, 3, 12, 34)) // no dump saw it
	end := told(1, 3, 9500, 101)
	end.Inode = 0 // as the kernel's message has it
	if c := a.End(end); !c.Final || !c.Ended || c.Inode != 7 {
		t.Errorf("%+v", c)
	}
	a.Dumped(4 * time.Second) // without 2: once is not gone
	if a.Len() != 1 {
		t.Errorf("%d stand after a dump that missed one", a.Len())
	}
	a.Read(told(2, 6, 80, 0))
	a.Dumped(6 * time.Second)
	a.Dumped(8 * time.Second)
	a.Dumped(10 * time.Second)
	want := Totals{Sent: 4500 + 80 + 12, Received: 1 + 34, Opened: 2, Closed: 2, Unfinished: 1}
	if got := a.Totals(); got != want || a.Len() != 0 {
		t.Errorf("%+v, want %+v", got, want)
	}
	seen := 0
	a.Period(func(c *Connection) { seen++ })
	a.Period(func(c *Connection) { t.Errorf("%d is told again", c.Cookie) })
	if seen != 3 {
		t.Errorf("%d told of 3", seen)
	}
}

// TestAnEndDuringTheFirstDump is nobody's to count: what it carried before the watch is
// not known.
func TestAnEndDuringTheFirstDump(t *testing.T) {
	a := NewAccount()
	if a.End(told(1, 0, 1e9, 0)) != nil {
		t.Error("it was counted")
	}
	a.Dumped(0)
	if got := a.Totals(); got != (Totals{}) {
		t.Errorf("%+v", got)
	}
}

func TestOlderReadingsAndWraps(t *testing.T) {
	a := NewAccount()
	a.Dumped(0)
	first := told(1, 1, 100, 0)
	first.Sample.Retransmitted = 1<<32 - 10
	a.Read(first)
	second := told(1, 3, 300, 0)
	second.Sample.Retransmitted = 5
	c := a.Read(second)
	if c.Sample.Retransmitted != 1<<32+5 {
		t.Errorf("%d segments after a wrap", c.Sample.Retransmitted)
	}
	a.Read(told(1, 2, 200, 0))
	if c.Sent() != 300 {
		t.Errorf("an older reading won: %d", c.Sent())
	}
}

// TestTotalsNeverFall plays a host at random: connections come, move bytes, end with a
// message, or end with the message lost, and dumps miss some.
func TestTotalsNeverFall(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		a := NewAccount()
		type live struct{ sent int64 }
		host := map[uint64]*live{}
		var cookie uint64
		var before Totals
		var told0, finals int64
		a.Dumped(0)
		for at := int64(1); at < 60; at++ {
			for range rng.IntN(5) {
				cookie++
				host[cookie] = &live{}
			}
			for id, l := range host {
				l.sent += rng.Int64N(1000)
				if rng.IntN(4) > 0 {
					continue
				}
				delete(host, id)
				if rng.IntN(5) > 0 {
					a.End(told(id, at, l.sent, 0))
					told0 += l.sent
					finals++
				}
			}
			for id, l := range host {
				if rng.IntN(10) > 0 {
					a.Read(told(id, at, l.sent, 0))
				}
			}
			a.Dumped(time.Duration(at) * time.Second)
			now := a.Totals()
			if now.Sent < before.Sent || now.Opened < before.Opened || now.Closed < before.Closed ||
				now.Unfinished < before.Unfinished {
				t.Fatalf("from %+v to %+v", before, now)
			}
			before = now
			a.Period(func(*Connection) {})
		}
		if before.Closed != finals || before.Sent < told0 {
			t.Fatalf("%d of %d ends, %d of at least %d bytes", before.Closed, finals, before.Sent, told0)
		}
	}
}
