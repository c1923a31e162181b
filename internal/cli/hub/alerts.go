package hub

import (
	"context"
	"encoding/json"
	"time"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/cli/console"
	"github.com/fullpipe-net/fullpipe/internal/cli/hook"
	"github.com/fullpipe-net/fullpipe/internal/fleet/hub"
	"github.com/fullpipe-net/fullpipe/internal/fleet/mesh"
	"github.com/fullpipe-net/fullpipe/internal/render"
	"github.com/fullpipe-net/fullpipe/internal/web"
)

// alertTime limits all reports of an alert.
const alertTime = 2 * time.Minute

// alertDocument is an alert as JSON.
type alertDocument struct {
	Schema string           `json:"schema"`
	At     time.Time        `json:"at"`
	Text   string           `json:"text"`
	Cause  string           `json:"cause,omitempty"` // kind of the common cause: host-receives, link, …
	Name   string           `json:"name,omitempty"`
	Task   string           `json:"task"`
	Change string           `json:"change"`
	Events []web.FleetEvent `json:"events"`
	Usual  int              `json:"as_usual"` // directions with the same cause that did not change
}

// report sends an alert to the program and the webhook of the command line, and to the webhooks of the mesh file.
func (f *serveFlags) report(ctx context.Context, cmd *cobra.Command, a hub.Alert, to []mesh.Alert) {
	doc := alertDocument{Schema: "fullpipe/alert/v1", At: time.Now().UTC(), Text: a.String(), Cause: string(a.Cause.Kind),
		Name: a.Cause.Name, Task: a.Task, Change: a.Change, Usual: a.AsUsual}
	for _, e := range a.Events {
		doc.Events = append(doc.Events, web.NewFleetEvent(e, a.Names))
	}
	console.Note(cmd, "alert: %s", render.Line(doc.Text))
	text, err := json.Marshal(doc)
	if err != nil {
		console.Note(cmd, "alert: %v", err)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, alertTime)
	defer cancel()
	targets := []hook.Target{f.alerts}
	for _, one := range to {
		targets = append(targets, hook.Target{Webhook: one.Webhook})
	}
	for _, target := range targets {
		err := target.Check()
		if err == nil {
			err = target.Send(ctx, nil, text)
		}
		if err != nil {
			console.Note(cmd, "alert: %v", err)
		}
	}
}
