// Package present prints what a command found, in the form that was asked for, and has it recorded.
package present

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/atomicfile"
	"github.com/fullpipe-net/fullpipe/internal/cli/console"
	"github.com/fullpipe-net/fullpipe/internal/cli/exit"
	"github.com/fullpipe-net/fullpipe/internal/history"
	"github.com/fullpipe-net/fullpipe/internal/lab"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
)

// NoteLate adds the envelope of a measured document, and in a lab the lab's lateness. A lab that does not respond is a
// note.
func NoteLate(cmd *cobra.Command, doc record.Document) {
	history.Seal(cmd, doc)
	account, in, err := lab.Around()
	switch {
	case err != nil:
		console.Note(cmd, "fullpipe: note: %v", err)
	case in:
		if doc.Head().Late == nil { // once, also if Document is called after NoteLate
			doc.Head().Late = newLate(account)
			record.LowerDoubtful(doc)
		}
	}
}

// Document prints a command's document in the form that was asked for.
func Document(cmd *cobra.Command, doc record.Document) (err error) {
	switch doc.(type) {
	case *record.Measure, *record.MeasureUDP, *record.MeasureRequests, *record.Capacity, *record.Compare:
		NoteLate(cmd, doc)
	}
	defer func() { err = history.First(cmd, err, history.Keep(cmd, doc)) }()
	if console.TakesOutput(cmd) {
		return nil
	}
	if console.WantsJSON(cmd) {
		return Object(cmd, cmd.OutOrStdout(), doc)
	}
	if table, err := cmd.Flags().GetBool("csv"); err == nil && table {
		return text.CSV(cmd.OutOrStdout(), doc)
	}
	return text.Write(cmd.OutOrStdout(), doc)
}

// Incomplete stores an error in a document, at into, and prints the document.
func Incomplete(cmd *cobra.Command, doc record.Document, into **record.Failure, err error) error {
	failure, status := exit.Describe(cmd.Context(), err)
	*into = &failure
	if err := Document(cmd, doc); err != nil {
		return err
	}
	if !console.WantsJSON(cmd) {
		console.PrintFailure(cmd, failure)
	}
	return exit.Status(status)
}

// CreateFile creates the file that a flag names, before the measurement. Without a name it returns nil, which is valid
// and writes nothing.
func CreateFile(cmd *cobra.Command, flag, name string) (*atomicfile.File, error) {
	if name == "" {
		return nil, nil
	}
	if name == "-" {
		if console.WantsJSON(cmd) || console.IsSet(cmd, "csv") {
			return nil, exit.Usage(flag, "standard output can have only one format",
				"a file name instead of -, or leave out --json, --json-stream and --csv")
		}
		return atomicfile.Over(console.Unescaped(cmd)), nil
	}
	file, err := atomicfile.Create(cmd.Context(), name)
	return file, FileError(cmd, flag, err)
}

// StreamFile begins a file that can be read while it is written.
func StreamFile(cmd *cobra.Command, flag, name string) (*atomicfile.File, error) {
	if name == "" {
		return nil, nil
	}
	file, err := atomicfile.Stream(cmd.Context(), name)
	return file, FileError(cmd, flag, err)
}

// FileError returns the usage error of a file that cannot be written.
func FileError(cmd *cobra.Command, flag string, err error) error {
	if err == nil || cmd.Context().Err() != nil {
		return err
	}
	return exit.Usage(flag, exit.Plain(err), "a file that can be written")
}

// WriteFile fills the file that a flag named and gives it its name.
func WriteFile(flag string, file *atomicfile.File, write func(io.Writer) error) error {
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
