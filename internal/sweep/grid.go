package sweep

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// MaxCells is the maximum of cells in a grid: more would take days to measure.
const MaxCells = 10_000

// Axes are the values of a grid: every combination is a cell. Sizes are in bytes; 0 is automatic, for writes
// the size with the least overhead.
type Axes struct {
	Send       []int
	Receive    []int
	Write      []int
	Directions []transfer.Direction
	Congestion []string // the sender's; "" is its default
}

// Cells lists all combinations: directions, congestion controls, write sizes, receive
// buffers and, fastest, send buffers.
func (a Axes) Cells() []record.SweepSetup {
	var all []record.SweepSetup
	for _, d := range a.Directions {
		for _, cc := range a.Congestion {
			for _, w := range a.Write {
				for _, r := range a.Receive {
					for _, s := range a.Send {
						all = append(all, record.SweepSetup{Direction: d, Congestion: cc, Send: s, Receive: r, Write: w})
					}
				}
			}
		}
	}
	return all
}

// Check returns an error if the grid is invalid.
func (a Axes) Check() error {
	n := 1
	for _, axis := range []struct {
		name   string
		length int
		twice  bool
	}{
		{"send buffers", len(a.Send), twice(a.Send)}, {"receive buffers", len(a.Receive), twice(a.Receive)},
		{"write sizes", len(a.Write), twice(a.Write)},
		{"directions", len(a.Directions), twice(a.Directions)}, {"congestion controls", len(a.Congestion),
			twice(a.Congestion)},
	} {
		switch {
		case axis.length == 0:
			return fmt.Errorf("the %s are empty", axis.name)
		case axis.twice:
			return fmt.Errorf("one of the %s is there twice", axis.name)
		}
		n *= axis.length
		if n > MaxCells {
			return fmt.Errorf("more than %d cells", MaxCells)
		}
	}
	for _, size := range slices.Concat(a.Send, a.Receive, a.Write) {
		if size < 0 || size > math.MaxInt32 {
			return fmt.Errorf("%d bytes is no size of a buffer", size)
		}
	}
	for _, d := range a.Directions {
		if d != transfer.Up && d != transfer.Down {
			return fmt.Errorf("%q is no direction", d)
		}
	}
	return nil
}

func twice[T comparable](values []T) bool {
	for i, v := range values {
		if slices.Contains(values[:i], v) {
			return true
		}
	}
	return false
}

// Record returns the axes in the form of a document: the sizes, and separately whether automatic is a value.
func (a Axes) Record() record.SweepAxes {
	out := record.SweepAxes{Directions: a.Directions}
	out.SendBuffers, out.SendAutomatic = fixed(a.Send)
	out.ReceiveBuffers, out.ReceiveAutomatic = fixed(a.Receive)
	out.Writes, out.WriteAutomatic = fixed(a.Write)
	if len(a.Congestion) > 1 || a.Congestion[0] != "" {
		out.Congestion = a.Congestion
	}
	return out
}

// fixed returns the sizes of an axis without automatic, and whether automatic is one of its values.
func fixed(axis []int) (sizes []int, automatic bool) {
	sizes = slices.DeleteFunc(slices.Clone(axis), func(size int) bool { return size == 0 })
	return sizes, len(sizes) < len(axis)
}

// spec returns the transfer of a cell.
func spec(c record.SweepSetup, length time.Duration) transfer.Spec {
	s := transfer.Spec{Direction: c.Direction, Time: length, Program: transfer.Program{WriteBytes: c.Write}}
	sender := &s.Near
	receiver := &s.Far
	if c.Direction == transfer.Down {
		sender, receiver = receiver, sender
	}
	sender.SendBuffer = c.Send
	sender.Congestion = c.Congestion
	receiver.ReceiveBuffer = c.Receive
	return s
}

// mostOfAnAxis is the maximum of values in one range.
const mostOfAnAxis = 1000

// ParseSizes parses the values of one axis: sizes separated by commas, the word automatic, and ranges that step by a
// factor (8K-1M:x2) or a size (8K-64K:+8K). It returns them in ascending order, automatic last.
func ParseSizes(text string) ([]int, error) {
	var sizes []int
	for item := range strings.SplitSeq(text, ",") {
		item = strings.TrimSpace(item)
		if strings.EqualFold(item, record.Automatic) {
			sizes = append(sizes, 0)
			continue
		}
		some, err := parseRange(item)
		if err != nil {
			return nil, err
		}
		sizes = append(sizes, some...)
		if len(sizes) > mostOfAnAxis {
			return nil, fmt.Errorf("more than %d values", mostOfAnAxis)
		}
	}
	if twice(sizes) {
		return nil, fmt.Errorf("%q names a value twice", text)
	}
	slices.SortFunc(sizes, func(a, b int) int { return sortKey(a) - sortKey(b) })
	return sizes, nil
}

// sortKey sorts automatic after every size.
func sortKey(size int) int {
	if size == 0 {
		return math.MaxInt32
	}
	return size
}

func parseRange(item string) ([]int, error) {
	from, rest, isRange := strings.Cut(item, "-")
	first, err := parseSize(from)
	if err != nil || !isRange {
		return []int{first}, err
	}
	to, step, _ := strings.Cut(rest, ":")
	last, err := parseSize(to)
	if err != nil {
		return nil, err
	}
	if last < first {
		return nil, fmt.Errorf("%q ends before it begins", item)
	}
	next := func(v int) int { return 2 * v }
	switch {
	case step == "":
	case step[0] == 'x' || step[0] == '*':
		var factor float64
		if _, err := fmt.Sscanf(step[1:], "%g", &factor); err != nil || !(factor >= 1.01) || math.IsInf(factor, 0) {
			return nil, fmt.Errorf("%q: %q is no factor above 1 (write it as 8K-1M:x2)", item, step)
		}
		next = func(v int) int {
			return int(math.Min(math.Max(math.Round(float64(v)*factor), float64(v+1)), math.MaxInt32+1))
		}
	case step[0] == '+':
		add, err := parseSize(step[1:])
		if err != nil {
			return nil, err
		}
		next = func(v int) int { return v + add }
	default:
		return nil, fmt.Errorf("%q: %q is no step (write it as 8K-1M:x2 or 8K-64K:+8K)", item, step)
	}
	var sizes []int
	for v := first; v <= last; v = next(v) {
		sizes = append(sizes, v)
		if len(sizes) > mostOfAnAxis {
			return nil, fmt.Errorf("%q is more than %d values", item, mostOfAnAxis)
		}
	}
	return sizes, nil
}

func parseSize(text string) (int, error) {
	size, err := units.ParseSize(text)
	switch {
	case err != nil:
		return 0, err
	case size == 0:
		return 0, fmt.Errorf("a size of 0 bytes cannot be had (write automatic for the system's own sizing)")
	case size > math.MaxInt32:
		return 0, fmt.Errorf("%s is more than a socket can have (2 GiB)", size)
	}
	return int(size), nil
}
