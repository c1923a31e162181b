package text

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/units"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/watch/legs"
)

// Watch prints the limiters of watched connections over a span: for `why` the verdict in the
// first sentence, else the sums and the heaviest connections.
func Watch(w io.Writer, d *record.Watch) {
	if d.Target != "" {
		why(w, d)
	} else {
		writeWatched(w, d)
	}
	watchNotes(w, d)
}

func why(w io.Writer, d *record.Watch) {
	if len(d.Connections) == 0 || len(d.Connections[0].Directions) == 0 {
		fmt.Fprintf(w, "%s: %s, and none moved payload in %s: its programs wrote nothing\n", d.Target,
			count(d.Matching, "connection"), SecondsText(d.LengthS))
		return
	}
	c := &d.Connections[0]
	if d.RequestsLead() {
		writeWatchedRequests(w, d)
	} else {
		writeWhy(w, c)
	}
	if len(d.Connections) > 1 || len(c.Directions) > 1 {
		fmt.Fprintln(w)
		WatchRows(w, d, Rows)
	}
	writeCriteria(w, d.Criteria)
}

// writeWhy prints the limiter of a connection's first direction.
func writeWhy(w io.Writer, c *record.WatchedConnection) {
	f := &c.Directions[0]
	writeHeadline(w, whyHeadline(c))
	if f.Leg != nil {
		fmt.Fprintln(w, hanging(w, "  - ", legText(c, f)))
	}
	fmt.Fprintln(w, hanging(w, "  - ", whyAnswer(f)))
	if f.Program != nil {
		fmt.Fprintln(w, hanging(w, "  - ", programWindowText(f.Program)))
	}
	for _, e := range f.Evidence {
		fmt.Fprintln(w, hanging(w, "  - ", cmp.Or(Sentence(e), e.Text)))
	}
	if row := Waits(f.Waits); row != "" {
		fmt.Fprintln(w, hanging(w, "  - ", row))
	}
	for _, row := range lostRows(f.LostAt, f.Direction, nil) {
		fmt.Fprintln(w, hanging(w, "  - ", lostClause(row)))
	}
	writeDo(w, doAbout(f.Fix, f.Verdict))
	if len(f.Shares) > 1 {
		var parts []string
		for _, n := range f.Shares.Top() {
			parts = append(parts, fmt.Sprintf("%s %s", n, percent(f.Shares[n])))
		}
		fmt.Fprintln(w, hanging(w, "  time: ", strings.Join(parts, ", ")))
	}
}

// whyAnswer formats the verdict as a clause.
func whyAnswer(f *record.WatchedDirection) string {
	if fromElsewhere(f) {
		return "the sender or the path limits it, not this host"
	}
	switch f.Limiter {
	case verdict.Unknown:
		if len(f.Candidates) == 0 {
			return "too little data was seen to name its limiter"
		}
		return "the limiter cannot be seen from here; candidates: " + candidatesText(f.Candidates)
	case verdict.Mixed:
		return "several things limit it: " + candidatesText(f.Candidates)
	case verdict.Sender:
		return "its program or its send buffer limits it"
	}
	clause := limiters[f.Limiter].cause
	name := string(f.Limiter)
	share := f.Shares[f.Limiter]
	if said, ok := subtypeCauses[f.Subtype]; ok {
		clause = said
	}
	if f.Subtype != "" {
		name += ", " + verdict.Label(f.Subtype)
	}
	if f.Direction == transfer.Down && f.Limiter == verdict.Bottleneck && f.Confidence == verdict.Low {
		clause = "not this host; probably a full line"
	}
	if len(f.Candidates) == 2 { // two that a sender cannot separate
		clause = limiters[f.Candidates[0]].cause + ", or " + limiters[f.Candidates[1]].cause
		name = candidatesText(f.Candidates[:1]) + " or " + candidatesText(f.Candidates[1:])
		share = f.Shares[f.Candidates[0]] + f.Shares[f.Candidates[1]]
	}
	return fmt.Sprintf("%s (%s), %s of the time, %s confidence", clause, name, percent(share), f.Confidence)
}

// legText says what a direction has to do with the connection that moves the same data.
func legText(c *record.WatchedConnection, f *record.WatchedDirection) string {
	here := c.Remote
	other := f.Leg.Remote
	program := Owner(c)
	if f.Leg.Others > 0 {
		other += fmt.Sprintf(" and %d more", f.Leg.Others)
	}
	limits := f.Leg.Role == legs.Limits
	switch {
	case f.Direction == transfer.Up && limits:
		return fmt.Sprintf("%s reads from %s only what it can send to %s: this connection limits both", program, other, here)
	case f.Direction == transfer.Up:
		return fmt.Sprintf("%s sends to %s what it receives from %s", program, here, other)
	case limits:
		return fmt.Sprintf("%s sends to %s only what it receives from %s: this connection limits both", program, other, here)
	}
	return fmt.Sprintf("%s sends to %s what it receives from %s", program, other, here)
}

// subtypeCauses has the subtypes whose cause is more exact than their limiter's.
var subtypeCauses = map[string]string{
	verdict.RequestResponse: "its program sends a block and waits for the answer before the next",
	verdict.ProgramWindow:   "its program has a window of its own, which is full",
	verdict.ScaleZero:       "the receiver offered a window scale of 0: its window is at most 64 KiB",
	verdict.AutotuneOff:     "the receiver's system does not size its window: autotuning is off there",
	verdict.AutotuneCeiling: "the receiver's window has grown to its maximum",
	verdict.Unscaled:        "the receiver's window is 64 KiB at the most: no window scale was agreed on",
	verdict.PerFlow:         "the path limits the rate of each connection",
	verdict.Shared:          "the link is full with other traffic as well",
	verdict.Policer:         "a policer drops what is above its rate",
	verdict.LowSsthresh:     "congestion avoidance opens the congestion window, though nothing was lost: ssthresh is low",
	verdict.Marked:          "a queue on the way marks segments (ECN), and the congestion window follows from it",
	verdict.Reordering:      "segments overtake each other, which the sender takes for loss",
}

// writeWatched prints the totals of a watched period and the limiters of its connections.
func writeWatched(w io.Writer, d *record.Watch) {
	all := fmt.Sprintf("sent %s, received %s", units.Size(d.Totals.SentBytes), units.Size(d.Totals.ReceivedBytes))
	came := fmt.Sprintf("%d opened, %d closed", d.Totals.Opened, d.Totals.Closed)
	sent := watchedBytes(d, transfer.Up)
	received := watchedBytes(d, transfer.Down)
	if part := 0.95; float64(sent+received) >= part*float64(d.Totals.SentBytes+d.Totals.ReceivedBytes) {
		fmt.Fprintln(w, hanging(w, "watched ", fmt.Sprintf("%s: %s; %s, %s", SecondsText(d.LengthS), all,
			count(d.Matching, "connection"), came)))
	} else { // the totals include other connections
		fmt.Fprintln(w, hanging(w, "watched ", fmt.Sprintf("%s: sent %s, received %s; %s", SecondsText(d.LengthS),
			units.Size(sent), units.Size(received), count(d.Matching, "connection"))))
		fmt.Fprintf(w, "  all that was followed: %s, %s\n", all, came)
	}
	if len(d.Connections) == 0 {
		fmt.Fprintln(w, "  nothing moved")
		return
	}
	t := newTable(1, 2, 3)
	t.row("limited by", "payload", "connections", "time")
	for i := range d.Limited {
		l := &d.Limited[i]
		if l.Bytes == 0 {
			continue
		}
		way := "sending"
		if l.Direction == transfer.Down {
			way = "receiving"
		}
		lasted := SecondsText(l.LimitedS)
		if l.LimitedS == 0 { // mixed: its time is its parts'
			lasted = ""
		}
		t.row(string(l.Limiter)+", "+way, units.Size(l.Bytes).String(), fmt.Sprint(l.Connections), lasted)
	}
	t.write(w, "  ")
	for i := range d.Limited {
		if d.Limited[i].Bytes > 0 {
			writeDo(w, doAboutMost(d, &d.Limited[i]))
			break
		}
	}
	fmt.Fprintln(w)
	WatchRows(w, d, Rows)
	watchedLosses(w, d)
}

// maxLosses limits the rows of a whole host's places of loss.
const maxLosses = 5

// watchedLosses prints where this host dropped packets of the connections, most segments first.
func watchedLosses(w io.Writer, d *record.Watch) {
	type row struct {
		text     string
		segments int64
	}
	var rows []row
	for i := range d.Connections {
		c := &d.Connections[i]
		for j := range c.Directions {
			f := &c.Directions[j]
			for k, text := range lostRows(f.LostAt, f.Direction, nil) {
				if l := &f.LostAt[k]; l.Side != "" && l.Segments > 0 {
					rows = append(rows, row{fmt.Sprintf("%s to or from %s", lostClause(text), c.Remote), l.Segments})
				}
			}
		}
	}
	slices.SortStableFunc(rows, func(a, b row) int { return cmp.Compare(b.segments, a.segments) })
	for _, r := range rows[:min(len(rows), maxLosses)] {
		fmt.Fprintln(w, hanging(w, "  - ", r.text))
	}
}

// watchedBytes returns the bytes that the selected connections moved in a direction.
func watchedBytes(d *record.Watch, way transfer.Direction) (sum int64) {
	for i := range d.Limited {
		if d.Limited[i].Direction == way {
			sum += d.Limited[i].Bytes
		}
	}
	return sum
}

func watchNotes(w io.Writer, d *record.Watch) {
	for i := range d.PathChanges {
		fmt.Fprintln(w, hanging(w, "  ! ", PathShift(&d.PathChanges[i])))
	}
	if d.LostEnds > 0 {
		lost := fmt.Sprintf("%s dropped for lack of room: the last bytes of those connections "+
			"are missing (CAP_NET_ADMIN gives more room)", count(int(d.LostEnds), "end"))
		fmt.Fprintln(w, hanging(w, "  warning: ", lost))
	}
	if d.Totals.Unfinished > 0 {
		fmt.Fprintf(w, "  final counters not received for %s\n", count(int(d.Totals.Unfinished), "ended connection"))
	}
	if d.Interrupted {
		fmt.Fprintln(w, "  interrupted: this is the result up to then")
	}
	if d.Anonymized {
		fmt.Fprintln(w, "  anonymized: the addresses are invented")
	}
	if len(d.Unread) > 0 {
		unseen := make([]string, len(d.Unread))
		for i, note := range d.Unread {
			unseen[i] = note.Text
		}
		fmt.Fprintln(w, hanging(w, "  not seen: ", strings.Join(unseen, "; ")))
	}
}

// doAboutMost returns the remedy of the heaviest connection with a limiter.
func doAboutMost(d *record.Watch, l *record.WatchLimited) string {
	for i := range d.Connections {
		for j := range d.Connections[i].Directions {
			if f := &d.Connections[i].Directions[j]; f.Limiter == l.Limiter && f.Direction == l.Direction {
				return doAbout(f.Fix, f.Verdict)
			}
		}
	}
	return doAbout(nil, verdict.Verdict{Limiter: l.Limiter})
}

// Advice returns the remedy for a direction's limiter.
func Advice(d *record.WatchedDirection) string { return doAbout(d.Fix, d.Verdict) }
