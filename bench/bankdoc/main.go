// Command bankdoc writes docs/benchmarks.md from the rows that `make bank` measured, or with -bench the rows in
// Go's benchmark format.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
)

// row is one line of benchmarks.jsonl.
type row struct {
	Section, Case, Claim, Measured, Spread, Verdict, Late, Command, Machine, At string
}

func main() {
	write := page
	if len(os.Args) == 2 && os.Args[1] == "-bench" {
		write = bench
	}
	if err := write(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "bankdoc:", err)
		os.Exit(1)
	}
}

// read returns the newest row of each section, case and claim, in the order of their first appearance.
func read(in io.Reader) (rows []row, err error) {
	index := map[[3]string]int{}
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		var r row
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return nil, fmt.Errorf("a row is not JSON: %w", err)
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
