package main

import (
	"encoding/json"
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
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(doc)
}
