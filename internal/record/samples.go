package record

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/fullpipe-net/fullpipe/internal/flow"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// Samples are the data of a document's curves. They are stored apart from the document, which is complete without
// them.
type Samples struct {
	Series []Series `json:"series"`
}

// Series is one curve, or ranges over time.
type Series struct {
	// Of is the place of the object in the document that it belongs to, as a JSON
	// pointer: "/connections/0/directions/1".
	Of   string `json:"of"`
	Name string `json:"name"`
	// AtNs are times since the object's beginning, Values the values then: bytes, bit/s or nanoseconds. Ends are the
	// upper ends of ranges, Limiters name bands of time.
	AtNs     deltas   `json:"at_ns"`
	Values   deltas   `json:"values"`
	Ends     deltas   `json:"ends,omitempty"`
	Limiters []string `json:"limiters,omitempty"`
}

const (
	// MostPoints bounds one curve, MostSampleBytes all of a document as they are stored.
	MostPoints      = 512
	MostSampleBytes = 256 << 10
	mostSeries      = 512
	bytesAPoint     = 24 // of JSON, with room: two or three differences
)

// deltas are written as differences, which are short.
type deltas []int64

// MarshalJSON writes each value as its difference to the one before.
func (d deltas) MarshalJSON() ([]byte, error) {
	out := []byte{'['}
	var before int64
	for i, v := range d {
		if i > 0 {
			out = append(out, ',')
		}
		out = strconv.AppendInt(out, v-before, 10)
		before = v
	}
	return append(out, ']'), nil
}

// UnmarshalJSON adds the differences up.
func (d *deltas) UnmarshalJSON(text []byte) error {
	var differences []int64
	if err := json.Unmarshal(text, &differences); err != nil {
		return err
	}
	var sum int64
	for i := range differences {
		sum += differences[i]
		differences[i] = sum
	}
	*d = differences
	return nil
}

// Band is a span of time and its limiter, in nanoseconds since the beginning.
type Band struct {
	StartNs, EndNs int64
	Limiter        verdict.Name
}

// curve is where a document keeps one curve; one of the three is not nil.
type curve struct {
	of, name string
	points   *[]flow.Point
	marks    *[]flow.Mark
	bands    *[]Band
}

// sampled is a document with curves.
type sampled interface{ curves() []curve }

// SamplesOf are a document's samples within the bounds; nil where it has none.
func SamplesOf(doc Document) *Samples {
	s, ok := doc.(sampled)
	if !ok {
		return nil
	}
	all := s.curves()
	all = all[:min(len(all), mostSeries)]
	filled := 0
	for _, c := range all {
		if c.len() > 0 {
			filled++
		}
	}
	if filled == 0 {
		return nil
	}
	most := min(MostPoints, MostSampleBytes/bytesAPoint/filled)
	out := &Samples{Series: []Series{}}
	for _, c := range all {
		if c.len() > 0 {
			out.Series = append(out.Series, c.series(most))
		}
	}
	return out
}

// attach fills a document's curves from samples. It drops samples without a curve.
func (s *Samples) attach(doc Document) {
	holder, ok := doc.(sampled)
	if !ok || s == nil {
		return
	}
	places := map[[2]string]curve{}
	for _, c := range holder.curves() {
		places[[2]string{c.of, c.name}] = c
	}
	for i := range s.Series {
		one := &s.Series[i]
		if c, ok := places[[2]string{one.Of, one.Name}]; ok && len(one.AtNs) == len(one.Values) {
			c.take(one)
		}
	}
}

func (c *curve) len() int {
	switch {
	case c.points != nil:
		return len(*c.points)
	case c.marks != nil:
		return len(*c.marks)
	}
	return len(*c.bands)
}

// series returns the curve with at most the given number of points, evenly chosen, with the first and the last.
func (c *curve) series(most int) Series {
	out := Series{Of: c.of, Name: c.name, AtNs: deltas{}, Values: deltas{}}
	n := c.len()
	for k := range min(n, most) {
		i := k
		if n > most {
			i = k * (n - 1) / max(most-1, 1)
		}
		switch {
		case c.points != nil:
			p := (*c.points)[i]
			out.AtNs = append(out.AtNs, p.At)
			out.Values = append(out.Values, p.Value)
		case c.marks != nil:
			m := (*c.marks)[i]
			out.AtNs = append(out.AtNs, m.At)
			out.Values = append(out.Values, m.From)
			out.Ends = append(out.Ends, m.To)
		default:
			b := (*c.bands)[i]
			out.AtNs = append(out.AtNs, b.StartNs)
			out.Values = append(out.Values, b.EndNs)
			out.Limiters = append(out.Limiters, string(b.Limiter))
		}
	}
	return out
}

func (c *curve) take(s *Series) {
	n := min(len(s.AtNs), len(s.Values))
	switch {
	case c.points != nil:
		*c.points = make([]flow.Point, n)
		for i := range n {
			(*c.points)[i] = flow.Point{At: s.AtNs[i], Value: s.Values[i]}
		}
	case c.marks != nil:
		n = min(n, len(s.Ends))
		*c.marks = make([]flow.Mark, n)
		for i := range n {
			(*c.marks)[i] = flow.Mark{At: s.AtNs[i], From: s.Values[i], To: s.Ends[i]}
		}
	default:
		n = min(n, len(s.Limiters))
		*c.bands = make([]Band, n)
		for i := range n {
			(*c.bands)[i] = Band{s.AtNs[i], s.Values[i], verdict.Name(s.Limiters[i])}
		}
	}
}

// Thin brings a document's curves to what is stored of them, so that it renders as it
// will when it is read back.
func Thin(doc Document) {
	if s := SamplesOf(doc); s != nil {
		s.attach(doc)
	}
}

func place(format string, args ...any) string { return fmt.Sprintf(format, args...) }
