package hub

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/cli/hook"
	"github.com/fullpipe-net/fullpipe/internal/fleet/incident"
	"github.com/fullpipe-net/fullpipe/internal/fleet/mesh"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
)

// alertLasts is how long an Alertmanager keeps an alert that is not repeated: longer than a hub's restart.
const alertLasts = 10 * time.Minute

// alert is an alert in the API v2 of Alertmanager. Labels are its identity.
type alert struct {
	Labels       map[string]string `json:"labels"`
	Annotations  map[string]string `json:"annotations"`
	StartsAt     time.Time         `json:"startsAt"`
	EndsAt       time.Time         `json:"endsAt"`
	GeneratorURL string            `json:"generatorURL"`
}

// alertmanagers sends incidents to Alertmanagers.
type alertmanagers struct {
	page string // URL of the hub
	mu   sync.Mutex
	sent map[string]map[string]alert // the open ones that an Alertmanager has, by its name and the incident's ID
}

func newAlertmanagers(page string) *alertmanagers {
	return &alertmanagers{page: page, sent: map[string]map[string]alert{}}
}

// sync sends all incidents to one Alertmanager. An incident whose labels have changed is another alert there: the
// earlier one ends.
func (a *alertmanagers) sync(ctx context.Context, all []incident.Notice, name string, to mesh.Alert) error {
	a.mu.Lock()
	before := a.sent[name]
	a.mu.Unlock()
	now := time.Now().UTC()
	open := map[string]alert{}
	alerts := []alert{}
	for i := range all {
		one := a.alertOf(&all[i], now)
		id := all[i].Incident.ID
		if known, ok := before[id]; ok && !maps.Equal(known.Labels, one.Labels) {
			known.EndsAt = now
			alerts = append(alerts, known)
		}
		if all[i].Incident.Open() {
			open[id] = one
		}
		alerts = append(alerts, one)
	}
	if len(alerts) == 0 {
		return nil
	}
	encoded, err := json.Marshal(alerts)
	if err != nil {
		return err
	}
	if _, err := hook.Post(ctx, strings.TrimSuffix(to.Alertmanager, "/")+"/api/v2/alerts", encoded); err != nil {
		return fmt.Errorf("alertmanager: %w", err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sent[name] = open
	return nil
}

// alertOf returns an incident as an alert.
func (a *alertmanagers) alertOf(n *incident.Notice, now time.Time) alert {
	i := &n.Incident
	labels := map[string]string{"alertname": "FullpipeIncident", "site": i.Site, "task": i.Task, "limiter": i.Limiter}
	if len(i.Symptoms) > 0 {
		labels["symptom"] = string(i.Symptoms[0])
	}
	var ends []string
	for id := range strings.FieldsSeq(i.Cause.ID) {
		if name := n.Names[id]; name != "" {
			id = name
		}
		ends = append(ends, id)
	}
	if noun := i.Cause.Kind.Noun(); noun != "site" && len(ends) > 0 {
		labels[noun] = strings.Join(ends, " ") // host, link or path
	}
	maps.DeleteFunc(labels, func(_, value string) bool { return value == "" })
	out := alert{Labels: labels, StartsAt: i.OpenedAt.UTC(), EndsAt: now.Add(alertLasts),
		GeneratorURL: a.page + "/fleet/incidents#" + i.ID,
		Annotations: map[string]string{"summary": text.IncidentHeadline(i, n.Names),
			"description": strings.TrimSpace(text.IncidentText(i, n.Names))}}
	if !i.Open() {
		out.EndsAt = i.ResolvedAt.UTC()
	}
	return out
}
