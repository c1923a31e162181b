package rule

import (
	"slices"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// Input is a quantity, a fact or a named condition that rules read.
type Input struct {
	Name       string              `json:"name"`
	Unit       string              `json:"unit,omitempty"` // of a quantity
	Means      string              `json:"means"`
	Definition string              `json:"definition,omitempty"` // of a named condition
	Uses       []*threshold.Number `json:"uses,omitempty"`
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
	Inputs     []Input             `json:"inputs"`
	Thresholds []*threshold.Number `json:"thresholds"`
}

// Add appends a rule and the inputs and thresholds of its conditions. also are the conditions in its outcome.
func Add[F any](l *List, name string, when Condition[F], outcome string, also ...Condition[F]) {
	l.Rows = append(l.Rows, Row{name, when.Text(), outcome})
	for _, c := range append([]Condition[F]{when}, also...) {
		inputs, limits := c.reads()
		l.addThresholds(limits)
		for _, in := range inputs {
			l.AddInput(in)
		}
	}
}

// AddInput appends what an outcome reads besides conditions.
func (l *List) AddInput(in Input) {
	if !slices.ContainsFunc(l.Inputs, func(i Input) bool { return i.Name == in.Name }) {
		l.Inputs = append(l.Inputs, in)
	}
	l.addThresholds(in.Uses)
}

func (l *List) addThresholds(all []*threshold.Number) {
	for _, t := range all {
		if !slices.Contains(l.Thresholds, t) {
			l.Thresholds = append(l.Thresholds, t)
		}
	}
}

// reads returns the inputs and the thresholds of a condition in their order.
func (c Condition[F]) reads() (inputs []Input, limits []*threshold.Number) {
	if c.IsAlways() {
		return nil, nil
	}
	n := c.node
	if n.kind == isFact || n.kind == isDefined {
		in := Input{Name: n.name, Means: n.means, Uses: n.uses}
		if n.kind == isDefined {
			in.Definition = n.part.text()
		}
		inputs = append(inputs, in)
	}
	for _, q := range []*Quantity[F]{n.left, n.right} {
		if q != nil {
			inputs = append(inputs, Input{Name: q.Name, Unit: q.Unit, Means: q.Means, Uses: q.Uses})
		}
	}
	if n.limit != nil {
		limits = append(limits, n.limit)
	}
	for _, p := range append([]Condition[F]{{n.part}}, n.parts...) {
		i, l := p.reads()
		inputs = append(inputs, i...)
		limits = append(limits, l...)
	}
	return inputs, limits
}

// operators are the words of comparisons and of joined conditions.
var operators = [...]string{isAtLeast: " >= ", isAbove: " > ", isAtMost: " <= ", isBelow: " < ", isAll: " and ",
	isAny: " or "}

// Text returns the condition as it is printed.
func (c Condition[F]) Text() string {
	if c.IsAlways() {
		return "always"
	}
	return c.node.text()
}

func (n *node[F]) text() string {
	switch n.kind {
	case isFact, isDefined:
		return n.name
	case isKept:
		return n.part.text()
	case isPositive:
		return n.left.Name + " > 0"
	case isExceeds:
		return n.left.Name + " > " + n.right.Name
	case isNot:
		if text := n.part.text(); strings.Contains(text, " ") {
			return "not (" + text + ")"
		}
		return "not " + n.part.text()
	case isAll, isAny:
		return n.joined()
	}
	text := n.left.Name + operators[n.kind] + n.limit.Text() + " (" + n.limit.Name + ")"
	if n.right != nil {
		text += " × " + n.right.Name
	}
	return text
}

// joined returns the parts with the word between them. A part with the other word is in parentheses.
func (n *node[F]) joined() string {
	texts := make([]string, len(n.parts))
	for i, p := range n.parts {
		texts[i] = p.node.text()
		if k := p.node.kind; (k == isAll || k == isAny) && k != n.kind {
			texts[i] = "(" + texts[i] + ")"
		}
	}
	return strings.Join(texts, operators[n.kind])
}
