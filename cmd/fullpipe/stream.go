package main

import (
	"encoding/json"
	"io"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/report"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// wantsStream says that a command prints one JSON object a line as it goes.
func wantsStream(cmd *cobra.Command) bool {
	v, err := cmd.Flags().GetBool("json-stream")
	return err == nil && v
}

// intervalEvent is a line of measure --json-stream.
type intervalEvent struct {
	Event     string             `json:"event"` // interval
	Direction transfer.Direction `json:"direction"`
	record.Interval
}

// streamInterval prints the last interval as it comes, where that was asked for.
func streamInterval(cmd *cobra.Command, d transfer.Direction, soFar []transfer.Interval) {
	if wantsStream(cmd) {
		all := report.Intervals(soFar)
		json.NewEncoder(cmd.OutOrStdout()).Encode(intervalEvent{"interval", d, all[len(all)-1]})
	}
}

// printObject prints a command's object: indented, or in a stream as its last line.
func printObject(cmd *cobra.Command, w io.Writer, doc any) error {
	if !wantsStream(cmd) {
		return printJSON(w, doc)
	}
	text, err := json.Marshal(doc)
	if err != nil {
		return err
	}
	line := append([]byte(`{"event":"result",`), text[1:]...)
	_, err = w.Write(append(line, '\n'))
	return err
}
