package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/report"
)

// started is when this process began its work; the contract dates every object by it.
var started = time.Now().UTC().Round(time.Millisecond)

func newHeader(cmd *cobra.Command) report.Header {
	return report.Header{Schema: "fullpipe/" + cmd.Name() + "/v1", Version: version(), StartedAt: started}
}

func printJSON(w io.Writer, doc any) error {
	compact, err := json.Marshal(doc)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	out.Grow(2 * len(compact)) // an Encoder would grow it again and again
	if err := json.Indent(&out, compact, "", "  "); err != nil {
		return err
	}
	out.WriteByte('\n')
	_, err = w.Write(out.Bytes())
	return err
}

// document is what a command prints: an object for programs, text for people.
type document interface{ WriteText(io.Writer) }

// show prints a command's document in the form that was asked for.
func show(cmd *cobra.Command, doc document) error {
	if wantsJSON(cmd) {
		return printJSON(cmd.OutOrStdout(), doc)
	}
	doc.WriteText(cmd.OutOrStdout())
	return nil
}

// showCut prints what was measured before an error, which goes into the document's own
// place for it.
func showCut(cmd *cobra.Command, doc document, into **report.Failure, err error) error {
	failure, status := describe(cmd.Context(), err)
	*into = &failure
	if err := show(cmd, doc); err != nil {
		return err
	}
	if !wantsJSON(cmd) {
		fmt.Fprintln(cmd.ErrOrStderr(), "fullpipe: "+failure.Text())
	}
	return exitStatus(status)
}
