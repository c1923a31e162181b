package report

import (
	"maps"
	"math"
	"reflect"
	"slices"

	"github.com/fullpipe-net/fullpipe/internal/changepoint"
	"github.com/fullpipe-net/fullpipe/internal/record"
)

// Changes finds changes in runs, the oldest first. Failed runs and retests do not count.
func Changes(h record.Header, runs []record.HistoryRun) *record.Changes {
	type key struct{ path, direction string }
	type one struct {
		run    *record.HistoryRun
		figure *record.Figure
	}
	series := map[key][]one{}
	order := []key{}
	for i := range runs {
		r := &runs[i]
		if r.Outcome != record.Done || r.Origin == record.Retest {
			continue
		}
		for j := range r.Directions {
			if f := &r.Directions[j]; f.GoodputBps != nil {
				k := key{r.PathKey, f.Direction}
				if series[k] == nil {
					order = append(order, k)
				}
				series[k] = append(series[k], one{r, f})
			}
		}
	}
	out := &record.Changes{Header: h, Changes: []record.PathChange{}}
	for _, k := range order {
		all := series[k]
		var values []float64
		var limiters []string
		for _, o := range all {
			values = append(values, *o.figure.GoodputBps)
			limiters = append(limiters, o.figure.Limiter)
		}
		found := func(at int, metric string) record.PathChange {
			return record.PathChange{PathKey: k.path, Far: all[at].run.Far, Direction: k.direction,
				At:     all[at].run.StartedAt,
				RunID:  all[at].run.ID,
				Metric: metric, Confidence: "high"}
		}
		for _, c := range changepoint.All(values) {
			p := found(c.At, "goodput")
			p.BeforeBps = &c.Before
			p.AfterBps = &c.After
			p.P = &c.P
			p.BeforeLimiter = mostOften(limiters[max(c.At-near, 0):max(c.At, 1)])
			p.AfterLimiter = mostOften(limiters[c.At:min(c.At+near, len(limiters))])
			if c.LowConfidence {
				p.Confidence = "low"
			}
			out.Changes = append(out.Changes, p)
		}
		out.Changes = append(out.Changes, roundTrips(len(all), func(i int) *float64 { return all[i].figure.RTTMinS },
			found)...)
		for _, at := range changepoint.Words(limiters) {
			p := found(at, "limiter")
			p.BeforeLimiter = limiters[at-1]
			p.AfterLimiter = limiters[at]
			if !slices.ContainsFunc(out.Changes, func(o record.PathChange) bool { // it was said with the level
				return o.RunID == p.RunID && o.Direction == p.Direction && o.BeforeLimiter == p.BeforeLimiter &&
					o.AfterLimiter == p.AfterLimiter
			}) {
				out.Changes = append(out.Changes, p)
			}
		}
	}
	slices.SortStableFunc(out.Changes, func(a, b record.PathChange) int { return a.At.Compare(b.At) })
	return out
}

// near is the number of results on either side of a change that decide on the path's limiter there.
const near = 5

// mostOften returns the most frequent word; of several the first one.
func mostOften(words []string) (most string) {
	counts := map[string]int{}
	for _, w := range words {
		counts[w]++
	}
	for _, w := range words {
		if counts[w] > counts[most] {
			most = w
		}
	}
	return most
}

// leastRTT is by how much, in seconds, a path's shortest round trips differ at least where
// that is said: less is a host's own work.
const leastRTT = 0.5e-3

// roundTrips finds where the shortest round trip of a series' results shifted: another way.
func roundTrips(n int, rtt func(i int) *float64,
	found func(at int, metric string) record.PathChange) (all []record.PathChange) {
	var values []float64
	var of []int // the result that each is of
	for i := range n {
		if v := rtt(i); v != nil {
			values = append(values, *v)
			of = append(of, i)
		}
	}
	for _, c := range changepoint.All(values) {
		if math.Abs(c.After-c.Before) < leastRTT {
			continue
		}
		p := found(of[c.At], "rtt")
		p.BeforeRTTMinS = &c.Before
		p.AfterRTTMinS = &c.After
		p.P = &c.P
		if c.LowConfidence {
			p.Confidence = "low"
		}
		all = append(all, p)
	}
	return all
}

// Difference compares two records.
func Difference(h record.Header, first, second record.Document) *record.Difference {
	a := record.Summarize(first)
	b := record.Summarize(second)
	out := &record.Difference{Header: h, First: differenceRun(first, a), Second: differenceRun(second, b),
		Directions: []record.DifferenceDirection{},
		Differ:     []record.DifferentValue{}}
	for _, f := range a.Figures {
		d := record.DifferenceDirection{Direction: f.Direction, First: figureOf(a.Figures, f.Direction),
			Second: figureOf(b.Figures, f.Direction)}
		if s := d.Second; s != nil && f.GoodputBps != nil && s.GoodputBps != nil && *f.GoodputBps > 0 {
			d.Factor = new(*s.GoodputBps / *f.GoodputBps)
		}
		out.Directions = append(out.Directions, d)
	}
	for _, s := range b.Figures {
		if figureOf(a.Figures, s.Direction) == nil {
			out.Directions = append(out.Directions, record.DifferenceDirection{Direction: s.Direction,
				Second: figureOf(b.Figures, s.Direction)})
		}
	}
	if x, ok := first.(*record.Sweep); ok {
		if y, ok := second.(*record.Sweep); ok {
			out.Cells = sweepCells(x, y)
		}
	}
	x := facts(first)
	y := facts(second)
	names := slices.Sorted(maps.Keys(x))
	for name := range y {
		if _, there := x[name]; !there {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		v := x[name]
		w := y[name]
		if v != w {
			one := record.DifferentValue{Name: name}
			if v != "" {
				one.First = &v
			}
			if w != "" {
				one.Second = &w
			}
			out.Differ = append(out.Differ, one)
		}
	}
	return out
}

// figureOf returns a direction's figure as a difference shows it; nil where there is none.
func figureOf(all []record.Figure, direction string) *record.Figure {
	i := slices.IndexFunc(all, func(f record.Figure) bool { return f.Direction == direction })
	if i < 0 {
		return nil
	}
	f := all[i]
	f.RetransmittedRatio = nil
	return &f
}

func differenceRun(doc record.Document, s record.Summary) record.DifferenceRun {
	r := record.DifferenceRun{Far: s.Far, Kind: s.Kind, StartedAt: doc.Head().StartedAt}
	if e := doc.Head().Envelope; e != nil {
		r.ID = e.ID
	}
	return r
}

// facts returns the circumstances of a record by name.
func facts(doc record.Document) map[string]string {
	h := doc.Head()
	all := map[string]string{"version": h.Version}
	if e := h.Envelope; e != nil {
		maps.Copy(all, e.InForce)
		for name, value := range e.Labels {
			all["label "+name] = value
		}
	}
	switch m := doc.(type) {
	case *record.Measure:
		for i := range m.Directions {
			directionFacts(all, &m.Directions[i])
		}
	case *record.MeasureRequests:
		requestFacts(all, m)
	}
	ends := map[string]string{"Near": "near", "Far": "far"}
	if v := reflect.ValueOf(doc).Elem(); v.Kind() == reflect.Struct {
		for field, end := range ends {
			if host, ok := fieldOf(v, field).(*record.Host); ok && host != nil {
				all[end+" kernel"] = host.Kernel
				all[end+" congestion"] = host.Congestion
			}
		}
	}
	return all
}

func fieldOf(v reflect.Value, name string) any {
	if f := v.FieldByName(name); f.IsValid() && f.CanInterface() {
		return f.Interface()
	}
	return nil
}
