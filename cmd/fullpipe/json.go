package main

import (
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render"
)

// started is when this process began its work; the contract dates every object by it.
var started = time.Now().UTC().Round(time.Millisecond)

func newHeader(cmd *cobra.Command) record.Header {
	return record.Header{Schema: "fullpipe/" + cmd.Name() + "/v1", Version: version(), StartedAt: started}
}

// printJSON writes a document, or another object of the contract, as its JSON.
func printJSON(w io.Writer, doc any) error {
	encoded, err := record.EncodeAny(doc)
	if err != nil {
		return err
	}
	_, err = render.NewWriter(w).Write(encoded)
	return err
}
