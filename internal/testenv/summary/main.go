// Command summary reads the output of `go test -json` and prints what a person needs of it: the output of
// failed tests, the skipped tests by feature, the slowest tests, and the counts.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
)

func main() {
	left := flag.String("left", "", "write the tests that are left to make test-all to `FILE`, one a line")
	flag.Parse()
	failed, err := run(os.Stdin, os.Stdout, *left)
	if err != nil {
		fmt.Fprintln(os.Stderr, "summary:", err)
	}
	if failed > 0 || err != nil {
		os.Exit(1)
	}
}

// run returns how many tests failed. It writes the tests that were left out to the file left, unless that is "".
func run(stdin io.Reader, stdout io.Writer, left string) (int, error) {
	r := newReport(stdout)
	err := r.read(stdin)
	r.finish()
	if left != "" && err == nil {
		err = os.WriteFile(left, []byte(r.leftOut()), 0o644)
	}
	return r.failed, err
}
