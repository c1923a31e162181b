// Package rule is the form in which the judges write their rules: conditions over named inputs and thresholds. A judge
// evaluates the same conditions that Row describes, so the printed rules cannot differ from the code.
package rule

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// Quantity is a number that conditions compare. F is the type of the facts that it is computed from.
type Quantity[F any] struct {
	Name  string
	Unit  string // as thresholds have it: ratio, time (nanoseconds), bit/s, bytes, segments, ...
	Means string
	Of    func(F) float64
	Uses  []threshold.Named // the thresholds in its computation
}

// Input is a quantity, a fact or a named condition that rules read.
type Input struct {
	Name       string            `json:"name"`
	Unit       string            `json:"unit,omitempty"` // of a quantity
	Means      string            `json:"means"`
	Definition string            `json:"definition,omitempty"` // of a named condition; a List has it
	Uses       []threshold.Named `json:"uses,omitempty"`

	define func() string
}

// Condition is a statement about the facts F. The zero Condition is always true.
type Condition[F any] struct {
	text       func() string // on demand: it looks thresholds up
	compound   string        // the word that joins its parts; "" for a single comparison or fact
	isTrue     func(F) bool
	inputs     []Input
	thresholds []threshold.Named
}

// IsTrue reports whether the condition is true of the facts.
func (c *Condition[F]) IsTrue(facts F) bool { return c.IsAlways() || c.isTrue(facts) }

// AtLeast is q >= value, or q >= value × times. name is the threshold's.
func (q Quantity[F]) AtLeast(name string, value float64, times ...Quantity[F]) Condition[F] {
	return q.compare(">=", func(a, b float64) bool { return a >= b }, name, value, times)
}

// Above is q > value, or q > value × times.
func (q Quantity[F]) Above(name string, value float64, times ...Quantity[F]) Condition[F] {
	return q.compare(">", func(a, b float64) bool { return a > b }, name, value, times)
}

// AtMost is q <= value, or q <= value × times.
func (q Quantity[F]) AtMost(name string, value float64, times ...Quantity[F]) Condition[F] {
	return q.compare("<=", func(a, b float64) bool { return a <= b }, name, value, times)
}

// Below is q < value, or q < value × times.
func (q Quantity[F]) Below(name string, value float64, times ...Quantity[F]) Condition[F] {
	return q.compare("<", func(a, b float64) bool { return a < b }, name, value, times)
}

// Positive is q > 0. A quantity that is not known is 0.
func (q Quantity[F]) Positive() Condition[F] {
	return Condition[F]{text: constant(q.Name + " > 0"), inputs: []Input{q.input()},
		isTrue: func(f F) bool { return q.Of(f) > 0 }}
}

// Exceeds is q > other.
func (q Quantity[F]) Exceeds(other Quantity[F]) Condition[F] {
	return Condition[F]{text: constant(q.Name + " > " + other.Name), inputs: []Input{q.input(), other.input()},
		isTrue: func(f F) bool { return q.Of(f) > other.Of(f) }}
}

func (q Quantity[F]) input() Input {
	return Input{Name: q.Name, Unit: q.Unit, Means: q.Means, Uses: q.Uses}
}

func (q Quantity[F]) compare(operator string, satisfies func(a, b float64) bool, name string, value float64,
	times []Quantity[F]) Condition[F] {
	limit := threshold.Named{Name: name, Value: value}
	c := Condition[F]{inputs: []Input{q.input()}, thresholds: []threshold.Named{limit}}
	product := ""
	for _, t := range times {
		product += " × " + t.Name
		c.inputs = append(c.inputs, t.input())
	}
	c.text = func() string { return fmt.Sprintf("%s %s %s (%s)%s", q.Name, operator, limit.Text(), name, product) }
	c.isTrue = func(f F) bool {
		right := value
		for i := range times {
			right *= times[i].Of(f)
		}
		return satisfies(q.Of(f), right)
	}
	return c
}

// Fact is a statement that is no comparison of a quantity.
func Fact[F any](name, means string, of func(F) bool, uses ...threshold.Named) Condition[F] {
	return Condition[F]{text: constant(name), isTrue: of, inputs: []Input{{Name: name, Means: means, Uses: uses}}}
}

// Define names a condition that several rules read.
func Define[F any](name, means string, c Condition[F]) Condition[F] {
	definition := Input{Name: name, Means: means, define: c.text}
	return Condition[F]{text: constant(name), isTrue: c.isTrue, inputs: append([]Input{definition}, c.inputs...),
		thresholds: c.thresholds}
}

// Result is the result of a condition, once it was evaluated.
type Result struct{ known, isTrue bool }

// Once returns a condition that evaluates c only if the result that kept returns is not known yet.
func Once[F any](c Condition[F], kept func(F) *Result) Condition[F] {
	isTrue := c.isTrue
	c.isTrue = func(f F) bool {
		a := kept(f)
		if !a.known {
			*a = Result{true, isTrue(f)}
		}
		return a.isTrue
	}
	return c
}

// All returns a condition that is true if every part is. No part of All, Any or Not may be the zero Condition.
func All[F any](parts ...Condition[F]) Condition[F] { return join(" and ", parts, false) }

// Any returns a condition that is true if at least one part is.
func Any[F any](parts ...Condition[F]) Condition[F] { return join(" or ", parts, true) }

// Not returns a condition that is true if c is false.
func Not[F any](c Condition[F]) Condition[F] {
	isTrue := c.isTrue
	text := c.text
	c.text = func() string {
		if t := text(); strings.Contains(t, " ") {
			return "not (" + t + ")"
		}
		return "not " + text()
	}
	c.compound = ""
	c.isTrue = func(f F) bool { return !isTrue(f) }
	return c
}

// join returns the condition that is decided by the first part that equals decisive.
func join[F any](word string, parts []Condition[F], decisive bool) Condition[F] {
	evaluate := make([]func(F) bool, len(parts))
	for i := range parts {
		evaluate[i] = parts[i].isTrue
	}
	all := Condition[F]{compound: word}
	all.isTrue = func(f F) bool {
		for _, isTrue := range evaluate {
			if isTrue(f) == decisive {
				return decisive
			}
		}
		return !decisive
	}
	for _, p := range parts {
		all.inputs = append(all.inputs, p.inputs...)
		all.thresholds = append(all.thresholds, p.thresholds...)
	}
	all.text = func() string {
		texts := make([]string, len(parts))
		for i, p := range parts {
			texts[i] = p.text()
			if p.compound != "" && p.compound != word {
				texts[i] = "(" + texts[i] + ")"
			}
		}
		return strings.Join(texts, word)
	}
	return all
}

// Row is one rule as it is printed.
type Row struct {
	Name    string `json:"name"`
	When    string `json:"when"`
	Outcome string `json:"outcome"`
}

// List is the ordered rules of one question.
type List struct {
	Title string `json:"title"`
	Rows  []Row  `json:"rules"`
	// Inputs and Thresholds are those of all rows, each once, in the order in which the rows read them.
	Inputs     []Input           `json:"inputs"`
	Thresholds []threshold.Named `json:"thresholds"`
}

// Add appends a rule and the inputs and thresholds of its conditions. also are the conditions in its outcome.
func Add[F any](l *List, name string, when Condition[F], outcome string, also ...Condition[F]) {
	l.Rows = append(l.Rows, Row{name, when.Text(), outcome})
	for _, c := range append([]Condition[F]{when}, also...) {
		l.read(c.inputs, c.thresholds)
	}
}

// AddInput appends what an outcome reads besides conditions.
func (l *List) AddInput(in Input) { l.read([]Input{in}, nil) }

func (l *List) read(inputs []Input, limits []threshold.Named) {
	for _, in := range inputs {
		if !slices.ContainsFunc(l.Inputs, func(i Input) bool { return i.Name == in.Name }) {
			if in.define != nil {
				in.Definition = in.define()
			}
			l.Inputs = append(l.Inputs, in)
		}
		limits = append(slices.Clip(limits), in.Uses...)
	}
	for _, t := range limits {
		if !slices.ContainsFunc(l.Thresholds, func(n threshold.Named) bool { return n.Name == t.Name }) {
			l.Thresholds = append(l.Thresholds, t)
		}
	}
}

// Text returns the condition as it is printed.
func (c *Condition[F]) Text() string {
	if c.IsAlways() {
		return "always"
	}
	return c.text()
}

// IsAlways reports whether c is the zero Condition.
func (c *Condition[F]) IsAlways() bool { return c.isTrue == nil }

func constant(text string) func() string { return func() string { return text } }
