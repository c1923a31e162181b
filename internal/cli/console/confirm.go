package console

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/cli/exit"
)

// Confirm asks on standard error and reads the answer where there is a person.
func Confirm(cmd *cobra.Command, question string) error {
	in := cmd.InOrStdin()
	if !IsTerminal(in) || WantsJSON(cmd) {
		return exit.Usage("--yes", "there is nobody to ask", "--yes to make the changes, --dry-run to see them")
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "%s [y/N] ", question)
	type line struct {
		text string
		err  error
	}
	typed := make(chan line, 1)
	go func() { // a read from a terminal cannot be broken off: it ends with the program
		text, err := bufio.NewReader(in).ReadString('\n')
		typed <- line{text, err}
	}()
	var answer line
	select {
	case <-cmd.Context().Done():
		return cmd.Context().Err()
	case answer = <-typed:
	}
	if answer.err != nil && !errors.Is(answer.err, io.EOF) {
		return answer.err
	}
	if word := strings.ToLower(strings.TrimSpace(answer.text)); word != "y" && word != "yes" {
		return errors.New("nothing was changed")
	}
	return nil
}
