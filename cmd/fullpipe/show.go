package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render"
	"github.com/fullpipe-net/fullpipe/internal/render/html"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
)

// showFlags say in which form a stored document is shown.
type showFlags struct {
	html      string
	csv       bool
	details   bool
	anonymize bool
}

func newShow() *cobra.Command {
	var f showFlags
	cmd := &cobra.Command{
		Use:   "show FILE|-",
		Short: "render any stored document again",
		Long: `show reads what a command printed with --json, or what history exported, and prints it
as the command did: as text, as a page, as a table or as the same JSON. It measures
nothing and changes nothing.`,
		Example: `  fullpipe measure server.example.net --json > run.json; fullpipe show run.json
  fullpipe show run.json --html run.html
  fullpipe show run.json --json --anonymize`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return f.show(cmd, args[0]) },
	}
	f.add(cmd)
	return cmd
}

func (f *showFlags) add(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&f.html, "html", "", "write it as a page to this `file` instead; - is standard output")
	fl.BoolVar(&f.csv, "csv", false, "print it as comma-separated values: sweeps and captures")
	fl.BoolVar(&f.details, "details", false, "of captures: all that is known of each connection")
	fl.BoolVar(&f.anonymize, "anonymize", false, "replace addresses, names of hosts and files, identifiers and labels "+
		"by made-up ones")
}

func (f *showFlags) show(cmd *cobra.Command, name string) error {
	stored, err := readInput(cmd, name, record.MostBytes)
	if err != nil {
		return err
	}
	return f.print(cmd, name, stored, nil)
}

// print shows a document in the form that was asked for.
func (f *showFlags) print(cmd *cobra.Command, name string, stored, samples []byte) error {
	doc, err := decode(cmd.Context(), stored, samples)
	switch {
	case errors.Is(err, context.Canceled):
		return exitStatus(statusInterrupted)
	case errors.Is(err, record.ErrUnknown):
		return &usageError{name, plain(err), "what a command printed with --json, or a newer fullpipe"}
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
		page, err := createOutput(cmd, "--html", f.html)
		if err != nil {
			return err
		}
		defer page.Discard()
		return writeOutput("--html", page, func(w io.Writer) error { return html.Write(w, doc) })
	case wantsJSON(cmd) && f.anonymize:
		return printJSON(out, doc)
	case wantsJSON(cmd): // as it came, also what this version does not know
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
