// Package rule is the form in which the judges write their rules: conditions over named quantities, facts and
// thresholds. A judge evaluates the same tree that Row describes, so the printed rules cannot differ from the code.
package rule

import (
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// Quantity is a number that conditions compare. F is the type of the facts that it is computed from.
type Quantity[F any] struct {
	Name  string
	Unit  string // as thresholds have it: ratio, time (nanoseconds), bit/s, bytes, segments, ...
	Means string
	Of    func(F) float64
	Uses  []*threshold.Number // the thresholds in its computation
}

// Condition is a statement about the facts F. The zero Condition is always true.
type Condition[F any] struct{ node *node[F] }

// node is a condition and its parts.
type node[F any] struct {
	kind  kind
	left  *Quantity[F]
	limit *threshold.Number // left is compared with it, or with it × right
	right *Quantity[F]
	part  *node[F]       // of a negation, of a condition with a name and of a kept one
	parts []Condition[F] // joined

	// Of a fact, and of a condition with a name.
	name, means string
	fact        func(F) bool
	uses        []*threshold.Number

	kept func(F) *Result // where the result of a kept condition is
}

type kind uint8

const (
	isFact kind = iota
	isDefined
	isAtLeast // left >= limit × right
	isAbove
	isAtMost
	isBelow
	isPositive // left > 0
	isExceeds  // left > right
	isAll
	isAny
	isNot
	isKept // the part, evaluated once
)

// IsTrue reports whether the condition is true of the facts.
func (c Condition[F]) IsTrue(facts F) bool { return c.node == nil || c.node.isTrue(facts) }

// IsAlways reports whether c is the zero Condition.
func (c Condition[F]) IsAlways() bool { return c.node == nil }

// isTrue evaluates the tree. Names and negations take no call: judges ask thousands of conditions for a transfer.
func (n *node[F]) isTrue(facts F) bool {
	yes := true
	for n.kind == isDefined || n.kind == isNot {
		yes = yes != (n.kind == isNot)
		n = n.part
	}
	switch n.kind {
	case isFact:
		return n.fact(facts) == yes
	case isPositive:
		return n.left.Of(facts) > 0 == yes
	case isExceeds:
		return n.left.Of(facts) > n.right.Of(facts) == yes
	case isKept:
		r := n.kept(facts)
		if !r.known {
			*r = Result{true, n.part.isTrue(facts)}
		}
		return r.isTrue == yes
	case isAll, isAny: // the first part that equals decisive decides
		decisive := n.kind == isAny
		for i := range n.parts {
			if n.parts[i].node.isTrue(facts) == decisive {
				return decisive == yes
			}
		}
		return decisive != yes
	}
	limit := n.limit.Value
	if n.right != nil {
		limit *= n.right.Of(facts)
	}
	switch left := n.left.Of(facts); n.kind {
	case isAtLeast:
		return left >= limit == yes
	case isAbove:
		return left > limit == yes
	case isAtMost:
		return left <= limit == yes
	default:
		return left < limit == yes
	}
}

// AtLeast is q >= limit, or q >= limit × times.
func (q *Quantity[F]) AtLeast(limit *threshold.Number, times ...*Quantity[F]) Condition[F] {
	return q.compare(isAtLeast, limit, times)
}

// Above is q > limit, or q > limit × times.
func (q *Quantity[F]) Above(limit *threshold.Number, times ...*Quantity[F]) Condition[F] {
	return q.compare(isAbove, limit, times)
}

// AtMost is q <= limit, or q <= limit × times.
func (q *Quantity[F]) AtMost(limit *threshold.Number, times ...*Quantity[F]) Condition[F] {
	return q.compare(isAtMost, limit, times)
}

// Below is q < limit, or q < limit × times.
func (q *Quantity[F]) Below(limit *threshold.Number, times ...*Quantity[F]) Condition[F] {
	return q.compare(isBelow, limit, times)
}

// compare returns a comparison with a limit, and with at most one factor of it.
func (q *Quantity[F]) compare(k kind, limit *threshold.Number, times []*Quantity[F]) Condition[F] {
	n := &node[F]{kind: k, left: q, limit: limit}
	if len(times) > 0 {
		n.right = times[0]
	}
	return Condition[F]{n}
}

// Positive is q > 0. A quantity that is not known is 0.
func (q *Quantity[F]) Positive() Condition[F] {
	return Condition[F]{&node[F]{kind: isPositive, left: q}}
}

// Exceeds is q > other.
func (q *Quantity[F]) Exceeds(other *Quantity[F]) Condition[F] {
	return Condition[F]{&node[F]{kind: isExceeds, left: q, right: other}}
}

// Fact is a statement that is no comparison of a quantity.
func Fact[F any](name, means string, of func(F) bool, uses ...*threshold.Number) Condition[F] {
	return Condition[F]{&node[F]{kind: isFact, name: name, means: means, fact: of, uses: uses}}
}

// Define names a condition that several rules read.
func Define[F any](name, means string, c Condition[F]) Condition[F] {
	return Condition[F]{&node[F]{kind: isDefined, name: name, means: means, part: c.node}}
}

// Result is the result of a condition, once it was evaluated.
type Result struct{ known, isTrue bool }

// Once returns a condition that evaluates c only if the result that kept returns is not known yet.
func Once[F any](c Condition[F], kept func(F) *Result) Condition[F] {
	return Condition[F]{&node[F]{kind: isKept, part: c.node, kept: kept}}
}

// All returns a condition that is true if every part is. No part of All, Any or Not may be the zero Condition.
func All[F any](parts ...Condition[F]) Condition[F] {
	return Condition[F]{&node[F]{kind: isAll, parts: parts}}
}

// Any returns a condition that is true if at least one part is.
func Any[F any](parts ...Condition[F]) Condition[F] {
	return Condition[F]{&node[F]{kind: isAny, parts: parts}}
}

// Not returns a condition that is true if c is false.
func Not[F any](c Condition[F]) Condition[F] {
	return Condition[F]{&node[F]{kind: isNot, part: c.node}}
}
