package text

import (
	"fmt"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// latencyRows adds the rows of the idle and the loaded RTT.
func latencyRows(l *record.Latency, t *table) {
	if l == nil {
		return
	}
	text := SecondsText(l.IdleS) + " idle"
	if l.LoadedS == nil || l.LoadedP95S == nil || l.AddedS == nil {
		t.row("small packets", fmt.Sprintf("%s; too few under load to say more (%s)", text, l.Method))
		return
	}
	text += fmt.Sprintf(", %s under load, %s at 95 %% (%d by %s", SecondsText(*l.LoadedS), SecondsText(*l.LoadedP95S),
		l.LoadedProbes, l.Method)
	if l.Lost > 0 {
		text += fmt.Sprintf(", %d unanswered", l.Lost)
	}
	t.row("small packets", text+")")
	t.row("", latencyWords(l))
}

// latencyWords explains the added time.
func latencyWords(l *record.Latency) string {
	added := SecondsText(*l.AddedS)
	if *l.AddedS < 1e-3 {
		added = "less than 1 ms"
	}
	queue := ""
	if l.QueueBytes != nil {
		queue = fmt.Sprintf(": with a standing queue of %s", units.Size(*l.QueueBytes))
	}
	switch {
	case l.NoCore:
		return "the load adds " + added + ", but the programs waited for a core: this says nothing of queues"
	case l.Separate:
		return "the transfer waits in a queue that other packets do not share: flows are kept apart on the way (fair " +
			"queueing)"
	case l.Bloat == record.NoBloat:
		return "the load adds " + added + ": others hardly notice"
	case l.Bloat == record.SomeBloat:
		return "some bufferbloat: the load adds " + added + " to everybody's round trips" + queue + "; calls and games notice"
	}
	return "bufferbloat: the load adds " + added + " to everybody's round trips" + queue +
		"; a smart queue (fq_codel, cake) at the bottleneck or a lower rate helps"
}
