package agent

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/fleet/bus"
	"github.com/fullpipe-net/fullpipe/internal/fleet/mesh"
	"github.com/fullpipe-net/fullpipe/internal/probe"
	"github.com/fullpipe-net/fullpipe/internal/server"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// maxTransfers is the number of transfers of a run, one each way.
const maxTransfers = 2

// servedRun is a run with this host as the far end.
type servedRun struct {
	spec      bus.Spec
	holder    probe.Holder
	admitted  bool // the near end has connected
	transfers int  // that were accepted
	open      int  // the part of them that has not ended
	closed    bool // no more transfers are accepted
	counted   bus.Served
}

// serve makes the run's key valid.
func (a *agent) serve(o bus.Order) (mesh.Reason, string) {
	key, err := probe.ParseKey(o.Key)
	if err != nil {
		return mesh.Stale, "the run's key cannot be read"
	}
	release, free := a.server.TryTurn(0, func() {})
	if !free {
		return mesh.Busy, "another test runs on this host"
	}
	release() // the near end takes the turn when it connects
	now := time.Now()
	run := &servedRun{spec: o.Spec, counted: bus.Served{V: bus.Version, Run: o.Run, UpBytes: -1, DownBytes: -1},
		holder: probe.Holder{Name: o.Run, Key: key, From: o.From, Until: now.Add(o.Until),
			Time: o.Spec.Time + rateSlack, Bytes: o.Spec.Bytes, Bps: o.Spec.Bps}}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.serving) >= maxServing {
		return mesh.Busy, "other runs wait for this host"
	}
	a.serving[o.Run] = run
	time.AfterFunc(o.Within, func() { a.endAdmission(o.Run) })
	time.AfterFunc(o.Until, func() { a.forget(o.Run) })
	a.event(Event{Kind: "order", Run: o.Run, Role: o.Role, Far: o.Far})
	return "", ""
}

func (a *agent) forget(run string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.close(a.serving[run])
}

// endAdmission makes a run's key invalid if the near end has not connected.
func (a *agent) endAdmission(run string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if s := a.serving[run]; s != nil && !s.admitted {
		a.close(s)
	}
}

// close makes a run's key invalid. When its transfers have ended, the hub gets this host's count. mu is locked.
func (a *agent) close(run *servedRun) {
	if run == nil || run.closed {
		return
	}
	run.closed = true
	delete(a.serving, run.holder.Name)
	a.reportServed(run)
}

// reportServed reports the count of a closed run to the hub when no transfer is open. mu is locked.
func (a *agent) reportServed(run *servedRun) {
	if run.closed && run.open == 0 && run.transfers > 0 {
		_ = a.conn.Send(bus.ServedKind, run.counted) // without it the result is the near end's word
	}
}

// holders returns the keys of the runs that this host serves now. The key of a run is valid until its last transfer was
// accepted.
func (a *agent) holders() (all []probe.Holder) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, run := range a.serving {
		if run.transfers < maxTransfers {
			all = append(all, run.holder)
		}
	}
	return all
}

// connectedTo notes that a run's near end has connected, or that it came from an address that the order does not have.
func (a *agent) connectedTo(e server.Event) {
	var elsewhere *probe.AddressError
	if errors.As(e.Err, &elsewhere) {
		a.event(Event{Kind: "refused", Run: e.Holder, Role: bus.RoleServe, Reason: mesh.Peer,
			Detail: "a connection from " + elsewhere.From.String() + ", which is not in the order's from"})
	}
	if e.Kind != "client" {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if run := a.serving[e.Holder]; run != nil {
		run.admitted = true
	}
}

var (
	errRunOver = errors.New("the run has had its transfers, or has ended")
	errDayOver = errors.New("this host's own limits of the day are used up")
)

// offered accepts a transfer of a run and counts it, also if the near end leaves before the end. It charges the maximum
// of the transfer, which the server cuts there.
func (a *agent) offered(holder string, spec transfer.Spec) (probe.Allowance, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	run := a.serving[holder]
	if run == nil || run.transfers >= maxTransfers {
		return probe.Allowance{}, errRunOver
	}
	if err := beyondOrder(&run.spec, &spec); err != nil {
		return probe.Allowance{}, err
	}
	run.transfers++
	now := time.Now()
	cost := costOf(run.spec)
	left := a.Limits.left(a.committedLocked(now))
	if a.Limits.Budget.Bytes > 0 {
		cost.Bytes = min(cost.Bytes, left.Bytes)
	}
	if a.Limits.Budget.Time > 0 {
		cost.Time = min(cost.Time, left.Time)
	}
	if cost.Time <= 0 || a.Limits.Budget.Bytes > 0 && cost.Bytes <= 0 {
		return probe.Allowance{}, errDayOver
	}
	if spec.Bytes > 0 && (cost.Bytes == 0 || spec.Bytes < cost.Bytes) {
		cost.Bytes = spec.Bytes
	}
	charged, err := a.spent.charge(now, Use{Bytes: cost.Bytes, Time: cost.Time})
	if err != nil {
		return probe.Allowance{}, err
	}
	run.open++
	return probe.Allowance{Bytes: cost.Bytes, Time: cost.Time + rateSlack, Ended: func(end *transfer.End,
		moved int64, took time.Duration) {
		charged.settle(time.Now(), Use{Bytes: moved, Time: took})
		a.transferEnded(run, &transfer.Result{Spec: spec, Far: end})
	}}, nil
}

// transferEnded counts a transfer's payload. A run's key ends with its last transfer.
func (a *agent) transferEnded(run *servedRun, r *transfer.Result) {
	a.mu.Lock()
	defer a.mu.Unlock()
	run.open--
	bytes, span := counted(r)
	if r.Spec.Direction == transfer.Up {
		run.counted.UpBytes = max(run.counted.UpBytes, 0) + bytes
		run.counted.UpNs += span
	} else {
		run.counted.DownBytes = max(run.counted.DownBytes, 0) + bytes
		run.counted.DownNs += span
	}
	if run.transfers >= maxTransfers && run.open == 0 && !run.closed {
		a.close(run)
		return
	}
	a.reportServed(run)
}

// counted returns a transfer's payload as this far end counts it, and the time from its first to its last byte at the
// receiver. If this end sends, the acknowledgements show that time. A receiver counts no longer than the transfer's
// time.
func counted(r *transfer.Result) (bytes int64, took time.Duration) {
	if r.Spec.Direction == transfer.Down && r.Far != nil {
		end := *r.Far
		end.Streams = slices.Clone(end.Streams)
		end.TimeByAcknowledgements()
		r = &transfer.Result{Spec: r.Spec, Far: &end}
	}
	span, _ := r.Received()
	took = span.Duration()
	if r.Spec.Time > 0 {
		took = min(took, r.Spec.Time)
	}
	return span.Bytes, took
}

// beyondOrder returns an error if an offer asks for more than the order of its run: more streams, or packets and
// buffers that no order has.
func beyondOrder(o *bus.Spec, s *transfer.Spec) error {
	program := s.Program
	program.ByReference = false
	program.CopyReceived = false
	switch {
	case max(s.Streams, 1) > max(o.Streams, 1):
		return fmt.Errorf("%d streams; the run has %d", s.Streams, max(o.Streams, 1))
	case s.Requests.On():
		return errors.New("the run has no requests")
	case program != transfer.Program{}, hasSizes(s.Near), hasSizes(s.Far):
		return errors.New("the run has no sizes of writes, buffers or segments")
	}
	return nil
}

func hasSizes(s transfer.Socket) bool {
	return s.SendBuffer != 0 || s.ReceiveBuffer != 0 || s.Clamp != 0 || s.MSS != 0 || s.NoDelay || s.TOS != 0
}
