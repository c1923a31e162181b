package main

import (
	"bytes"
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
