// Command summary reads the output of `go test -json` and prints what a person needs of it: the output of
// failed tests, the skipped tests by feature, the slowest tests, and the counts.
package main

import (
	"fmt"
	"io"
	"os"
)

func main() {
	failed, err := run(os.Stdin, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "summary:", err)
	}
	if failed > 0 || err != nil {
		os.Exit(1)
	}
}

// run returns how many tests failed.
func run(stdin io.Reader, stdout io.Writer) (int, error) {
	r := newReport(stdout)
	err := r.read(stdin)
	r.finish()
	return r.failed, err
}
