// Command bankdoc turns the rows that `make bank` measured into docs/benchmarks.md, or with
// -bench into Go's benchmark format.
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

type row struct {
	Section, Case, Claim, Measured, Spread, Verdict, Late, Command, Machine, At string
}

func main() {
	write := run
	if len(os.Args) == 2 && os.Args[1] == "-bench" {
		write = bench
	}
	if err := write(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "bankdoc:", err)
		os.Exit(1)
	}
}

func run(in io.Reader, out io.Writer) error {
	rows, err := read(in)
	if err != nil {
		return err
	}
	fmt.Fprint(out, "# Benchmarks\n\nWritten by `make bank`: real kernel TCP, real peers, interleaved runs, medians. A "+
		"verdict is *pass* or *fail*\n"+
		"only where the whole interval lies on one side of the claim, else *inconclusive*. Times are of a shared virtual\n"+
		"machine: ratios say more than figures. A lab tells how late it was; a run in one that was too late to be believed\n"+
		"(it stood still for more than 0.5 % of the time, or one packet in 100 was later than 0.25 ms and 5 % of the round "+
		"trip)\n"+
		"is dropped before its figure is looked at, and a row with more than 20 % dropped is inconclusive.\n\n")
	fmt.Fprint(out, "| section | pass | fail | inconclusive |\n|---|---|---|---|\n")
	for _, s := range sections(rows) {
		n := map[string]int{}
		for _, r := range s {
			n[r.Verdict]++
		}
		fmt.Fprintf(out, "| %s | %d | %d | %d |\n", s[0].Section, n["pass"], n["fail"], n["inconclusive"])
	}
	for _, s := range sections(rows) {
		fmt.Fprintf(out, "\n## %s\n\nMeasured %s on %s.\n\n", s[0].Section, s[len(s)-1].At, s[len(s)-1].Machine)
		for _, command := range commands(s) {
			fmt.Fprintf(out, "    %s\n", command)
		}
		late := slices.ContainsFunc(s, func(r row) bool { return r.Late != "" })
		heading, rule := "| case | claim | measured | spread | verdict |", "|---|---|---|---|---|"
		if late {
			heading, rule = heading+" the lab's lateness |", rule+"---|"
		}
		fmt.Fprintf(out, "\n%s\n%s\n", heading, rule)
		for _, r := range s {
			fmt.Fprintf(out, "| %s | %s | %s | %s | %s |", cell(r.Case), cell(r.Claim), cell(r.Measured), cell(r.Spread),
				r.Verdict)
			if late {
				fmt.Fprintf(out, " %s |", cmp.Or(cell(r.Late), "not known: before the lab told"))
			}
			fmt.Fprintln(out)
		}
	}
	return nil
}

// read keeps the newest row of each section, case and claim, in the order of their
// first appearance.
func read(in io.Reader) (rows []row, err error) {
	index := map[[3]string]int{}
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		var r row
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return nil, fmt.Errorf("a row that is no JSON: %w", err)
		}
		key := [3]string{r.Section, r.Case, r.Claim}
		if i, seen := index[key]; seen {
			rows[i] = r
			continue
		}
		index[key] = len(rows)
		rows = append(rows, r)
	}
	return rows, lines.Err()
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

func commands(rows []row) (all []string) {
	for _, r := range rows {
		if r.Command != "" && !slices.Contains(all, r.Command) && len(all) < 12 {
			all = append(all, r.Command)
		}
	}
	return all
}

func cell(s string) string { return strings.ReplaceAll(strings.ReplaceAll(s, "|", "\\|"), "\n", " ") }
