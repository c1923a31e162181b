package sweep

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// MaxCells bounds a grid: more would take days to measure.
const MaxCells = 10_000

// Axes are the values that a sweep goes over: every combination is a cell. Sizes are
// bytes; 0 is automatic, for writes as large as costs least.
type Axes struct {
	Send       []int                `json:"send"`
	Receive    []int                `json:"receive"`
	Write      []int                `json:"write"`
	Directions []transfer.Direction `json:"directions"`
	Congestion []string             `json:"congestion"` // the sender's; "" is its default
}

// Cell is one combination. Send and Write are the sender's, Receive is the receiver's.
type Cell struct {
	Direction            transfer.Direction
	Congestion           string
	Send, Receive, Write int
}

// Cells lists all combinations: directions, congestion controls, write sizes, receive
// buffers and, fastest, send buffers.
func (a Axes) Cells() []Cell {
	var all []Cell
	for _, d := range a.Directions {
		for _, cc := range a.Congestion {
			for _, w := range a.Write {
				for _, r := range a.Receive {
					for _, s := range a.Send {
						all = append(all, Cell{d, cc, s, r, w})
					}
				}
			}
		}
	}
	return all
}

// Check says what is wrong with a grid.
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

// Spec is the cell as a transfer.
func (c Cell) Spec(length time.Duration) transfer.Spec {
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

// String is the cell in words.
func (c Cell) String() string {
	text := fmt.Sprintf("%s, send buffer %s, receive buffer %s", c.Direction, SizeText(c.Send), SizeText(c.Receive))
	if c.Write > 0 {
		text += ", writes of " + SizeText(c.Write)
	}
	if c.Congestion != "" {
		text += ", " + c.Congestion
	}
	return text
}

// Short is the cell where there is little room; what is left to the systems is left out.
func (c Cell) Short() string {
	parts := []string{string(c.Direction)}
	for _, part := range []struct {
		name string
		size int
	}{{"send", c.Send}, {"receive", c.Receive}, {"write", c.Write}} {
		if part.size > 0 {
			parts = append(parts, part.name+" "+SizeText(part.size))
		}
	}
	if c.Congestion != "" {
		parts = append(parts, c.Congestion)
	}
	return strings.Join(parts, ", ")
}

// SizeText prints a value of an axis.
func SizeText(bytes int) string {
	if bytes == 0 {
		return Automatic
	}
	return units.Size(bytes).String()
}

// Automatic is the word for the value 0 of an axis.
const Automatic = "automatic"

// mostOfAnAxis bounds what one range may come to.
const mostOfAnAxis = 1000

// ParseSizes reads the values of one axis: sizes separated by commas, the word
// automatic, and ranges that step by a factor (8K-1M:x2) or a size (8K-64K:+8K). They
// are answered from the smallest up, automatic last.
func ParseSizes(text string) ([]int, error) {
	var sizes []int
	for item := range strings.SplitSeq(text, ",") {
		item = strings.TrimSpace(item)
		if strings.EqualFold(item, Automatic) {
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

// sortKey puts automatic behind every size.
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
