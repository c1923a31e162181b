package text

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
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

// watchedRequestsAnswer returns the answer about requests of watched connections, and the causes that it names.
func watchedRequestsAnswer(r *record.WatchedRequests) (answer string, causes []string) {
	if r.Turns == nil {
		return sampledRequests(r), nil
	}
	answer, causes = requestsAnswer(&r.Requests)
	if r.StalledHere+r.StalledByPeer > 0 {
		answer += fmt.Sprintf(" The peer owed %s of these packets, this host %s.", Thousands(r.StalledByPeer),
			Thousands(r.StalledHere))
	}
	return answer, causes
}

// writeWatchedRequests prints the answer about the requests of a target.
func writeWatchedRequests(w io.Writer, d *record.Watch) {
	r := d.Requests
	answer, causes := watchedRequestsAnswer(r)
	if f := r.QueueFilledBy; f != nil {
		answer += " " + fillerText(f)
		if !slices.Contains(causes, "queue") {
			causes = append(causes, "queue")
		}
	}
	writeParts(w, part{render.Answer, Owner(&d.Connections[0]) + ": " + answer})
	writeRemedies(w, causes)
	if r.Turns == nil {
		fmt.Fprintln(w, hanging(w, "  - ", unseenInSamples))
	} else {
		fmt.Fprintf(w, "  - %s; this host is the %s\n", perSecond(r.TurnsPerS), cmp.Or(r.Role, "client of some and the "+
			"server of others"))
		if r.FollowedOneOf > 1 {
			fmt.Fprintf(w, "  - one of %d connections was followed, because there were too many segments\n", r.FollowedOneOf)
		}
		if r.Missed > 0 {
			fmt.Fprintln(w, hanging(w, "  - ", fmt.Sprintf("%s or connections of this host were not followed: some "+
				"requests are missing or too long", counted(r.Missed, "segment"))))
		}
	}
	lost := 0
	for _, f := range d.Connections[0].Directions {
		if row := Waits(f.Waits); row != "" {
			fmt.Fprintln(w, hanging(w, "  - ", row))
		}
		rows := lostRows(f.LostAt, f.Direction, nil)
		if lost > 0 {
			continue // the other direction's are of the same places
		}
		lost = len(rows)
		for _, row := range rows {
			fmt.Fprintln(w, hanging(w, "  - ", lostClause(row)))
		}
	}
	if r.Turns != nil {
		writeTurns(w, &r.Requests)
	}
}

const unseenInSamples = "only states of the connections were sampled: the time of each request, tail-loss probes and " +
	"the peer's retransmissions are not seen"

// fillerText names the connection that fills the queue of requests.
func fillerText(f *record.QueueFiller) string {
	name := processText(cmp.Or(f.Program, f.Unit, f.Container, "another program"), f.PID)
	verb := "sends"
	if f.Direction == transfer.Down {
		verb = "receives"
	}
	return fmt.Sprintf("%s, which %s %s %s, fills this path's queue: %s of each request.", name, verb,
		DirectionWord(f.Direction), f.Remote, SecondsText(f.QueueS))
}

// LimitedCell formats what limits a direction of a connection in a few words: its requests where they explain more.
func LimitedCell(c *record.WatchedConnection, direction int) string {
	if !c.RequestsLead() {
		return Limited(&c.Directions[direction])
	}
	r := c.Requests
	var cell string
	stalls := r.StalledHere + r.StalledByPeer
	switch {
	case r.Turns == nil:
		cell = "at most " + perSecond(r.TurnsPerS)
		stalls = r.Sampled.Timers
	case r.Turns.P99S == nil:
		cell = perSecond(r.TurnsPerS) + ", median " + SecondsText(r.Turns.P50S)
	default:
		cell = perSecond(r.TurnsPerS) + ", p99 " + SecondsText(*r.Turns.P99S)
	}
	if stalls > 0 {
		cell += ", " + counted(stalls, "stall")
	}
	if f := r.QueueFilledBy; f != nil {
		cell += fmt.Sprintf(", %s in the queue of %s", SecondsText(f.QueueS), processText(cmp.Or(f.Program, "?"), f.PID))
	}
	return cell
}
