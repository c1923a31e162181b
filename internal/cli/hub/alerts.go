package hub

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fullpipe-net/fullpipe/internal/cli/console"
	"github.com/fullpipe-net/fullpipe/internal/cli/hook"
	"github.com/fullpipe-net/fullpipe/internal/fleet/hub"
	"github.com/fullpipe-net/fullpipe/internal/fleet/mesh"
	"github.com/fullpipe-net/fullpipe/internal/render"
)

// alertFlags say where changes are reported.
type alertFlags struct{ webhook, program string }

func (f *alertFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.webhook, "webhook", "", "post each alert as JSON to this `URL`")
	flags.StringVar(&f.program, "on-change", "", "run this `PROGRAM` at each alert, with its JSON on standard input")
}

// alertTime limits a webhook or program.
const alertTime = 30 * time.Second

// alertDocument is an alert as JSON.
type alertDocument struct {
	Schema string       `json:"schema"`
	At     time.Time    `json:"at"`
	Text   string       `json:"text"`
	Cause  string       `json:"cause,omitempty"` // kind of the common cause: host-receives, link, …
	Name   string       `json:"name,omitempty"`
	Task   string       `json:"task"`
	Change string       `json:"change"`
	Events []alertEvent `json:"events"`
	Usual  int          `json:"as_usual"` // directions with the same cause that did not change
}

type alertEvent struct {
	Run      string    `json:"run"`
	Sender   string    `json:"sender"`
	Receiver string    `json:"receiver"`
	Metric   string    `json:"metric"`
	Kind     string    `json:"kind"`
	At       time.Time `json:"at"`
	Before   string    `json:"before"`
	After    string    `json:"after"`
}

// report sends an alert to the webhook and the program of the command line, and to those of the mesh file.
func (f *alertFlags) report(ctx context.Context, cmd *cobra.Command, a hub.Alert, to []mesh.Alert) {
	doc := alertDocument{Schema: "fullpipe/alert/v1", At: time.Now().UTC(), Text: a.String(), Cause: string(a.Cause.Kind),
		Name: a.Cause.Name, Task: a.Task, Change: a.Change, Usual: a.AsUsual}
	for _, e := range a.Events {
		doc.Events = append(doc.Events, alertEvent{e.Run, a.Names[e.Sender], a.Names[e.Receiver], e.Metric, e.Kind, e.At,
			e.Old, e.New})
	}
	console.Note(cmd, "alert: %s", render.Line(doc.Text))
	text, err := json.Marshal(doc)
	if err != nil {
		console.Note(cmd, "alert: %v", err)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, alertTime)
	defer cancel()
	for _, target := range append([]mesh.Alert{{Webhook: f.webhook, Program: f.program}}, to...) {
		if target.Webhook != "" {
			if err := post(ctx, target.Webhook, text); err != nil {
				console.Note(cmd, "webhook %s: %v", target.Webhook, err)
			}
		}
		if target.Program != "" {
			output, err := hook.Run(ctx, []string{target.Program}, nil, text)
			if err != nil {
				console.Note(cmd, "program %s: %v %s", target.Program, err, render.Line(string(output)))
			}
		}
	}
}

func post(ctx context.Context, url string, text []byte) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(text))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	response.Body.Close()
	if response.StatusCode >= http.StatusBadRequest {
		return &statusError{response.Status}
	}
	return nil
}

type statusError struct{ status string }

func (e *statusError) Error() string { return "the server replied " + e.status }
