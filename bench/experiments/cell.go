package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// cell is one entry of a table: a transfer to run, with its published figure.
type cell struct {
	row, column string
	lab         string   // the path, in the lab's words
	args        []string // of `fullpipe measure`
	rtt         time.Duration
	published   float64 // bit/s; 0: nothing was published
	expected    float64 // bit/s by arithmetic; 0: none made
	measured    []float64
	limiters    []string
	dropped     int     // runs in labs that were too late to be believed
	late        bool    // and there was no other
	p99         float64 // s: the most that one packet in 100 was late in a run that counts
}

// median returns the middle of the runs, or 0 before any.
func (c *cell) median() float64 { return median(c.measured) }

func least(c *cell) float64 { return slices.Min(c.measured) }
func most(c *cell) float64  { return slices.Max(c.measured) }

// limiter returns the verdict of most runs.
func (c *cell) limiter() string {
	best, most := "", 0
	for _, l := range c.limiters {
		n := 0
		for _, other := range c.limiters {
			if other == l {
				n++
			}
		}
		if n > most {
			best, most = l, n
		}
	}
	return best
}

func (c *cell) command() string {
	return strings.Join(append([]string{"fullpipe measure", c.lab}, c.args...), " ")
}

// experiment is one published table, or a few figures of one text.
type experiment struct {
	title, about string
	rows         string // the quantity of a row
	cells        []*cell
	// judge returns sentences on the figures, once they are measured.
	judge func(e *experiment) []finding
}

// finding is a sentence about an experiment. One without a requirement has no verdict.
type finding struct{ text, verdict string }

func (e *experiment) columns() (names []string) {
	for _, c := range e.cells {
		if !slices.Contains(names, c.column) {
			names = append(names, c.column)
		}
	}
	return names
}

func (e *experiment) lines() (names []string) {
	for _, c := range e.cells {
		if !slices.Contains(names, c.row) {
			names = append(names, c.row)
		}
	}
	return names
}

func (e *experiment) at(row, column string) *cell {
	for _, c := range e.cells {
		if c.row == row && c.column == column {
			return c
		}
	}
	return nil
}

func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(values))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

// ratios are one figure over another for the cells that have both.
func ratios(cells []*cell, over, under func(*cell) float64) (all []float64) {
	for _, c := range cells {
		if a, b := over(c), under(c); a > 0 && b > 0 {
			all = append(all, a/b)
		}
	}
	return all
}

func published(c *cell) float64 { return c.published }
func expected(c *cell) float64  { return c.expected }
func measured(c *cell) float64  { return c.median() }

// within reports whether a ratio is no further from 1 than a share, as a factor either way.
func within(ratio, share float64) bool {
	return math.Abs(math.Log(ratio)) <= math.Log(1+share)
}

// span is a figure of many cells, from the runs with the smallest, middle and largest result.
type span struct{ low, mid, high float64 }

// over returns the span of a figure.
func over(figure func(of func(*cell) float64) float64) span {
	values := []float64{figure(least), figure(measured), figure(most)}
	return span{slices.Min(values), values[1], slices.Max(values)}
}

// judge passes if both ends of the span satisfy the condition. It fails if neither end nor the middle does. Otherwise
// the runs are inconclusive.
func (s span) judge(satisfies func(float64) bool) string {
	switch low, high := satisfies(s.low), satisfies(s.high); {
	case low && high:
		return "pass"
	case !low && !high && !satisfies(s.mid):
		return "fail"
	}
	return "inconclusive"
}

func (s span) String() string { return fmt.Sprintf("%.2f (%.2f to %.2f)", s.mid, s.low, s.high) }

func exactly(value float64) span { return span{value, value, value} }

func atLeast(bound float64) func(float64) bool { return func(v float64) bool { return v >= bound } }
func atMost(bound float64) func(float64) bool  { return func(v float64) bool { return v <= bound } }
func near(share float64) func(float64) bool    { return func(v float64) bool { return within(v, share) } }

func kib(bytes int) string { return strconv.Itoa(bytes/1024) + " KiB" }
