package present

import (
	"encoding/json"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/build"
	"github.com/fullpipe-net/fullpipe/internal/cli/console"
	"github.com/fullpipe-net/fullpipe/internal/lab"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render"
	"github.com/fullpipe-net/fullpipe/internal/report"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// HeaderOf returns the header of a document of another kind than the command's name.
func HeaderOf(cmd *cobra.Command, kind string) record.Header {
	h := Header(cmd)
	h.Schema = "fullpipe/" + kind + "/v1"
	return h
}

// Started is when this process began its work; the contract dates every object by it.
var Started = time.Now().UTC().Round(time.Millisecond)

// Header returns the header of a command's document.
func Header(cmd *cobra.Command) record.Header {
	return record.Header{Schema: "fullpipe/" + cmd.Name() + "/v1", Version: build.Version(), StartedAt: Started}
}

// JSON writes a document, or another object of the contract, as its JSON.
func JSON(w io.Writer, doc any) error {
	return record.WriteAny(render.NewWriter(w), doc)
}

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

// Object prints a command's JSON document: indented, or as the last line of a stream.
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

// TooLate says that this runs in a lab that was too late to be believed.
func TooLate() bool {
	account, in, err := lab.Around()
	return err == nil && in && !account.Believable()
}

func newLate(a lab.Lateness) *record.Late {
	return &record.Late{LinkLate: NewLinkLate(a.Worse()), Up: NewLinkLate(a.Up), Down: NewLinkLate(a.Down),
		RTTS: a.RTT.Seconds(), FloorS: a.Floor.Round(time.Microsecond).Seconds(), Believable: a.Believable()}
}

// NewLinkLate returns a link's lateness as records have it.
func NewLinkLate(l lab.Late) record.LinkLate {
	seconds := func(d time.Duration) float64 { return d.Round(time.Microsecond).Seconds() }
	return record.LinkLate{P50S: seconds(l.P50), P99S: seconds(l.P99), MaxS: seconds(l.Max), Stalls: l.Stalls,
		StalledS: seconds(l.Stalled), WatchedS: seconds(l.Watched)}
}
