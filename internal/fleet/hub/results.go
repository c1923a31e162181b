package hub

import (
	"context"
	"errors"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/changepoint"
	"github.com/fullpipe-net/fullpipe/internal/fleet/bus"
	"github.com/fullpipe-net/fullpipe/internal/fleet/incident"
	"github.com/fullpipe-net/fullpipe/internal/fleet/mesh"
	"github.com/fullpipe-net/fullpipe/internal/recheck"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/store"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// maxAddresses limits the addresses in an agent's hello.
const maxAddresses = 256

// retryLater is what an agent waits when the database failed.
const retryLater = 5 * time.Second

// Hello takes an agent's introduction.
func (h *Hub) Hello(ctx context.Context, agent string, hello bus.Hello) bus.Welcome {
	now := time.Now()
	if hello.V != bus.Version {
		return bus.Welcome{V: bus.Version, Error: "the hub speaks version 1 of the messages: upgrade the agent"}
	}
	if len(hello.Version) > maxLabel || len(hello.Kernel) > maxLabel || len(hello.Addresses) > maxAddresses ||
		!labelsFit(hello.Labels) {
		return bus.Welcome{V: bus.Version, Error: "the hello is out of range"}
	}
	hello.Limits.Broken = oneLine(hello.Limits.Broken)
	ahead := time.Unix(0, hello.ClockNs).Sub(now)
	followed := hello.Lead
	hello.ClockNs = 0 // so that an unchanged report stays equal
	hello.Waiting = 0
	hello.Lead = bus.Lead{}
	if err := h.Fleet.Saw(ctx, agent, bus.Encode(hello), ahead, now); err != nil {
		return bus.Welcome{V: bus.Version, Error: "the hub cannot store it now", Later: retryLater}
	}
	lead := h.returned(agent, followed)
	h.mu.Lock()
	defer h.mu.Unlock()
	name := agent
	if m := h.members[agent]; m != nil {
		m.seen = now
		m.hello = hello
		h.setPresence(m, now)
		name = m.Name
	}
	h.freshAt = now // plan with its limits
	h.poke()
	return bus.Welcome{V: bus.Version, Name: name, Lead: lead, ClockNs: now.UnixNano(), URLs: h.urls}
}

// Here takes an agent's sign of life and does not wait. Only each third one changes the database, for the other hubs.
func (h *Hub) Here(ctx context.Context, agent string, here bus.Here) {
	now := time.Now()
	h.mu.Lock()
	defer h.mu.Unlock()
	m := h.members[agent]
	if m == nil || isOther(here.Instance, m.hello.Instance) {
		return
	}
	m.seen = now
	wasAway := m.away
	h.setPresence(m, now)
	if wasAway {
		h.poke()
	}
	if now.Sub(m.Seen) <= bus.AwayAfter/2 {
		return
	}
	m.Seen = now
	go func() {
		ctx, cancel := context.WithTimeout(ctx, handleTime)
		defer cancel()
		// if not stored, a refresh undoes Seen
		_ = h.Fleet.Here(ctx, agent, max(here.Waiting, 0), time.Unix(0, here.ClockNs).Sub(now), now)
	}()
}

// Result stores a run's document. The agent may forget it when the receipt says stored or refused.
func (h *Hub) Result(ctx context.Context, agent string, data []byte) bus.Receipt {
	doc, err := decodeResult(data)
	if err != nil {
		return bus.Receipt{Refused: err.Error()}
	}
	now := time.Now()
	job, err := h.Fleet.AddDocument(ctx, agent, doc, data, now)
	var refused *store.RefusedError
	switch {
	case errors.As(err, &refused):
		h.event(Event{Kind: "error", Agent: h.nameOf(agent), Detail: "a result was refused: " + err.Error()})
		return bus.Receipt{Refused: err.Error()}
	case err != nil:
		h.event(Event{Kind: "error", Agent: h.nameOf(agent), Detail: err.Error()})
		return bus.Receipt{Later: retryLater}
	}
	if !job.Ended.Equal(now) {
		return bus.Receipt{Stored: true} // delivered before
	}
	if !job.Contradicted() { // a false one would become the path's usual goodput
		h.followPath(ctx, job, doc)
	}
	h.mu.Lock()
	if g := h.runs[job.ID]; g != nil {
		select {
		case <-g.done:
		default:
			g.moved = job.Charged
			close(g.done)
		}
	}
	names := h.names(job)
	h.mu.Unlock()
	h.event(Event{Kind: "ended", Run: job.ID, Pair: names, State: job.State, Reason: job.Reason})
	return bus.Receipt{Stored: true}
}

// Failed takes an agent's report of a run without a document.
func (h *Hub) Failed(agent string, f bus.Failed) bus.Receipt {
	h.mu.Lock()
	defer h.mu.Unlock()
	g := h.runs[f.Run]
	if g == nil || g.near != agent {
		return bus.Receipt{Refused: "the run has ended, or is another agent's"}
	}
	known := false
	for _, reason := range mesh.Reasons(mesh.Failed) {
		known = known || reason == f.Reason
	}
	if !known {
		f.Reason = mesh.FarError
	}
	f.Detail = oneLine(f.Detail)
	select {
	case g.failed <- f:
	default:
	}
	return bus.Receipt{Stored: true}
}

// Served stores the far agent's count of a run.
func (h *Hub) Served(ctx context.Context, agent string, s bus.Served) {
	if err := h.Fleet.AddServed(ctx, agent, s.Run, store.FarCount{Bytes: s.UpBytes, Span: s.UpNs},
		store.FarCount{Bytes: s.DownBytes, Span: s.DownNs}); err != nil {
		h.event(Event{Kind: "error", Agent: h.nameOf(agent), Run: s.Run, Detail: err.Error()})
	}
}

func (h *Hub) nameOf(agent string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if m := h.members[agent]; m != nil {
		return m.Name
	}
	return agent
}

// pastRuns are how many results of a pair a hub that starts reads.
const pastRuns = 60

// followPath compares a result with the earlier ones of its pair.
func (h *Hub) followPath(ctx context.Context, job store.Job, doc *record.Measure) {
	result := recheck.ResultOf(doc)
	for i := range result.Directions {
		result.Directions[i].Name = senderOf(job, result.Directions[i].Name)
	}
	result.At = job.Granted
	result.Retest = job.Origin == record.Retest
	f := h.followerOf(job.Pair)
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := h.rebuild(ctx, f, job); err != nil {
		h.event(Event{Kind: "error", Run: job.ID, Detail: err.Error()})
		return // the next result of the pair tries again, with this one
	}
	if !result.At.After(f.last) {
		return // delivered twice, or late: a baseline is in order of time
	}
	f.last = result.At
	events := f.path.Add(result)
	h.mu.Lock()
	frozen := h.judging.frozen
	h.mu.Unlock()
	if err := h.Fleet.SetLevels(ctx, f.newLevels(job, frozen)); err != nil {
		h.event(Event{Kind: "error", Run: job.ID, Detail: err.Error()})
	}
	test, _ := f.path.Wants()
	if frozen[incident.Path{Task: job.Task, From: job.A, To: job.B}] ||
		frozen[incident.Path{Task: job.Task, From: job.B, To: job.A}] {
		test = time.Time{} // its incident is known: the hosts' budgets are for others
	}
	h.setTest(job.Pair, test)
	h.mu.Lock()
	h.noteChange(time.Now())
	h.mu.Unlock()
	var stored []store.Event
	for _, e := range events {
		if one, ok := newEvent(job, e); ok {
			stored = append(stored, one)
		}
	}
	if len(stored) == 0 {
		return
	}
	if err := h.Fleet.AddEvents(ctx, stored); err != nil {
		h.event(Event{Kind: "error", Run: job.ID, Detail: err.Error()})
	}
}

// followerOf returns the follower of a pair.
func (h *Hub) followerOf(pair string) *follower {
	h.mu.Lock()
	defer h.mu.Unlock()
	f := h.paths[pair]
	if f == nil {
		f = &follower{}
		h.paths[pair] = f
	}
	return f
}

// setTest sets when a pair is tested again, the zero time for not.
func (h *Hub) setTest(pair string, at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.pairs[pair]
	if p == nil {
		return
	}
	p.test = at
	if !at.IsZero() {
		p.test = p.quiet.Advance(at, 0)
		h.dues.add(p.test, pair)
		h.poke()
	}
}

// senderOf returns the agent that sends in a direction of a job's document.
func senderOf(job store.Job, direction string) string {
	if direction == "up" {
		return job.Near
	}
	return job.Other(job.Near)
}

// rebuild gives a new follower the stored results of its pair before a job, in which either agent was the near one.
func (h *Hub) rebuild(ctx context.Context, f *follower, job store.Job) error {
	if f.knows {
		return nil
	}
	jobs, err := h.Fleet.Jobs(ctx, store.JobFilter{State: mesh.Done, Pair: job.Pair, Limit: pastRuns})
	if err != nil {
		return err
	}
	stored, err := h.Fleet.Directions(ctx, job.Task, job.A, job.B)
	if err != nil {
		return err
	}
	f.levels = map[string]store.Levels{}
	for path, d := range stored {
		f.levels[path.From] = store.Levels{Task: path.Task, Sender: path.From, Receiver: path.To, Goodput: d.Goodput,
			RTT: d.RTT}
	}
	f.knows = true
	for i := len(jobs) - 1; i >= 0; i-- {
		j := jobs[i]
		if j.ID == job.ID {
			continue
		}
		encoded, _, err := h.Fleet.Store().Get(ctx, j.ID)
		if err != nil {
			continue // trimmed
		}
		doc, err := decodeResult(encoded)
		if err != nil {
			continue
		}
		result := recheck.ResultOf(doc)
		for k := range result.Directions {
			result.Directions[k].Name = senderOf(j, result.Directions[k].Name)
		}
		result.At = j.Granted
		result.Retest = j.Origin == record.Retest
		f.path.Add(result)
		f.last = j.Granted
	}
	return nil
}

// newEvent converts a detected change. A suspicion is no event yet.
func newEvent(job store.Job, e record.RecheckEvent) (store.Event, bool) {
	out := store.Event{Run: job.ID, Task: job.Task, Sender: e.Direction, Metric: e.Metric, Kind: string(e.Event), At: e.At,
		Old: e.Before, New: e.After}
	if out.Sender == "" { // of the far end
		out.Sender = job.Other(job.Near)
	}
	out.Receiver = job.Other(out.Sender)
	switch {
	case e.Event == "":
		return out, false
	case e.BeforeBps != nil && e.AfterBps != nil:
		out.Old = units.Rate(*e.BeforeBps).String()
		out.New = units.Rate(*e.AfterBps).String()
	case e.BeforeRTTMinS != nil && e.AfterRTTMinS != nil:
		out.Old = units.Time(units.Seconds(*e.BeforeRTTMinS))
		out.New = units.Time(units.Seconds(*e.AfterRTTMinS))
	case e.Event == changepoint.Changed && e.Before == "":
		return out, false
	}
	out.Old = oneLine(out.Old)
	out.New = oneLine(out.New)
	return out, true
}
