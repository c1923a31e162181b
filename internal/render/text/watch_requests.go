package text

import (
	"fmt"
	"io"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render"
)

// sampledRequests formats the states of connections with requests, the longest first.
func sampledRequests(r *record.WatchedRequests) string {
	s := r.Sampled
	answer := fmt.Sprintf("at most %s.", perSecond(r.TurnsPerS))
	if s.SpanS <= 0 {
		return answer
	}
	timer := "a retransmission timer had expired"
	if s.Timers > 0 {
		timer += fmt.Sprintf(" (%s, the longest %s)", counted(s.Timers, "time"), SecondsText(s.LongestTimerS))
	}
	unknown := s.SpanS - s.TimerS - s.ZeroWindowS - s.InFlightS - s.PeerS - s.ProgramS
	var parts []string
	for _, state := range []struct {
		seconds float64
		text    string
	}{
		{s.TimerS, timer},
		{s.ZeroWindowS, "the peer's receive window was closed"},
		{s.PeerS, "the peer had not answered"},
		{s.ProgramS, "this host's program sent nothing more"},
		{s.InFlightS, "data was on its way"},
		{unknown, "nothing is known"},
	} {
		if share := state.seconds / s.SpanS; share >= minWait {
			parts = append(parts, percent(share)+" "+state.text)
		}
	}
	return answer + " Of the time: " + strings.Join(parts, ", ") + "."
}

// watchedRequestsAnswer returns the answer about requests of watched connections.
func watchedRequestsAnswer(r *record.WatchedRequests) string { return sampledRequests(r) }

// writeWatchedRequests prints the answer about the requests of a target.
func writeWatchedRequests(w io.Writer, d *record.Watch) {
	subject := Owner(&d.Connections[0])
	writeParts(w, part{render.Answer, subject + ": " + watchedRequestsAnswer(d.Requests)})
	fmt.Fprintln(w, hanging(w, "  - ", unseenInSamples))
	for _, f := range d.Connections[0].Directions {
		if row := waitsRow(f.Waits); row != "" {
			fmt.Fprintln(w, hanging(w, "  - ", row))
		}
		for _, row := range lostRows(f.LostAt, f.Direction, nil) {
			fmt.Fprintln(w, hanging(w, "  - ", lostClause(row)))
		}
	}
}

const unseenInSamples = "only states of the connections were sampled: the time of each request, tail-loss probes and " +
	"the peer's retransmissions are not seen"

// LimitedCell formats what limits a direction of a connection in a few words: its requests where they explain more.
func LimitedCell(c *record.WatchedConnection, direction int) string {
	d := &c.Directions[direction]
	if !c.RequestsLead() {
		return Limited(d)
	}
	r := c.Requests
	cell := "at most " + perSecond(r.TurnsPerS)
	if r.Sampled.Timers > 0 {
		cell += fmt.Sprintf(", %s on timers", counted(r.Sampled.Timers, "stall"))
	}
	return cell
}
