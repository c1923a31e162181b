package hub

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/cli/console"
	"github.com/fullpipe-net/fullpipe/internal/fleet/hub"
	"github.com/fullpipe-net/fullpipe/internal/render"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
	"github.com/fullpipe-net/fullpipe/internal/serverlog"
	"github.com/fullpipe-net/fullpipe/internal/store"
	"github.com/fullpipe-net/fullpipe/internal/web"
)

// hubLine is a line of serve --json.
type hubLine struct {
	At     time.Time `json:"at"`
	Event  string    `json:"event"`
	Agent  string    `json:"agent,omitempty"`
	By     string    `json:"by,omitempty"` // of a change: the account; of a refused one also an address
	Run    string    `json:"run,omitempty"`
	Pair   []string  `json:"pair,omitempty"`
	State  string    `json:"state,omitempty"`
	Reason string    `json:"reason,omitempty"`
	Detail string    `json:"detail,omitempty"`
}

// untrusted are the events that agents and strangers can cause at will.
var untrusted = map[string]bool{"error": true, "refused": true}

// printEvent prints an event of the hub.
func printEvent(cmd *cobra.Command, out *serverlog.Log, e hub.Event) {
	line := hubLine{At: time.Now().UTC(), Event: e.Kind, Agent: e.Agent, Run: e.Run, State: string(e.State),
		Reason: string(e.Reason), Detail: e.Detail}
	if e.Notice != nil {
		line.Detail = strings.TrimSpace(text.IncidentNotice(e.Notice))
	}
	if e.Pair[0] != "" {
		line.Pair = e.Pair[:]
	}
	printLine(cmd, out, line)
}

func printLine(cmd *cobra.Command, out *serverlog.Log, line hubLine) {
	switch line.Event {
	case "started", "ended": // the hub makes runs itself
		_, _ = out.Results().Write([]byte(line.text(cmd) + "\n")) // lines that are not read in time are counted
	default:
		out.Print(serverlog.Kind{Event: line.Event, Trusted: !untrusted[line.Event]},
			func() string { return line.text(cmd) })
	}
}

func (l hubLine) text(cmd *cobra.Command) string {
	if console.WantsJSON(cmd) {
		line, _ := json.Marshal(l) // texts and times
		return string(line)
	}
	out := l.At.Format(time.TimeOnly) + "  " + l.Event
	for _, word := range append([]string{l.Agent, l.By, l.State, l.Reason, l.Detail}, l.Pair...) {
		if word != "" {
			out += "  " + word
		}
	}
	return render.Line(out)
}

// recordChange stores a change that a user of the page or the API made. A refused one is printed.
func recordChange(ctx context.Context, cmd *cobra.Command, events *serverlog.Log, fleet *store.Fleet, c web.Change) {
	line := hubLine{At: c.At.UTC(), Event: "changed", By: c.By, Detail: strings.TrimSpace(c.Action + " " + c.Detail)}
	if c.Refused() {
		line.Event = "refused"
		line.Reason = fmt.Sprint(c.Status)
		printLine(cmd, events, line)
		return
	}
	printLine(cmd, events, line)
	if err := fleet.Audit(ctx, auditEntry(c.At, c.By, c.Action, c.Detail)); err != nil {
		printEvent(cmd, events, hub.Event{Kind: "error", Detail: "a change is not in the log: " + err.Error()})
	}
}
