package watch

import (
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/report"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/waits"
	"github.com/fullpipe-net/fullpipe/internal/watch"
)

// maxPrograms is the maximum number of processes that are sampled.
const maxPrograms = 4

// programs are the processes of a target's connections, sampled while it is watched.
type programs map[int]*waits.Watch

// samplePrograms samples the processes that a watch finds for the target of why; "" is none.
func samplePrograms(target string, cfg *watch.Config) programs {
	p := programs{}
	if target != "" {
		cfg.Found = p.start
	}
	return p
}

func (p programs) start(pid int) {
	if p[pid] == nil && len(p) < maxPrograms {
		p[pid] = waits.Start(pid)
	}
}

func (p programs) close() {
	for _, w := range p {
		w.Close()
	}
}

// add adds what the programs waited for to the directions that they limit.
func (p programs) add(doc *record.Watch) {
	for i := range doc.Connections {
		c := &doc.Connections[i]
		w := p[c.PID]
		if w == nil {
			continue
		}
		for j := range c.Directions {
			d := &c.Directions[j]
			if d.Limiter == verdict.Application || d.Limiter == verdict.ReceiverApplication {
				report.AddWaits(d, w.Waits())
			}
		}
	}
}
