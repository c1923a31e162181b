package hub

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/cli/console"
	"github.com/fullpipe-net/fullpipe/internal/cli/hook"
	"github.com/fullpipe-net/fullpipe/internal/fleet/incident"
	"github.com/fullpipe-net/fullpipe/internal/fleet/mesh"
	"github.com/fullpipe-net/fullpipe/internal/render"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
	"github.com/fullpipe-net/fullpipe/internal/store"
	"github.com/fullpipe-net/fullpipe/internal/web"
)

// alertTime limits a report.
const alertTime = 2 * time.Minute

// incidentDocument is what receivers get of an incident.
type incidentDocument struct {
	Schema   string            `json:"schema"`
	ID       string            `json:"id"` // of this report: the same when it is repeated
	At       time.Time         `json:"at"`
	Change   incident.Change   `json:"change"`
	Text     string            `json:"text"`
	Incident web.FleetIncident `json:"incident"`
}

// report sends an incident to one receiver: the program and the webhook of the command line, or a webhook of the mesh
// file. The error says that it did not take it.
func (f *serveFlags) report(ctx context.Context, cmd *cobra.Command, n store.Notice, to mesh.Alert) error {
	doc := incidentDocument{Schema: "fullpipe/incident/v1", ID: n.ID, At: n.At, Change: n.Change,
		Text: text.IncidentNotice(&n.Notice), Incident: web.NewFleetIncident(n.Incident, n.Names)}
	target := hook.Target{Webhook: to.Webhook, Once: true}
	if n.Target == "" {
		console.Note(cmd, "%s", render.Line(doc.Text))
		target = f.alerts
		target.Once = true
	}
	encoded, err := json.Marshal(doc)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, alertTime)
	defer cancel()
	return errors.Join(target.Check(), target.Send(ctx, nil, encoded))
}
