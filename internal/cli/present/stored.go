package present

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/cli/console"
	"github.com/fullpipe-net/fullpipe/internal/cli/exit"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render"
	"github.com/fullpipe-net/fullpipe/internal/render/html"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
)

// StoredFlags say in which form a stored document is shown.
type StoredFlags struct {
	html      string
	csv       bool
	details   bool
	anonymize bool
}

// Add adds the flags.
func (f *StoredFlags) Add(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&f.html, "html", "", "write it as a page to this `file` instead; - is standard output")
	fl.BoolVar(&f.csv, "csv", false, "print it as comma-separated values: sweeps and captures")
	fl.BoolVar(&f.details, "details", false, "for captures: print everything known about each "+
		"connection")
	fl.BoolVar(&f.anonymize, "anonymize", false, "replace addresses, names of hosts and files, "+
		"identifiers and labels by invented ones")
}

// Print renders a document in the requested form.
func (f *StoredFlags) Print(cmd *cobra.Command, name string, stored, samples []byte) error {
	doc, err := decode(cmd.Context(), stored, samples)
	switch {
	case errors.Is(err, context.Canceled):
		return exit.Status(exit.Interrupted)
	case errors.Is(err, record.ErrUnknown):
		return exit.Usage(name, exit.Plain(err), "the output of a command with --json, or a newer fullpipe")
	case err != nil:
		return fmt.Errorf("%s: %w", name, err)
	}
	if f.anonymize {
		if doc, err = record.Anonymized(doc); err != nil {
			return err
		}
	}
	out := cmd.OutOrStdout()
	switch {
	case f.html != "":
		page, err := CreateFile(cmd, "--html", f.html)
		if err != nil {
			return err
		}
		defer page.Discard()
		return WriteFile("--html", page, func(w io.Writer) error { return html.Write(w, doc) })
	case console.WantsJSON(cmd) && f.anonymize:
		return JSON(out, doc)
	case console.WantsJSON(cmd): // as it came, also what this version does not know
		_, err := render.NewWriter(out).Write(stored)
		return err
	case f.csv:
		return text.CSV(out, doc)
	}
	if captured, ok := doc.(*record.Diagnose); ok {
		return text.Connections(out, captured, text.Rows, f.details)
	}
	return text.Write(out, doc)
}

// decode gives a large document up when ctx ends: nothing of it has been shown.
func decode(ctx context.Context, stored, samples []byte) (record.Document, error) {
	type result struct {
		doc record.Document
		err error
	}
	done := make(chan result, 1)
	go func() {
		doc, err := record.Decode(stored, samples)
		done <- result{doc, err}
	}()
	select {
	case r := <-done:
		if ctx.Err() == nil {
			return r.doc, r.err
		}
	case <-ctx.Done():
	}
	return nil, ctx.Err()
}
