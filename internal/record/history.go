package record

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/change"
)

// History is the object that `history --json` prints, the oldest run first.
type History struct {
	Header
	Runs []HistoryRun `json:"runs"`
}

// HistoryRun is one kept record in short.
type HistoryRun struct {
	ID         string            `json:"id"`
	PathKey    string            `json:"path_key"`
	Far        string            `json:"peer"`
	Kind       string            `json:"kind"`
	StartedAt  time.Time         `json:"started_at"`
	Origin     Origin            `json:"origin"`
	Outcome    Outcome           `json:"outcome"`
	Labels     map[string]string `json:"labels,omitempty"`
	Directions []HistoryFigure   `json:"directions"`
}

// HistoryFigure is one direction's result.
type HistoryFigure struct {
	Direction  string   `json:"direction"`
	GoodputBps *float64 `json:"goodput_bps,omitempty"`
	RTTMinS    *float64 `json:"rtt_min_s,omitempty"`
	Limiter    string   `json:"limiter,omitempty"`
}

// Changes is the object that `history changes --json` prints.
type Changes struct {
	Header
	Changes []PathChange `json:"changes"`
}

// PathChange is one shift of a path's level, or of what limits it.
type PathChange struct {
	PathKey       string    `json:"path_key"`
	Far           string    `json:"peer"`
	Direction     string    `json:"direction"`
	At            time.Time `json:"at"`
	RunID         string    `json:"run_id"` // the first of what is
	Metric        string    `json:"metric"` // goodput or limiter
	BeforeBps     *float64  `json:"before_bps,omitempty"`
	AfterBps      *float64  `json:"after_bps,omitempty"`
	P             *float64  `json:"p,omitempty"`
	BeforeLimiter string    `json:"before_limiter,omitempty"`
	AfterLimiter  string    `json:"after_limiter,omitempty"`
	Confidence    string    `json:"confidence"`
}

// NewChanges looks for changes in runs, the oldest first. What failed and what re-tested a
// suspicion does not count.
func NewChanges(h Header, runs []HistoryRun) *Changes {
	type key struct{ path, direction string }
	type one struct {
		run    *HistoryRun
		figure *HistoryFigure
	}
	series, order := map[key][]one{}, []key{}
	for i := range runs {
		r := &runs[i]
		if r.Outcome != Done || r.Origin == Retest {
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
	out := &Changes{Header: h, Changes: []PathChange{}}
	for _, k := range order {
		all := series[k]
		var values []float64
		var limiters []string
		for _, o := range all {
			values, limiters = append(values, *o.figure.GoodputBps), append(limiters, o.figure.Limiter)
		}
		found := func(at int, metric string) PathChange {
			return PathChange{PathKey: k.path, Far: all[at].run.Far, Direction: k.direction, At: all[at].run.StartedAt,
				RunID:  all[at].run.ID,
				Metric: metric, Confidence: "high"}
		}
		for _, c := range change.All(values) {
			p := found(c.At, "goodput")
			p.BeforeBps, p.AfterBps, p.P = &c.Before, &c.After, &c.P
			if p.BeforeLimiter, p.AfterLimiter = limiters[max(c.At-1, 0)], limiters[c.At]; c.LowConfidence {
				p.Confidence = "low"
			}
			out.Changes = append(out.Changes, p)
		}
		for _, at := range change.Words(limiters) {
			p := found(at, "limiter")
			p.BeforeLimiter, p.AfterLimiter = limiters[at-1], limiters[at]
			out.Changes = append(out.Changes, p)
		}
	}
	slices.SortStableFunc(out.Changes, func(a, b PathChange) int { return a.At.Compare(b.At) })
	return out
}

// Difference is the object that `history compare --json` prints.
type Difference struct {
	Header
	First      DifferenceRun         `json:"first"`
	Second     DifferenceRun         `json:"second"`
	Directions []DifferenceDirection `json:"directions"`
	// Differ are settings in force, program and labels that are not the same.
	Differ []DifferentValue `json:"differ"`
}

// DifferenceRun names one of the two.
type DifferenceRun struct {
	ID        string    `json:"id,omitempty"`
	Far       string    `json:"peer"`
	Kind      string    `json:"kind"`
	StartedAt time.Time `json:"started_at"`
}

// DifferenceDirection is one direction of both; an absent figure was not measured.
type DifferenceDirection struct {
	Direction string         `json:"direction"`
	First     *HistoryFigure `json:"first,omitempty"`
	Second    *HistoryFigure `json:"second,omitempty"`
	Factor    *float64       `json:"second_over_first,omitempty"`
}

// DifferentValue is something that is not the same in both; absent where it is not known.
type DifferentValue struct {
	Name   string  `json:"name"`
	First  *string `json:"first,omitempty"`
	Second *string `json:"second,omitempty"`
}

// NewDifference puts two records beside each other.
func NewDifference(h Header, first, second Document) *Difference {
	a, b := Summarize(first), Summarize(second)
	out := &Difference{Header: h, First: differenceRun(first, a), Second: differenceRun(second, b),
		Directions: []DifferenceDirection{},
		Differ:     []DifferentValue{}}
	for _, f := range a.Figures {
		d := DifferenceDirection{Direction: f.Direction, First: &HistoryFigure{f.Direction, f.GoodputBps, f.RTTMinS,
			f.Limiter}}
		for _, s := range b.Figures {
			if s.Direction == f.Direction {
				d.Second = &HistoryFigure{s.Direction, s.GoodputBps, s.RTTMinS, s.Limiter}
				if f.GoodputBps != nil && s.GoodputBps != nil && *f.GoodputBps > 0 {
					factor := *s.GoodputBps / *f.GoodputBps
					d.Factor = &factor
				}
			}
		}
		out.Directions = append(out.Directions, d)
	}
	for _, s := range b.Figures {
		if !slices.ContainsFunc(a.Figures, func(f Figure) bool { return f.Direction == s.Direction }) {
			out.Directions = append(out.Directions, DifferenceDirection{Direction: s.Direction,
				Second: &HistoryFigure{s.Direction, s.GoodputBps, s.RTTMinS, s.Limiter}})
		}
	}
	x, y := facts(first), facts(second)
	names := slices.Sorted(maps.Keys(x))
	for name := range y {
		if _, there := x[name]; !there {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		v, w := x[name], y[name]
		if v != w {
			one := DifferentValue{Name: name}
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

func differenceRun(doc Document, s Summary) DifferenceRun {
	r := DifferenceRun{Far: s.Far, Kind: s.Kind, StartedAt: doc.Head().StartedAt}
	if e := doc.Head().Envelope; e != nil {
		r.ID = e.ID
	}
	return r
}

// facts are what a record says of the circumstances.
func facts(doc Document) map[string]string {
	h := doc.Head()
	all := map[string]string{"version": h.Version}
	if e := h.Envelope; e != nil {
		maps.Copy(all, e.InForce)
		for name, value := range e.Labels {
			all["label "+name] = value
		}
	}
	ends := map[string]string{"Near": "near", "Far": "far"}
	if v := reflect.ValueOf(doc).Elem(); v.Kind() == reflect.Struct {
		for field, end := range ends {
			if host, ok := fieldOf(v, field).(*Host); ok && host != nil {
				all[end+" kernel"], all[end+" congestion"] = host.Kernel, host.Congestion
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

// Split takes the samples out of a document that holds them, and leaves every other byte's
// meaning as it came.
func Split(text []byte) (doc, samples []byte, err error) {
	if err := checkSize(text); err != nil {
		return nil, nil, err
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(text, &object); err != nil {
		return nil, nil, fmt.Errorf("no JSON object: %w", err)
	}
	samples = object["samples"]
	if samples == nil {
		return text, nil, nil
	}
	decoded, err := Decode(text, nil)
	if err != nil {
		return nil, nil, err
	}
	if doc, err = Encode(decoded); err != nil {
		return nil, nil, err
	}
	return doc, samples, nil
}
