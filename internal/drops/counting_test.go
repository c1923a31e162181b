package drops

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/lost"
)

// TestCounting_Moves plays snapshot of two counters: the transfer's clock begins 100 ms late.
func TestCounting_Moves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		queue := counterKey{name: "tbf dropped", device: "near"}
		backlog := counterKey{name: "softnet dropped"}
		snap := func(a, b uint64) snapshot {
			return snapshot{queue: {Counter: lost.Qdisc, qdisc: "tbf", packets: a},
				backlog: {Counter: lost.CPUBacklog, packets: b}}
		}
		c := newCounting(snap(10, 5))
		time.Sleep(300 * time.Millisecond)
		c.take(snap(12, 5))
		c.Running(200 * time.Millisecond)
		time.Sleep(100 * time.Millisecond)
		c.after = snap(15, 6)
		c.take(c.after)
		all := c.Moved(lost.TCP, true)
		if len(all) != 1 || all[0].Packets != 5 || all[0].Qdisc != "tbf" || all[0].Place != "queue" {
			t.Fatalf("%+v", all)
		}
		m := all[0].Moves
		if len(m) != 2 || m[0].At != 200*time.Millisecond || m[0].Packets != 2 || m[1].At != 300*time.Millisecond ||
			m[1].Packets != 3 {
			t.Errorf("%+v", m)
		}
		if received := c.Moved(lost.TCP, false); len(received) != 1 || received[0].Place != "backlog" {
			t.Errorf("received: %+v", received)
		}
	})
	var none *Counting
	none.Stop()
	none.Running(time.Second)
	if none.Moved(lost.TCP, true) != nil {
		t.Error("a nil Counting has counters")
	}
}
