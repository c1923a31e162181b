package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// write is docs/experiments.md.
func write(out io.Writer, experiments []*experiment, pool []finding, machine string, repeats int) {
	fmt.Fprintf(out, "# The founding documents' experiments, run again\n\nWritten by `make experiments`: real kernel TCP in the lab, the median of %d transfers a cell\n"+
		"(steady state), in Mbit/s (k: kbit/s), on %s. A cell reads\n**published** / by arithmetic / *here*, and the limiter that fullpipe named here. *Pass*,\n"+
		"*fail* and *inconclusive* are of what was asked of the reproduction, judged by the runs that came out least, in the\n"+
		"middle and most (in brackets); a sentence without either only explains.\n\n", repeats, machine)
	findings(out, pool)
	for _, e := range experiments {
		fmt.Fprintf(out, "\n## %s\n\n%s\n\n", e.title, e.about)
		grid(out, e)
		fmt.Fprintln(out)
		findings(out, e.judge(e))
		fmt.Fprintf(out, "\n    %s\n", e.cells[0].command())
	}
}

func grid(out io.Writer, e *experiment) {
	columns := e.columns()
	fmt.Fprintf(out, "| %s | %s |\n|---|%s\n", e.rows, strings.Join(columns, " | "), strings.Repeat("---|", len(columns)))
	for _, line := range e.lines() {
		fmt.Fprintf(out, "| %s |", line)
		for _, column := range columns {
			fmt.Fprintf(out, " %s |", text(e.at(line, column)))
		}
		fmt.Fprintln(out)
	}
}

func text(c *cell) string {
	if c == nil {
		return ""
	}
	parts := []string{}
	if c.published > 0 {
		parts = append(parts, "**"+mbit(c.published)+"**")
	}
	parts = append(parts, mbit(c.expected), "*"+mbit(c.median())+"*")
	return strings.Join(parts, " / ") + " " + c.limiter()
}

// mbit is a rate in Mbit/s, below 1 in kbit/s with a k, three digits.
func mbit(bps float64) string {
	if bps < 1e6 {
		return strconv.FormatFloat(bps/1e3, 'g', 3, 64) + "k"
	}
	return strconv.FormatFloat(bps/1e6, 'g', 3, 64)
}

func findings(out io.Writer, all []finding) {
	judged := slices.ContainsFunc(all, func(f finding) bool { return f.verdict != "" })
	for _, f := range all {
		switch {
		case f.verdict != "":
			fmt.Fprintf(out, "- %s: %s\n", f.verdict, f.text)
		case judged:
			fmt.Fprintf(out, "- %s\n", f.text)
		default:
			fmt.Fprintf(out, "%s\n", f.text)
		}
	}
}
