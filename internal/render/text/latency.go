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
	probes := fmt.Sprintf("%s by %s", count(l.LoadedProbes, "probe"), l.Method)
	if l.Lost > 0 {
		probes = fmt.Sprintf("%d of %d probes by %s were lost", l.Lost, l.LoadedProbes+l.Lost, l.Method)
	}
	t.row("small packets", fmt.Sprintf("%s, %s under load, %s at 95 %% (%s)", text, SecondsText(*l.LoadedS),
		SecondsText(*l.LoadedP95S), probes))
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
	case l.Bloat == record.NoBloat && *l.LoadedP95S-l.IdleS >= record.SomeBloatFrom.Seconds():
		return fmt.Sprintf("the load adds %s in the median, and %s or more for 1 packet in 20",
			added, SecondsText(*l.LoadedP95S-l.IdleS))
	case l.Bloat == record.NoBloat:
		return "the load adds " + added + ": no problem for calls and games"
	case l.Bloat == record.SomeBloat:
		return "some bufferbloat: the load adds " + added + " to everybody's round trips" + queue + "; calls and games notice"
	}
	return "bufferbloat: the load adds " + added + " to everybody's round trips" + queue +
		"; a smart queue (fq_codel, cake) at the bottleneck or a lower rate helps"
}
