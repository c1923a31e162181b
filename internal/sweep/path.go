package sweep

import (
	"time"

	"github.com/fullpipe-net/fullpipe/internal/model"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/stats"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/units"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// Paths returns the path of each direction by the runs so far.
func (s *Schedule) Paths() []record.SweepPath {
	all := []record.SweepPath{}
	for _, d := range []transfer.Direction{transfer.Up, transfer.Down} {
		p := record.SweepPath{Direction: d}
		controls := map[string]bool{}
		for _, r := range s.runs {
			if s.cells[r.Cell].Direction != d || r.Problem != "" {
				continue
			}
			if rtt := units.Duration(r.RTT); rtt > 0 && (p.RTTMin == 0 || rtt < p.RTTMin) {
				p.RTTMin = rtt
			}
			p.MSSBytes = max(p.MSSBytes, r.MSS)
			controls[r.Congestion] = true
		}
		for name := range controls {
			if len(controls) == 1 {
				p.Congestion = name
			}
		}
		for i, c := range s.cells {
			if c.Direction != d || len(s.logs[i]) == 0 {
				continue
			}
			p.CapacityBps = max(p.CapacityBps, s.mid(i))
		}
		p.AtLeast = !s.filled(&p)
		if p.CapacityBps > 0 {
			p.BDPBytes = model.BDP(p.CapacityBps, time.Duration(p.RTTMin))
			p.KneeSendBytes = s.knee(&p, verdict.SendBuffer,
				func(c record.SweepSetup) int { return c.Send })
			p.KneeReceiveBytes = s.knee(&p, verdict.ReceiverWindow,
				func(c record.SweepSetup) int { return c.Receive })
			all = append(all, p)
		}
	}
	return all
}

// maxLimitedShare is the maximum goodput, as a share of the capacity, of cells that only a buffer limits.
const maxLimitedShare = 0.8

// knee returns the requested size of a buffer whose effective size is the BDP, from the largest
// buffer that limited cells: the effective size of small buffers can be much larger than requested.
// It returns 0 if the buffer limited no cell.
func (s *Schedule) knee(p *record.SweepPath, limiter verdict.Name,
	size func(record.SweepSetup) int) float64 {
	largest := 0
	var sizes []float64 // requested sizes that the BDP would take, by the cells with the largest buffer
	for i, c := range s.cells {
		if c.Direction != p.Direction || len(s.logs[i]) == 0 || size(c) < max(largest, 1) ||
			s.mid(i) > maxLimitedShare*p.CapacityBps {
			continue
		}
		if l, _ := s.Limiter(i); l != limiter {
			continue
		}
		if size(c) > largest {
			largest = size(c)
			sizes = nil
		}
		sizes = append(sizes, float64(largest)*p.CapacityBps/s.mid(i))
	}
	if len(sizes) == 0 {
		return 0
	}
	return stats.Median(sizes)
}

// filled reports whether the path's rate limited one of the cells within 5 % of the best: a full link or a policer. In
// other cells larger windows or another sender might carry more.
func (s *Schedule) filled(p *record.SweepPath) bool {
	for i, c := range s.cells {
		if c.Direction != p.Direction || len(s.logs[i]) == 0 || s.mid(i) < 0.95*p.CapacityBps {
			continue
		}
		if l, subtype := s.Limiter(i); l == verdict.Bottleneck || subtype == verdict.Policer {
			return true
		}
	}
	return false
}

// Limiter returns the limiter and subtype of more than half of a cell's runs, or mixed.
func (s *Schedule) Limiter(cell int) (verdict.Name, string) {
	type vote struct {
		name    verdict.Name
		subtype string
	}
	votes := map[vote]int{}
	all := 0
	for _, r := range s.runs {
		if r.Cell == cell && r.Problem == "" {
			votes[vote{r.Limiter, r.Subtype}]++
			all++
		}
	}
	for v, n := range votes {
		if 2*n > all {
			return v.name, v.subtype
		}
	}
	return verdict.Mixed, ""
}
