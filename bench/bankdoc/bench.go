package main

import (
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
)

// bench writes the newest rows in Go's benchmark format, so that benchstat compares two banks:
//
//	go run -C bench ./bankdoc -bench < bench/benchmarks.jsonl > new.txt; benchstat old.txt new.txt
//
// It omits rows without a figure.
func bench(in io.Reader, out io.Writer) error {
	rows, err := read(in)
	if err != nil {
		return err
	}
	machine := ""
	for _, r := range rows {
		value, unit, ok := figure(r.Measured)
		if !ok {
			continue
		}
		if r.Machine != machine {
			machine = r.Machine
			fmt.Fprintf(out, "cpu: %s\n", machine)
		}
		fmt.Fprintf(out, "Benchmark%s/case=%s/claim=%s-1 1 %v %s\n", name(strings.ToUpper(r.Section[:1])+r.Section[1:]),
			name(r.Case), name(r.Claim), value, unit)
	}
	return nil
}

// base maps a row's unit to the one that benchstat knows, with the factor.
var base = map[string]struct {
	unit   string
	factor float64
}{"%": {"%", 1}, "×": {"ratio", 1}, "ms": {"sec", 1e-3}, "µs": {"sec", 1e-6}, "s": {"sec", 1}, "bytes": {"B", 1},
	"MB": {"B", 1e6}, "kbit/s": {"bit/s", 1e3}, "Mbit/s": {"bit/s", 1e6}, "Gbit/s": {"bit/s", 1e9}}

var (
	share    = regexp.MustCompile(`^(\d+) of (\d+)( |$)`)
	factor   = regexp.MustCompile(`^× (\d[\d.]*)`)
	quantity = regexp.MustCompile(`^(?:median |at most )?([+-]?\d[\d.]*) (%|×|ms|µs|s|bytes|MB|[kMG]bit/s)([ ,;:(]|$)`)
	ofAWhole = regexp.MustCompile(`^([+-]?\d[\d.]*) of \d[\d.]* ([kMG]bit/s)`)
)

// figure returns the first figure of a result; for "9 of 10" the percentage.
func figure(measured string) (value float64, unit string, ok bool) {
	number := func(text string) float64 {
		v, _ := strconv.ParseFloat(text, 64)
		return v
	}
	if m := factor.FindStringSubmatch(measured); m != nil {
		return number(m[1]), "ratio", true
	}
	m := quantity.FindStringSubmatch(measured)
	if m == nil {
		m = ofAWhole.FindStringSubmatch(measured)
	}
	if m != nil {
		b := base[m[2]]
		return number(m[1]) * b.factor, b.unit, true
	}
	if m := share.FindStringSubmatch(measured); m != nil && number(m[2]) > 0 {
		return 100 * number(m[1]) / number(m[2]), "%", true
	}
	return 0, "", false
}

// name returns the text as part of a benchmark's name, which has no blanks and no slashes.
func name(text string) string {
	text = strings.ReplaceAll(text, "bit/s", "bps")
	return strings.NewReplacer(" ", "_", "\t", "_", "\n", "_", "/", "÷").Replace(text)
}
