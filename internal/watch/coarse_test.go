package watch

import (
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// TestLook_ReportsStuckConnections checks that a connection without progress is reported while it has data to transfer.
func TestLook_ReportsStuckConnections(t *testing.T) {
	second := time.Second
	snapAt := func(at time.Duration) Snapshot {
		return Snapshot{Cookie: 1, Established: true, SendBuffer: 100_000, ReceiveBuffer: 100_000,
			Sample: transfer.Sample{At: at, Have: clocks | transfer.HaveReceiveWnd | transfer.HaveAcked, Busy: at}}
	}
	look := func(change func(*Snapshot)) []Observed {
		a := NewTracker()
		for i := range 6 {
			one := snapAt(time.Duration(i) * second / 2)
			change(&one)
			a.Read(one)
			if i == 0 {
				a.Period(func(*Connection) {})
			}
		}
		v := View{Length: 2 * second}
		a.look(&v, v.Length, &Config{}, func(*Connection) Owner { return Owner{} })
		return v.Connections
	}
	if seen := look(func(t *Snapshot) { t.Sample.Busy = 0 }); len(seen) != 0 {
		t.Errorf("an idle one: %+v", seen)
	}
	shut := look(func(t *Snapshot) { t.Unacked, t.Sample.NotSent, t.Sample.RwndLimited = 5000, 5000, t.Sample.At })
	if len(shut) != 1 || shut[0].Flows[0].Verdict.Limiter != verdict.ReceiverApplication {
		t.Errorf("a window that is shut: %+v", shut)
	}
	unread := look(func(t *Snapshot) { t.Unread, t.Sample.Busy = 90_000, 0 })
	if len(unread) != 1 || unread[0].Flows[0].Direction != transfer.Down ||
		unread[0].Flows[0].Verdict.Limiter != verdict.ReceiverApplication {
		t.Errorf("unread data: %+v", unread)
	}
}

// The clocks of a connection that began in the period began at 0.
func TestOneThatBeganIsJudged(t *testing.T) {
	a := NewTracker()
	a.EndDump(0)
	snapAt := func(at, busy time.Duration, acked int64) Snapshot {
		return Snapshot{Cookie: 1, Established: true, Sample: transfer.Sample{At: at, Have: clocks | transfer.HaveAcked,
			Busy: busy, Acked: acked, Sent: acked}}
	}
	a.Read(snapAt(time.Second, 0, 0))
	c := a.Read(snapAt(3*time.Second, 200*time.Millisecond, 100_000))
	if v := c.flow(transfer.Up, 0).Verdict; v.Limiter != verdict.Application {
		t.Errorf("%s of %v: %v", v.Limiter, v.Shares, v.Evidence)
	}
}

// clocks are the fields of a sample that the judge of counters reads.
const clocks = transfer.HaveLimits | transfer.HaveNotSent | transfer.HaveSendWnd
