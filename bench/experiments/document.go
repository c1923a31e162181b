package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// write writes docs/experiments.md.
func write(out io.Writer, experiments []*experiment, pool []finding, machine string, repeats int) {
	fmt.Fprintf(out, "# The founding documents' experiments, run again\n\nWritten by `make experiments`: real kernel "+
		"TCP in the lab, the median of %d transfers a cell\n"+
		"(steady state), in Mbit/s (k: kbit/s), on %s. A cell reads\n**published** / by arithmetic / *here*, and the "+
		"limiter that fullpipe named here. *Pass*,\n"+
		"*fail* and *inconclusive* are of what was asked of the reproduction, judged by the runs that came out least, in "+
		"the\n"+
		"middle and most (in brackets); a sentence without either only explains. Runs in a lab that was too late to be\n"+
		"believed are dropped and carried out again.\n\n", repeats, machine)
	findings(out, pool)
	for _, e := range experiments {
		fmt.Fprintf(out, "\n## %s\n\n%s\n\n", e.title, e.about)
		grid(out, e)
		fmt.Fprintln(out)
		findings(out, e.doubted(e.judge(e)))
		fmt.Fprintf(out, "\n%s\n\n    %s\n", e.lateness(), e.cells[0].command())
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
	said := strings.Join(parts, " / ") + " " + c.limiter()
	if c.late {
		said += " (the lab was late)"
	}
	return said
}

// dropped returns how many runs of an experiment were dropped, and how many there were in all.
func (e *experiment) dropped() (dropped, runs int) {
	for _, c := range e.cells {
		dropped += c.dropped
		runs += c.dropped + len(c.measured)
	}
	return dropped, runs
}

// lateness returns a sentence on the timing accuracy of an experiment's labs.
func (e *experiment) lateness() string {
	p99 := 0.0
	for _, c := range e.cells {
		p99 = max(p99, c.p99)
	}
	dropped, runs := e.dropped()
	return fmt.Sprintf("The lab was at most %.2f ms late with 99 of 100 packets in the runs that count; %d of %d were "+
		"dropped because it was too late.",
		1e3*p99, dropped, runs)
}

// doubted leaves a judgement open if too many of its runs were dropped.
func (e *experiment) doubted(all []finding) []finding {
	const most = 0.2
	if dropped, runs := e.dropped(); float64(dropped) > most*float64(runs) {
		for i := range all {
			if all[i].verdict != "" {
				all[i].verdict = "inconclusive"
			}
		}
	}
	return all
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
