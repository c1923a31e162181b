package watch

import (
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// TestShortageOfMemoryMakesLessSure: a verdict on the time in which this host's TCP was short of memory is
// less sure and says why, of samples and of clocks alone; one on the time after that is not.
func TestShortageOfMemoryMakesLessSure(t *testing.T) {
	const second = time.Second
	a := NewTracker()
	a.shortage = &shortage{}
	for at := time.Duration(0); at <= 6*second; at += shortageEvery {
		a.shortage.note(at >= second && at < 2*second || at == 3*second, at)
	}
	verdictAt := func(from time.Duration) verdict.Verdict {
		to := transfer.Sample{At: from + 2*second, Have: clocks, Busy: 2 * second, SndbufLimited: 1700 * time.Millisecond,
			NotSent: 1e6, SendWnd: 1e5}
		c := &Connection{Snapshot: Snapshot{Sample: to, Established: true}, moves: &moves{mark: counters{At: from,
			Have: to.Have}}}
		c.Sample.Acked, c.Sample.Sent = 1<<20, 1<<20
		return a.flow(c, transfer.Up).Verdict
	}
	short, well := verdictAt(0), verdictAt(4*second)
	if well.Limiter != verdict.SendBuffer || well.Confidence != verdict.Medium || well.Disturbed() {
		t.Errorf("without: %s, %s", well.Limiter, well.Confidence)
	}
	if short.Limiter != verdict.SendBuffer || short.Confidence != verdict.Low || !short.Disturbed() {
		t.Errorf("with: %s, %s, %v", short.Limiter, short.Confidence, short.Evidence)
	}
	for _, c := range []struct {
		from, to time.Duration
		want     transfer.MemoryPressure
	}{
		{0, 6 * second, transfer.MemoryPressure{Times: 2, Time: 750 * time.Millisecond}},
		{1500 * time.Millisecond, 2 * second, transfer.MemoryPressure{Times: 1, Time: 250 * time.Millisecond}},
		{3 * second, 6 * second, transfer.MemoryPressure{Times: 1}},
	} {
		if m := a.shortage.between(c.from, c.to); m == nil || *m != c.want {
			t.Errorf("%v to %v: %+v", c.from, c.to, m)
		}
	}
	for at := range 2 * maxSpells {
		a.shortage.note(at%2 == 0, time.Duration(at)*second)
		a.shortage.note(at%2 == 1, time.Duration(at)*second)
	}
	if n := len(a.shortage.spells); n > maxSpells {
		t.Errorf("%d spells are kept", n)
	}
}
