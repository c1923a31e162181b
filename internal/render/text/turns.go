package text

import (
	"fmt"
	"io"
	"maps"
	"net/netip"
	"slices"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render"
)

// waitsFor has the phrase after "waited for" and the remedy for each cause of waits in requests.
var waitsFor = map[string]struct{ name, remedy string }{
	"propagation": {"the path's round trip", ""},
	"rounds": {"acknowledgements, because the congestion window was full",
		"Where packets are lost, find where. Else keep connections open between requests, and raise initcwnd on the " +
			"sender's route for responses above 10 segments"},
	"wire": {"the line's rate: segments arrive back to back", "Send fewer bytes in a " +
		"response, or use a faster line"},
	"queue": {"a queue on the path", "Find what fills the queue; limit it with fq_codel or CAKE at the slowest link"},
	"lost-syn": {"a retransmitted SYN or SYN-ACK",
		"Find where packets are lost; check the server's accept queue (ss -ltn; nstat TcpExtListenOverflows)"},
	"fast-retransmit": {"a retransmission after duplicate acknowledgements", remedyLoss},
	"tail-loss-probe": {"a retransmission timer (tail-loss probe)", remedyTimer},
	"timeout":         {"a retransmission timer (RTO)", remedyTimer},
	"window-probe": {"a window probe: the receiver sent no window update",
		"Update the receiver's TCP, or read data sooner there"},
	"delayed-ack":    {"a delayed acknowledgement", remedyNagle},
	"nagle":          {"Nagle's algorithm: a short segment waited for an acknowledgement", remedyNagle},
	"handshake":      {"the handshake of a new connection", "Keep connections open between requests"},
	"receive-window": {"room in the receive window", "Raise the receive buffer of the end that reads"},
	"zero-window":    {"the reader: its receive window was closed", "Find out why the receiving program reads late"},
	"server":         {"the server's program", "Look at the server's program: the network does not take the time"},
	"client":         {"the client's program", "Look at the client's program: it writes its requests in pieces"},
	"backlog": {"a free connection: earlier requests had no response yet",
		"Find what the earlier requests waited for, or raise --concurrency"},
	"first-byte": {"the response's first byte: the server's program, a queue or a lost response",
		"Look at the server's program, or capture the requests there and run fullpipe diagnose"},
	"unknown": {"an unknown cause", ""},
}

const (
	remedyNagle = "Set TCP_NODELAY in the sending program, or write a message with one call"
	remedyLoss  = "Find where packets are lost"
	remedyTimer = remedyLoss + "; on short paths lower the least retransmission timeout of the end that waited " +
		"(ip route … rto_min, or net.ipv4.tcp_rto_min_us since Linux 6.11)"
)

// CauseText returns the phrase after "waited for" of a cause in requests.
func CauseText(cause string) string { return waitsFor[cause].name }

// writeRequests prints the headline about requests and the remedies.
func writeRequests(w io.Writer, subject string, r *record.Requests) {
	answer, causes := requestsAnswer(r)
	writeParts(w, part{render.Answer, subject + ": " + answer})
	writeRemedies(w, causes)
}

// writeRemedies prints the remedy of each cause.
func writeRemedies(w io.Writer, causes []string) {
	for i, cause := range causes {
		if remedy := waitsFor[cause].remedy; remedy != "" && !slices.Contains(causes[:i], cause) {
			writeDo(w, remedy+".")
		}
	}
}

// RequestsAnswer returns the headline about requests.
func RequestsAnswer(r *record.Requests) string {
	answer, _ := requestsAnswer(r)
	return answer
}

// RequestCauses returns the causes of waits that the headline names.
func RequestCauses(r *record.Requests) []string {
	_, causes := requestsAnswer(r)
	return causes
}

// requestsAnswer returns the headline about requests, and the causes that it names: of the slow
// ones, and of the usual one where it takes a quarter of the median.
func requestsAnswer(r *record.Requests) (answer string, causes []string) {
	const (
		slower = 2 // times the median
		worthy = 0.25
	)
	t := r.Turns
	answer = fmt.Sprintf("median %s of %s requests", SecondsText(t.P50S), Thousands(t.Count))
	slowest := "the slowest"
	if t.P99S != nil {
		answer += ", p99 " + SecondsText(*t.P99S) + "."
		slowest = "the slowest 1 %"
	} else {
		answer += ", the slowest " + SecondsText(t.MaxS) + "."
	}
	usual, usualTime, slow, slowTime := worstCauses(r.Stages)
	if count, time, cause := retransmissionStalls(r.Stalls); count > 0 {
		answer += fmt.Sprintf(" %s for retransmissions took %s in all, mostly for %s.", counted(count, "wait"),
			SecondsText(time), waitsFor[cause].name)
		causes = append(causes, cause)
	} else if t.MaxS > slower*t.P50S && slowTime > 0 {
		answer += fmt.Sprintf(" Compared with it, %s waited %s longer for %s.", slowest, SecondsText(slowTime),
			waitsFor[slow].name)
		causes = append(causes, slow)
	}
	isLarge := usual != "propagation" && usualTime >= worthy*t.P50S
	if isLarge || len(causes) == 0 {
		answer += fmt.Sprintf(" Of the median, %s is %s.", SecondsText(usualTime), waitsFor[usual].name)
	}
	if isLarge {
		causes = append(causes, usual)
	}
	return answer, causes
}

// worstCauses returns the cause of most of the median turn's time, and the cause that the slowest turns waited for
// longest in comparison. Propagation is usual only where no other cause takes as long.
func worstCauses(stages []record.Stage) (usual string, usualTime float64, slow string, slowTime float64) {
	usual = "propagation"
	slow = "unknown"
	for _, cause := range slices.Sorted(maps.Keys(waitsFor)) {
		median, slowest := causeTime(stages, cause)
		if cause != "propagation" && median > usualTime {
			usual = cause
			usualTime = median
		}
		if slowest-median > slowTime {
			slow = cause
			slowTime = slowest - median
		}
	}
	if path, _ := causeTime(stages, "propagation"); path > 3*usualTime {
		return "propagation", path, slow, slowTime
	}
	return usual, usualTime, slow, slowTime
}

// retransmissionStalls adds up the stalls that ended with a retransmission. cause is that of most of their time.
func retransmissionStalls(all []record.Stall) (count int64, time float64, cause string) {
	var most float64
	for _, s := range all {
		switch s.Cause {
		case "lost-syn", "fast-retransmit", "tail-loss-probe", "timeout":
			count += s.Count
			time += s.TimeS
			if s.TimeS > most {
				most = s.TimeS
				cause = s.Cause
			}
		}
	}
	return count, time, cause
}

// causeTime returns the time of a cause in all stages; that of round trips without the handshake's, which is a cause of
// its own.
func causeTime(all []record.Stage, cause string) (median, slowest float64) {
	for _, s := range all {
		name := s.Cause
		if s.Stage == "connect" && name == "propagation" {
			name = "handshake"
		}
		if name == cause {
			median += s.MedianS
			slowest += s.SlowestS
		}
	}
	return median, slowest
}

// counted formats a number of things with a regular plural.
func counted(n int64, noun string) string { return Thousands(n) + " " + noun + plural(int(n)) }

// writeServers prints the requests by server.
func writeServers(w io.Writer, all []record.CapturedServer) {
	if len(all) == 0 {
		return
	}
	const shown = 10
	t := newTable(1, 2, 3, 4, 5, 6)
	t.row("REQUESTS TO", "CONNECTIONS", "REQUESTS", "MEDIAN", "P99", "LONGEST", "STALLED")
	for _, s := range all[:min(len(all), shown)] {
		p99 := "–"
		if s.Turns.P99S != nil {
			p99 = SecondsText(*s.Turns.P99S)
		}
		var stalled float64
		for _, one := range s.Stalls {
			stalled += one.TimeS
		}
		t.row(s.Server, Thousands(s.Connections), Thousands(s.Turns.Count), SecondsText(s.Turns.P50S), p99,
			SecondsText(s.Turns.MaxS), SecondsText(stalled))
	}
	t.write(w, "")
	if rest := len(all) - shown; rest > 0 {
		fmt.Fprintf(w, "and %d more servers\n", rest)
	}
}

// unknownRequests says why a criterion's figure is not known.
var unknownRequests = map[string]string{
	record.TooFewRequests: "too few requests",
	record.NoResponse:     "too many requests had no response",
	record.UnknownCauses:  "waits have unknown causes",
}

// writeRequestsCriteria prints the pass or fail of each criterion.
func writeRequestsCriteria(w io.Writer, all []record.RequestsCriterion) {
	if len(all) == 0 {
		return
	}
	fmt.Fprintln(w)
	t := newTable()
	for _, c := range all {
		verdict := "FAIL"
		if c.Passed {
			verdict = "pass"
		}
		measured := "unknown: " + unknownRequests[c.Unknown]
		if c.MeasuredS != nil {
			measured = SecondsText(*c.MeasuredS)
		}
		t.row(verdict, c.Criterion, measured, c.Server)
	}
	t.write(w, "")
}

// writeTurns prints the tables of requests.
func writeTurns(w io.Writer, r *record.Requests) {
	t := r.Turns
	if t == nil {
		return
	}
	fmt.Fprintln(w, "  REQUESTS")
	head := newTable()
	times := "median " + SecondsText(t.P50S)
	if t.P90S != nil {
		times += ", p90 " + SecondsText(*t.P90S)
	}
	if t.P99S != nil {
		times += ", p99 " + SecondsText(*t.P99S)
	}
	head.row("requests", fmt.Sprintf("%s, %s, longest %s", Thousands(t.Count), times, SecondsText(t.MaxS)))
	if t.Bulk > 0 {
		head.row("", Thousands(t.Bulk)+" of them with more than 400 KiB: bulk transfers, judged below")
	}
	if t.Unanswered > 0 {
		head.row("", Thousands(t.Unanswered)+" without a response")
	}
	if t.Interleaved {
		head.row("", "requests and responses overlap (several at once on this connection), so their stages are not separated")
	}
	if t.ClientAssumed {
		head.row("", "no SYN was captured: the client is the end that sent data first")
	}
	head.write(w, "    ")
	writeStages(w, r.Stages)
	writeStalls(w, r.Stalls)
	writeSlowest(w, t.Slowest)
}

func writeStages(w io.Writer, all []record.Stage) {
	if len(all) == 0 {
		return
	}
	stages := newTable(2, 3)
	stages.row("STAGE", "WAITED FOR", "MEDIAN", "SLOWEST 1 %")
	for _, s := range all {
		stages.row(s.Stage, waitsFor[s.Cause].name, SecondsText(s.MedianS), SecondsText(s.SlowestS))
	}
	stages.write(w, "    ")
}

func writeStalls(w io.Writer, all []record.Stall) {
	if len(all) == 0 {
		return
	}
	stalls := newTable(2, 3)
	stalls.row("STALLED BY", "OWED BY", "STALLS", "TIME")
	for _, s := range all {
		stalls.row(waitsFor[s.Cause].name, s.From, Thousands(s.Count), SecondsText(s.TimeS))
	}
	stalls.write(w, "    ")
}

func writeSlowest(w io.Writer, all []record.SlowestTurn) {
	if len(all) == 0 {
		return
	}
	slowest := newTable(0, 1)
	head := []string{"BEGAN AT", "TOOK", "MOSTLY FOR", "CLIENT", "WIRESHARK FILTER"}
	columns := 3 // without the columns that say nothing
	for i := range all {
		if all[i].Client != "" {
			columns = max(columns, 4)
		}
		if PacketsFilter(&all[i]) != "" {
			columns = 5
		}
	}
	slowest.row(head[:columns]...)
	for i, s := range all {
		row := []string{SecondsText(s.StartS), SecondsText(s.DurationS),
			fmt.Sprintf("%s, %s", waitsFor[s.Cause].name, SecondsText(s.CauseS)), s.Client, PacketsFilter(&all[i])}
		slowest.row(row[:columns]...)
	}
	slowest.write(w, "    ")
}

// PacketsFilter returns a Wireshark display filter for the packets of a turn; "" where their
// numbers are not known.
func PacketsFilter(s *record.SlowestTurn) string {
	if s.FirstPacket == 0 {
		return ""
	}
	filter := fmt.Sprintf("frame.number in {%d..%d}", s.FirstPacket, max(s.LastPacket, s.FirstPacket))
	if client, err := netip.ParseAddrPort(s.Client); err == nil {
		filter += fmt.Sprintf(" && tcp.port == %d", client.Port())
	}
	return filter
}
