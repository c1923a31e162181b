package recheck

import (
	"context"
	"encoding/json"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/cli/console"
	"github.com/fullpipe-net/fullpipe/internal/cli/hook"
	"github.com/fullpipe-net/fullpipe/internal/record"
)

// notifyAfterInterrupt is the time that notifications may take after an interrupt.
const notifyAfterInterrupt = 700 * time.Millisecond

// notify passes an event to the program and the webhook. A failure is a note, because the event is printed as well.
func notify(ctx context.Context, cmd *cobra.Command, to *hook.Target, h record.Header, e *record.RecheckEvent) {
	object, err := json.Marshal(&record.Recheck{Header: h, Tests: []record.RecheckTest{},
		Events: []record.RecheckEvent{*e}})
	if err == nil {
		err = to.Send(ctx, eventValues(e), object)
	}
	if err != nil {
		console.Note(cmd, "%v", err)
	}
}

// eventValues returns an event's values for the program's environment: numbers in bit/s and seconds.
func eventValues(e *record.RecheckEvent) map[string]string {
	values := map[string]string{"EVENT": string(e.Event), "PEER": e.Far, "DIRECTION": e.Direction, "METRIC": e.Metric,
		"AT": e.At.UTC().Format(time.RFC3339), "SINCE": e.Since.UTC().Format(time.RFC3339), "RUN_ID": e.RunID,
		"CONFIDENCE": e.Confidence, "BEFORE": e.Before, "AFTER": e.After, "TEXT": e.Text}
	for name, either := range map[string][2]*float64{"BEFORE": {e.BeforeBps, e.BeforeRTTMinS},
		"AFTER": {e.AfterBps, e.AfterRTTMinS}} {
		for _, v := range either {
			if v != nil {
				values[name] = strconv.FormatFloat(*v, 'g', -1, 64)
			}
		}
	}
	return values
}
