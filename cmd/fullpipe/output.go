package main

import (
	"bytes"
	"fmt"
	"io"
	"sync"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/output"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
	"github.com/fullpipe-net/fullpipe/internal/serverlog"
)

// show prints a command's document in the form that was asked for.
func show(cmd *cobra.Command, doc record.Document) (err error) {
	switch doc.(type) {
	case *record.Measure, *record.MeasureUDP, *record.Capacity, *record.Compare:
		noteLate(cmd, doc)
	}
	defer func() { err = first(cmd, err, keep(cmd, doc)) }()
	if outputTaken(cmd) {
		return nil
	}
	if wantsJSON(cmd) {
		return printObject(cmd, cmd.OutOrStdout(), doc)
	}
	if table, err := cmd.Flags().GetBool("csv"); err == nil && table {
		return text.CSV(cmd.OutOrStdout(), doc)
	}
	return text.Write(cmd.OutOrStdout(), doc)
}

// showCut prints what was measured before an error, which goes into the document's own
// place for it.
func showCut(cmd *cobra.Command, doc record.Document, into **record.Failure, err error) error {
	failure, status := describe(cmd.Context(), err)
	*into = &failure
	if err := show(cmd, doc); err != nil {
		return err
	}
	if !wantsJSON(cmd) {
		tell(cmd, failure)
	}
	return exitStatus(status)
}

// failureText is an error as lines for a terminal.
func failureText(f record.Failure) string { return text.Failure(render.Document(f)) }

// isQuiet says that nothing but errors belongs on standard error.
func isQuiet(cmd *cobra.Command) bool {
	v, err := cmd.Flags().GetBool("quiet")
	return err == nil && v
}

// progress is where notes and progress go.
func progress(cmd *cobra.Command) io.Writer {
	if isQuiet(cmd) {
		return io.Discard
	}
	return cmd.ErrOrStderr()
}

// note says something on standard error, on a line of its own. Where that is a server's log, the
// format is the kind of event.
func note(cmd *cobra.Command, format string, args ...any) {
	if isQuiet(cmd) {
		return
	}
	if log := logOf(cmd); log != nil {
		log.Note(serverlog.Kind{Event: format}, fmt.Sprintf(format, args...))
		return
	}
	fmt.Fprintln(cmd.ErrOrStderr(), render.Line(fmt.Sprintf(format, args...)))
}

// tell says on standard error what failed.
func tell(cmd *cobra.Command, f record.Failure) {
	fmt.Fprintln(cmd.ErrOrStderr(), "fullpipe: "+failureText(f))
}

// createOutput begins the file that a flag names, before anything is measured for it;
// without a name it answers nil, which takes and keeps nothing.
func createOutput(cmd *cobra.Command, flag, name string) (*output.File, error) {
	if name == "" {
		return nil, nil
	}
	if name == "-" {
		if wantsJSON(cmd) || flagged(cmd, "csv") {
			return nil, &usageError{flag, "standard output takes one form", "a file, or no --json, --json-stream and --csv"}
		}
		return output.Over(unescaped(cmd)), nil
	}
	file, err := output.Create(cmd.Context(), name)
	return file, outputError(cmd, flag, err)
}

// outputTaken says that standard output is a page's or a picture's, named by "-".
func outputTaken(cmd *cobra.Command) bool {
	for _, name := range []string{"html", "picture"} {
		if f := cmd.Flags().Lookup(name); f != nil && f.Value.String() == "-" {
			return true
		}
	}
	return false
}

// streamOutput begins a file that can be read while it is written.
func streamOutput(cmd *cobra.Command, flag, name string) (*output.File, error) {
	if name == "" {
		return nil, nil
	}
	file, err := output.Stream(cmd.Context(), name)
	return file, outputError(cmd, flag, err)
}

func outputError(cmd *cobra.Command, flag string, err error) error {
	if err == nil || cmd.Context().Err() != nil {
		return err
	}
	return &usageError{flag, plain(err), "a file that can be written"}
}

// writeOutput fills the file that a flag named and gives it its name.
func writeOutput(flag string, file *output.File, write func(io.Writer) error) error {
	if file == nil {
		return nil
	}
	err := render.Written(file, write)
	if err == nil {
		err = file.Commit()
	}
	if err != nil {
		return fmt.Errorf("%s: %w", flag, err)
	}
	return nil
}

// holdNotes keeps what is said on standard error until the table that is shown on the
// terminal is over.
func holdNotes(cmd *cobra.Command) (tellThem func()) {
	was := cmd.ErrOrStderr()
	held := &boundedText{}
	cmd.SetErr(held)
	return func() {
		cmd.SetErr(was)
		_, _ = was.Write(held.kept())
	}
}

// boundedText keeps the first 64 KiB of what is written to it and drops the rest.
type boundedText struct {
	mu   sync.Mutex // guards text
	text []byte
}

func (b *boundedText) Write(p []byte) (int, error) {
	const maxBytes = 64 << 10
	b.mu.Lock()
	defer b.mu.Unlock()
	b.text = append(b.text, p[:min(len(p), maxBytes-len(b.text))]...)
	return len(p), nil
}

func (b *boundedText) kept() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return bytes.Clone(b.text)
}
