package hub

import (
	"context"
	"encoding/json"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/cli/exit"
	"github.com/fullpipe-net/fullpipe/internal/cli/hook"
	"github.com/fullpipe-net/fullpipe/internal/fleet/incident"
	"github.com/fullpipe-net/fullpipe/internal/fleet/mesh"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
	"github.com/fullpipe-net/fullpipe/internal/store"
	"github.com/fullpipe-net/fullpipe/internal/web"
)

// alertTime limits a report.
const alertTime = 2 * time.Minute

// The receivers of the command line.
const (
	programReceiver      = "--on-change"
	webhookReceiver      = "--webhook"
	alertmanagerReceiver = "--alertmanager"
)

// receivers returns the receivers of the command line. Each takes its own reports: one that is away repeats nothing at
// the others.
func (f *serveFlags) receivers() (map[string]mesh.Alert, error) {
	all := map[string]mesh.Alert{}
	if err := f.alerts.Check(); err != nil {
		return nil, err
	}
	if f.alerts.Program != "" {
		all[programReceiver] = mesh.Alert{}
	}
	if f.alerts.Webhook != "" {
		all[webhookReceiver] = mesh.Alert{Webhook: f.alerts.Webhook}
	}
	if f.alertmanager != "" {
		if err := mesh.CheckWebhook(f.alertmanager); err != nil {
			return nil, exit.Usage(alertmanagerReceiver, err.Error(), "--alertmanager https://alertmanager.example.net")
		}
		all[alertmanagerReceiver] = mesh.Alert{Alertmanager: f.alertmanager}
	}
	return all, nil
}

// incidentDocument is what receivers get of an incident.
type incidentDocument struct {
	Schema   string            `json:"schema"`
	ID       string            `json:"id"` // of this report: the same when it is repeated
	At       time.Time         `json:"at"`
	Change   incident.Change   `json:"change"`
	Text     string            `json:"text"`
	Incident web.FleetIncident `json:"incident"`
}

// report sends an incident to one receiver. The error says that it did not take it.
func (f *serveFlags) report(ctx context.Context, n store.Notice, to mesh.Alert) error {
	encoded, err := json.Marshal(incidentDocument{Schema: "fullpipe/incident/v1", ID: n.ID, At: n.At, Change: n.Change,
		Text: text.IncidentNotice(&n.Notice), Incident: web.NewFleetIncident(n.Incident, n.Names)})
	if err != nil {
		return err
	}
	target := hook.Target{Webhook: to.Webhook, Once: true}
	if n.Target == programReceiver {
		target.Program = f.alerts.Program
	}
	ctx, cancel := context.WithTimeout(ctx, alertTime)
	defer cancel()
	return target.Send(ctx, nil, encoded)
}
