package main

import (
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strings"
)

// maxListed limits the rows of a section that are listed one by one because they did not pass.
const maxListed = 5

const introduction = `# Benchmarks

Written by ` + "`make bank`" + ` from bench/benchmarks.jsonl, which has every row. Each line is one claim, measured in one or more
cases: real kernel TCP, real peers, interleaved runs, medians. Of several cases the line shows the worst.

- *pass* and *fail*: the whole interval is on one side of the claim. *inconclusive*: it is not, or too many runs were dropped.
- A run is dropped before its result is read if the lab was late: stalled for more than 0.5 % of the time, or 1 % of the packets
  later than 0.25 ms and 5 % of the RTT. More than 20 % dropped runs make a row inconclusive.
- The machine is a shared virtual one, so ratios say more than absolute figures.

`

// page writes the rows as one page: a line for each claim, and one for each row that did not pass.
func page(in io.Reader, out io.Writer) error {
	rows, err := read(in)
	if err != nil {
		return err
	}
	fmt.Fprint(out, introduction)
	machines := distinct(rows, func(r row) string { return r.Machine })
	fmt.Fprintf(out, "Machines: %s.\n", strings.Join(machines, "; "))
	fmt.Fprint(out, "\n| what, against what | cases | result | spread | verdict |\n|---|---|---|---|---|\n")
	for _, section := range sections(rows) {
		fmt.Fprintf(out, "| **%s** | %s | `%s` | %s | |\n", cell(section[0].Section), passes(section), command(section),
			dates(section))
		for _, claim := range claims(section) {
			r := worst(claim.rows)
			name, verdict := r.Case, r.Verdict
			if len(claim.rows) > 1 {
				name, verdict = passes(claim.rows)+"; worst: "+r.Case, verdicts(claim.rows)
			}
			fmt.Fprintf(out, "| %s | %s | %s | %s | %s |\n", cell(claim.text()), short(name), short(r.Measured),
				short(r.Spread), verdict)
		}
	}
	for _, verdict := range []string{"fail", "inconclusive"} {
		listed := slices.DeleteFunc(slices.Clone(rows), func(r row) bool { return r.Verdict != verdict })
		fmt.Fprintf(out, "\n## Rows with the verdict *%s*\n\n", verdict)
		if len(listed) == 0 {
			fmt.Fprintln(out, "None.")
		}
		for _, section := range sections(listed) {
			for i, r := range section {
				if i == maxListed {
					fmt.Fprintf(out, "- %s: %d more\n", r.Section, len(section)-i)
					break
				}
				fmt.Fprintf(out, "- %s, %s. Claim: %s. Result: %s", r.Section, short(r.Case), short(r.Claim), short(r.Measured))
				if r.Spread != "" {
					fmt.Fprintf(out, " (%s)", short(r.Spread))
				}
				fmt.Fprintln(out)
			}
		}
	}
	return nil
}

// claim is a group of rows whose claims are equal or differ in the same one word.
type claim struct {
	rows  []row
	words []string
	open  int // the word in which they differ; -1: none
}

func (c *claim) text() string {
	words := slices.Clone(c.words)
	if c.open >= 0 {
		words[c.open] = "…"
	}
	return strings.Join(words, " ")
}

// takes adds the row if its claim fits the group.
func (c *claim) takes(r row) bool {
	words := strings.Fields(r.Claim)
	if len(words) != len(c.words) {
		return false
	}
	open := c.open
	for i := range words {
		if words[i] == c.words[i] || i == open {
			continue
		}
		if open >= 0 {
			return false
		}
		open = i
	}
	c.open, c.rows = open, append(c.rows, r)
	return true
}

func claims(rows []row) (all []*claim) {
	for _, r := range rows {
		if !slices.ContainsFunc(all, func(c *claim) bool { return c.takes(r) }) {
			all = append(all, &claim{rows: []row{r}, words: strings.Fields(r.Claim), open: -1})
		}
	}
	return all
}

// atLeast and atMost are the words by which a claim says which side of its limit is right.
var (
	atLeast = regexp.MustCompile(`at least|≥|in [0-9.]+ %|all `)
	atMost  = regexp.MustCompile(`within|at most|≤|below|less than|under|no more|loses|budget`)
)

// worst returns the row that is nearest to a failure: by its verdict, then by its figure.
func worst(rows []row) row {
	badness := func(r row) (float64, float64) {
		verdict := float64(slices.Index([]string{"pass", "inconclusive", "fail"}, r.Verdict))
		value, _, ok := figure(r.Measured)
		least, most := atLeast.FindStringIndex(r.Claim), atMost.FindStringIndex(r.Claim)
		switch {
		case !ok || least == nil && most == nil:
			return verdict, math.Inf(-1)
		case most == nil || least != nil && least[0] < most[0]:
			return verdict, -value
		}
		return verdict, math.Abs(value)
	}
	return slices.MaxFunc(rows, func(a, b row) int {
		va, fa := badness(a)
		vb, fb := badness(b)
		if va != vb {
			return int(va - vb)
		}
		switch {
		case fa < fb:
			return -1
		case fa > fb:
			return 1
		}
		return 0
	})
}

func sections(rows []row) (all [][]row) {
	for _, r := range rows {
		i := slices.IndexFunc(all, func(s []row) bool { return s[0].Section == r.Section })
		if i < 0 {
			all = append(all, []row{r})
			continue
		}
		all[i] = append(all[i], r)
	}
	return all
}

func passes(rows []row) string {
	n := 0
	for _, r := range rows {
		if r.Verdict == "pass" {
			n++
		}
	}
	return fmt.Sprintf("%d of %d pass", n, len(rows))
}

// verdicts returns the verdict that all rows have, or how many have which.
func verdicts(rows []row) string {
	all := distinct(rows, func(r row) string { return r.Verdict })
	if len(all) == 1 {
		return all[0]
	}
	for i, verdict := range all {
		n := 0
		for _, r := range rows {
			if r.Verdict == verdict {
				n++
			}
		}
		all[i] = fmt.Sprintf("%d %s", n, verdict)
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

var bankTest = regexp.MustCompile(`TestBank\w*`)

// command returns the command that measures the rows again.
func command(rows []row) string {
	tests := distinct(rows, func(r row) string { return bankTest.FindString(r.Command) })
	switch len(tests) {
	case 0: // measured before rows named their test
		return short(rows[0].Command)
	case 1:
		return "make bank RUN=" + tests[0]
	}
	return "make bank RUN='" + strings.Join(tests, "\\|") + "'"
}

// dates returns the day or the days on which the rows were measured.
func dates(rows []row) string {
	days := distinct(rows, func(r row) string { day, _, _ := strings.Cut(r.At, " "); return day })
	slices.Sort(days)
	if len(days) == 1 {
		return days[0]
	}
	return days[0] + " to " + days[len(days)-1]
}

// distinct returns the values of the rows other than "", each once.
func distinct(rows []row, of func(row) string) (all []string) {
	for _, r := range rows {
		if v := of(r); v != "" && !slices.Contains(all, v) {
			all = append(all, v)
		}
	}
	return all
}

// maxCell is the length of a cell in characters.
const maxCell = 100

func short(s string) string {
	if r := []rune(s); len(r) > maxCell {
		s = strings.TrimRight(string(r[:maxCell-1]), " ") + "…"
	}
	return cell(s)
}

func cell(s string) string { return strings.ReplaceAll(strings.ReplaceAll(s, "|", "\\|"), "\n", " ") }
