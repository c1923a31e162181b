package present

import (
	"encoding/json"
	"io"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/cli/console"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/report"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// intervalEvent is a line of measure --json-stream.
type intervalEvent struct {
	Event     string             `json:"event"` // interval
	Direction transfer.Direction `json:"direction"`
	record.Interval
}

// Interval prints the last interval as it comes, where that was asked for.
func Interval(cmd *cobra.Command, d transfer.Direction, soFar []transfer.Interval) {
	if console.WantsStream(cmd) {
		all := report.Intervals(soFar)
		json.NewEncoder(cmd.OutOrStdout()).Encode(intervalEvent{"interval", d, all[len(all)-1]})
	}
}

// Object prints a command's object: indented, or in a stream as its last line.
func Object(cmd *cobra.Command, w io.Writer, doc any) error {
	if !console.WantsStream(cmd) {
		return JSON(w, doc)
	}
	text, err := json.Marshal(doc)
	if err != nil {
		return err
	}
	line := append([]byte(`{"event":"result",`), text[1:]...)
	_, err = w.Write(append(line, '\n'))
	return err
}
