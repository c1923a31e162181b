package hub

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/fleet/incident"
	"github.com/fullpipe-net/fullpipe/internal/fleet/mesh"
	"github.com/fullpipe-net/fullpipe/internal/store"
)

const (
	// judgeEvery is the least time between two judgements: results that come together are judged together.
	judgeEvery = 10 * time.Second
	// judgeShare is the part of the time that judgements of a large fleet may take, as 1 in that many.
	judgeShare = 20
)

// judging is when the incidents are judged. All but the time of the next one is of the loop alone.
type judging struct {
	next   time.Time // zero: not
	last   time.Time
	since  time.Time // when this hub began to lead: before, hosts had no hub to reach
	frozen map[incident.Path]bool
	// silences are those of the last judgement.
	silences []incident.Silence
}

// noteChange judges the incidents soon. mu is locked.
func (h *Hub) noteChange(now time.Time) {
	soon := h.judging.last.Add(judgeEvery)
	if soon.Before(now) {
		soon = now
	}
	if h.judging.next.IsZero() || soon.Before(h.judging.next) {
		h.judging.next = soon
		h.poke()
	}
}

// judge decides about incidents, if it is time to, and stores the decision with its reports.
func (h *Hub) judge(ctx context.Context, now time.Time) error {
	h.mu.Lock()
	due := !h.judging.next.IsZero() && !now.Before(h.judging.next)
	h.mu.Unlock()
	if !due {
		return nil
	}
	began := time.Now()
	state, err := h.stateOf(ctx, now)
	if err != nil {
		return err
	}
	d := incident.Judge(state, func() string { return newID(now) })
	notices := h.address(d.Notices, now)
	if len(d.Incidents)+len(d.Pairs) > 0 {
		if err := h.Fleet.SaveDecision(ctx, h.lead, d, notices, now); err != nil {
			return err
		}
	}
	for k := range d.Notices {
		h.event(Event{Kind: "incident", Notice: &d.Notices[k]})
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.judging.silences = state.Silences
	h.freeze(slices.Concat(d.Incidents, state.Incidents), now)
	if h.judging.last.IsZero() { // the hub before may have ended before these were due
		h.ask(h.withoutJob(d.Waiting), now)
	}
	h.ask(d.Pairs, now)
	h.judging.last = now.Add((judgeShare - 1) * time.Since(began))
	h.judging.next = d.Wake
	if soonest := now.Add(judgeEvery); !d.Wake.IsZero() && d.Wake.Before(soonest) {
		h.judging.next = soonest
	}
	if len(notices) > 0 {
		h.sendAt(now)
	}
	if len(d.Incidents) > 0 && !h.outbox.syncAt.IsZero() {
		h.outbox.syncAt = now
	}
	return nil
}

// freeze sets the directions whose usual level stays. The first of several incidents with an ID counts. mu is locked.
func (h *Hub) freeze(incidents []incident.Incident, now time.Time) {
	known := map[string]bool{}
	incidents = slices.DeleteFunc(incidents, func(i incident.Incident) bool {
		twice := known[i.ID]
		known[i.ID] = true
		return twice
	})
	h.judging.frozen = incident.Frozen(incidents, now)
}

// ask makes pairs due at once. mu is locked.
func (h *Hub) ask(pairs []string, now time.Time) {
	for _, key := range pairs {
		p := h.pairs[key]
		if p == nil {
			continue
		}
		p.asked = now
		p.test = p.quiet.Advance(now, 0)
		h.dues.add(p.test, key)
	}
}

// withoutJob returns the pairs that have no run that waits or runs. mu is locked.
func (h *Hub) withoutJob(pairs []string) []string {
	open := map[string]bool{}
	for _, j := range h.jobs {
		open[j.Pair] = true
	}
	for _, r := range h.runs {
		open[r.job.Pair] = true
	}
	return slices.DeleteFunc(pairs, func(key string) bool { return open[key] })
}

// readIncidents reads which directions open incidents have, for the results that this hub stores; a hub that leads
// decides that itself. It judges the incidents if users have changed the silences.
func (h *Hub) readIncidents(ctx context.Context, now time.Time) error {
	if !h.leading || h.judging.frozen == nil {
		incidents, err := h.Fleet.Incidents(ctx, now)
		if err != nil {
			return err
		}
		h.mu.Lock()
		h.freeze(incidents, now)
		h.mu.Unlock()
	}
	if !h.leading {
		return nil
	}
	silences, err := h.Fleet.Silences(ctx, now)
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !slices.Equal(silences, h.judging.silences) {
		h.noteChange(now)
	}
	return nil
}

// stateOf returns what incidents are judged by.
func (h *Hub) stateOf(ctx context.Context, now time.Time) (s incident.State, err error) {
	s.Now = now
	if s.Incidents, err = h.Fleet.Incidents(ctx, now.Add(-incident.Reopens)); err != nil {
		return s, err
	}
	if s.Silences, err = h.Fleet.Silences(ctx, now); err != nil {
		return s, err
	}
	rows, err := h.Fleet.Directions(ctx, "", "", "")
	if err != nil {
		return s, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	s.Since = h.judging.since
	sites := map[string]string{}
	for _, m := range h.members {
		host := incident.Host{ID: m.ID, Name: m.Name, Seen: m.seen,
			Site: h.mesh.SiteOf(m.hello.Agent(m.ID, m.Name, m.Labels))}
		sites[m.ID] = host.Site
		s.Hosts = append(s.Hosts, host)
	}
	slices.SortFunc(s.Hosts, func(a, b incident.Host) int { return cmp.Compare(a.Name, b.Name) })
	for key, p := range h.pairs {
		var links []string
		for _, r := range p.Needs {
			if link, ok := r.Link(); ok {
				links = append(links, link)
			}
		}
		for _, ends := range [][2]string{{p.A, p.B}, {p.B, p.A}} {
			d := rows[incident.Path{Task: p.Task, From: ends[0], To: ends[1]}]
			d.Task = p.Task
			d.Pair = key
			d.From = ends[0]
			d.To = ends[1]
			d.FromSite = sites[d.From]
			d.ToSite = sites[d.To]
			d.Links = links
			d.Asked = p.asked
			s.Directions = append(s.Directions, d)
		}
	}
	slices.SortFunc(s.Directions, func(a, b incident.Direction) int {
		return cmp.Or(cmp.Compare(a.Task, b.Task), cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To))
	})
	return s, nil
}

// address adds the names of hosts to notices, and returns them for each receiver.
func (h *Hub) address(notices []incident.Notice, now time.Time) (all []store.Notice) {
	h.mu.Lock()
	defer h.mu.Unlock()
	receivers := h.receivers()
	for k := range notices {
		n := &notices[k]
		n.Names = h.namesIn(&n.Incident)
		for name, alert := range receivers {
			if alert.Alertmanager == "" && concerns(alert, &n.Incident) {
				all = append(all, store.Notice{ID: newID(now), Target: name, At: now, Notice: *n})
			}
		}
	}
	return all
}

// concerns reports whether an alert of the mesh file is for an incident.
func concerns(a mesh.Alert, i *incident.Incident) bool {
	symptoms := len(a.On) == 0 || slices.ContainsFunc(i.Symptoms, func(s incident.Symptom) bool {
		isLevel := s == incident.Slow || s == incident.Delayed
		return slices.Contains(a.On, string(s)) || isLevel && slices.Contains(a.On, "dip")
	})
	sites := len(a.Sites) == 0 || slices.ContainsFunc(i.Sites, func(site string) bool {
		return slices.Contains(a.Sites, site)
	})
	return symptoms && sites
}
