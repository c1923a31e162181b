package watch

import (
	"net/netip"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/waits"
)

// programs samples what the programs of connections wait for.
type programs struct {
	watch    *waits.Watch
	max      int // 0: none is sampled
	followed map[int]bool
	names    *pseudonyms // nil: addresses are shown
}

func newPrograms(cfg *Config, names *pseudonyms) *programs {
	return &programs{watch: waits.Open(), max: cfg.Programs, followed: map[int]bool{}, names: names}
}

func (p *programs) follow(pid int) {
	if pid != 0 && len(p.followed) < p.max && !p.followed[pid] {
		p.followed[pid] = true
		p.watch.Follow(pid)
	}
}

// look adds what programs waited for to the flows that they limit. In a watch by periods, those
// programs are followed in the next one.
func (p *programs) look(v *View, cumulative bool) {
	taken := map[int][]waits.Wait{}
	for pid := range p.followed {
		taken[pid] = p.hidden(p.watch.Take(pid))
	}
	if !cumulative {
		p.followed = map[int]bool{}
	}
	for i := range v.Connections {
		c := &v.Connections[i]
		for j := range c.Flows {
			f := &c.Flows[j]
			if l := f.Verdict.Limiter; l != verdict.Application && l != verdict.ReceiverApplication {
				continue
			}
			f.Waits = taken[c.Owner.PID]
			if !cumulative {
				p.follow(c.Owner.PID)
			}
		}
	}
	p.watch.Keep(p.followed)
}

// hidden replaces the addresses of waits, and leaves the names of hosts out, where the watch is
// anonymous.
func (p *programs) hidden(all []waits.Wait) []waits.Wait {
	if p.names == nil {
		return all
	}
	for i := range all {
		w := &all[i]
		far, err := netip.ParseAddrPort(w.Object)
		switch {
		case err == nil:
			w.Object = p.names.port(far).String()
		case w.Kind == waits.Disk && !strings.HasPrefix(w.Object, "/dev/"): // a file server's
			w.Object = ""
		}
	}
	return all
}
