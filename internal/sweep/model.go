package sweep

import (
	"maps"
	"math"
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/model"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/stats"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/units"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// Prediction is the model's goodput and limiter of a cell that was not measured.
type Prediction struct {
	stats.Interval // bit/s, 95 %
	Limiter        verdict.Name
}

const (
	// below and above are the range around the knee, as shares of it, in which the model makes no prediction: there
	// both the window and the link limit.
	below, above = 0.8, 1.5
	// fewestAlike is the minimum of pairs of cells with the same limiting buffer for a prediction. The model expects the
	// same goodput in both cells of a pair.
	fewestAlike = 3
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
			p.KneeSendBytes, p.KneeReceiveBytes = s.knees(&p)
			all = append(all, p)
		}
	}
	return all
}

// knees returns the buffer sizes at which the model, scaled to the measured cells, reaches the BDP.
func (s *Schedule) knees(p *record.SweepPath) (send, receive float64) {
	all := map[verdict.Name]*cellGroup{verdict.SendBuffer: {limiter: verdict.SendBuffer},
		verdict.ReceiverWindow: {limiter: verdict.ReceiverWindow}}
	for k, a := range s.groupCells(p, plain) {
		if to := all[k.limiter]; to != nil {
			for i, c := range a.cells {
				to.add(c, a.ratios[i])
			}
		}
	}
	for l, to := range map[verdict.Name]*float64{verdict.SendBuffer: &send, verdict.ReceiverWindow: &receive} {
		if len(all[l].cells) > 0 {
			*to = p.BDPBytes / all[l].factor()
		}
	}
	return send, receive
}

// plain is the model with effective buffers equal to the requested ones.
func plain(kind) func(verdict.Name) float64 { return func(verdict.Name) float64 { return 1 } }

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

// kind is a group of cells that one rule of the model covers: goodput proportional to a buffer, or a full path.
type kind struct {
	direction  transfer.Direction
	congestion string
	write      int
	limiter    verdict.Name
}

// expect returns the model's goodput of a cell without measured cells of its kind: the smaller of both buffers per RTT
// (model.Rate), or the path's capacity. ok is false near the knee and for automatic buffers.
func expect(p *record.SweepPath, c record.SweepSetup,
	scale func(verdict.Name) float64) (l verdict.Name, bps float64, ok bool) {
	if c.Send == 0 || c.Receive == 0 || p.RTTMin <= 0 || p.CapacityBps <= 0 {
		return "", 0, false
	}
	send := float64(c.Send) * scale(verdict.SendBuffer)
	receive := float64(c.Receive) * scale(verdict.ReceiverWindow)
	switch {
	case min(send, receive) > above*p.BDPBytes:
		return verdict.Bottleneck, p.CapacityBps, true
	case min(send, receive) > below*p.BDPBytes:
		return "", 0, false
	case send < below*receive:
		return verdict.SendBuffer, model.Rate(c.Send, time.Duration(p.RTTMin)), true
	case receive < below*send:
		return verdict.ReceiverWindow, model.Rate(c.Receive, time.Duration(p.RTTMin)), true
	}
	return "", 0, false // the smaller effective buffer depends on the systems' accounting
}

// Sure returns the cells without a good run whose goodput the model predicts as precisely as a measurement. By the
// model the other buffer does not matter. Several measured cells confirm that, and one of them has the same limiting
// buffer. The cell is not near the knee.
func (s *Schedule) Sure() map[int]Prediction {
	sure := map[int]Prediction{}
	if s.rules.Precision == 0 {
		return sure
	}
	for _, path := range s.Paths() {
		factors := map[kind]float64{}
		for k, g := range s.groupCells(&path, plain) {
			if k.limiter != verdict.Bottleneck {
				factors[k] = g.factor()
			}
		}
		scaled := func(k kind) func(verdict.Name) float64 {
			return func(l verdict.Name) float64 {
				k.limiter = l
				if f, known := factors[k]; known {
					return f
				}
				return 1
			}
		}
		groups := s.groupCells(&path, scaled)
		maps.DeleteFunc(groups, func(_ kind, a *cellGroup) bool { return !a.settle() })
		for i, c := range s.cells {
			if c.Direction != path.Direction || len(s.logs[i]) > 0 || s.refused[i] != "" || s.failures[i] > 0 {
				continue
			}
			k := kind{c.Direction, c.Congestion, c.Write, ""}
			l, bps, ok := expect(&path, c, scaled(k))
			k.limiter = l
			if !ok || groups[k] == nil {
				continue
			}
			if p, ok := groups[k].predict(c, bps); ok && p.Within(s.rules.Precision) {
				sure[i] = Prediction{p, l}
			}
		}
	}
	return sure
}

// cellGroup is the set of measured cells of one kind.
type cellGroup struct {
	limiter verdict.Name
	cells   []record.SweepSetup
	ratios  []float64         // logarithms of the goodput over the model's
	rows    map[int][]float64 // ratios by the buffer that limits; one row on a full path
	middles map[int]float64   // of the rows
	noise   stats.Noise       // how much the cells of a row differ
	student float64
}

// groupCells returns the measured cells of a path by kind.
func (s *Schedule) groupCells(path *record.SweepPath,
	scaled func(kind) func(verdict.Name) float64) map[kind]*cellGroup {
	groups := map[kind]*cellGroup{}
	for i, c := range s.cells {
		if c.Direction != path.Direction || len(s.logs[i]) == 0 {
			continue
		}
		k := kind{c.Direction, c.Congestion, c.Write, ""}
		l, bps, ok := expect(path, c, scaled(k))
		if !ok {
			continue
		}
		k.limiter = l
		if groups[k] == nil {
			groups[k] = &cellGroup{limiter: l}
		}
		groups[k].add(c, stats.Middle(s.logs[i])-math.Log(bps))
	}
	return groups
}

// factor returns the effective size of a requested buffer as a factor, from the largest buffer that still limits. That
// one is nearest to the knee; the effective size of small buffers can be much larger than requested.
func (a *cellGroup) factor() float64 {
	return math.Exp(stats.Middle(a.rows[slices.Max(slices.Collect(maps.Keys(a.rows)))]))
}

func (a *cellGroup) add(c record.SweepSetup, ratio float64) {
	if a.rows == nil {
		a.rows = map[int][]float64{}
		a.middles = map[int]float64{}
	}
	a.cells = append(a.cells, c)
	a.ratios = append(a.ratios, ratio)
	a.rows[a.row(c)] = append(a.rows[a.row(c)], ratio)
}

// row returns the size of the buffer that limits a cell; 0 on a full path.
func (a *cellGroup) row(c record.SweepSetup) int {
	switch a.limiter {
	case verdict.SendBuffer:
		return c.Send
	case verdict.ReceiverWindow:
		return c.Receive
	}
	return 0
}

// near returns the ratios of the measured cells with the same limiter as c: the same send buffer, the same receive
// buffer, or on a full path all cells if there are some on both sides. The model does not extrapolate.
func (a *cellGroup) near(c record.SweepSetup) []float64 {
	row := a.rows[a.row(c)]
	if a.limiter != verdict.Bottleneck {
		return row
	}
	var under, over bool
	for _, m := range a.cells {
		under = under || m.Send <= c.Send && m.Receive <= c.Receive
		over = over || m.Send >= c.Send && m.Receive >= c.Receive
		if under && over {
			return row
		}
	}
	return nil
}

// settle estimates how much cells with the same limiting buffer differ, without outliers. It returns false for too few
// cells.
func (a *cellGroup) settle() bool {
	const least = 0.004 // the minimum standard deviation for few values
	var rows [][]float64
	for _, row := range slices.Sorted(maps.Keys(a.rows)) { // in order, so that the sums are reproducible
		rows = append(rows, a.rows[row])
		a.middles[row] = stats.Middle(a.rows[row])
	}
	a.noise = stats.Pool(stats.Noise{}, rows...)
	a.noise.Dev = math.Max(a.noise.Dev, least)
	if a.noise.DOF < fewestAlike {
		return false
	}
	a.student = stats.Student(0.975, a.noise.DOF)
	return true
}

// predict returns the prediction interval (Student's t) for one more cell near the measured ones.
func (a *cellGroup) predict(c record.SweepSetup, bps float64) (stats.Interval, bool) {
	near := a.near(c)
	if len(near) == 0 {
		return stats.Interval{}, false
	}
	mean := a.middles[a.row(c)]
	half := a.student * a.noise.Dev * math.Sqrt(1+1/float64(len(near)))
	return stats.Interval{Low: bps * math.Exp(mean-half), Mid: bps * math.Exp(mean), High: bps * math.Exp(mean+half)}, true
}
