package iperf3

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/units"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/live"
)

// outcome returns the server's measurement of one direction.
func (t *test) outcome(dir direction, started time.Time, complete bool) transfer.Outcome {
	switch dir := dir.(type) {
	case *tcpStreams:
		return transfer.Outcome{TCP: &transfer.Result{Spec: dir.spec, Started: started, Near: dir.measured,
			Complete: complete}}
	case *udpFlows:
		return transfer.Outcome{Datagrams: dir.Result(started, complete)}
	}
	return transfer.Outcome{}
}

// maxOutput limits the server's output so that the results stay within MaxServerResults.
const maxOutput = MaxServerResults / 2

// addOutput adds the server's output to the results, unless it is too long.
func (t *test) addOutput(mine *Results, outcomes []transfer.Outcome) {
	text := ""
	object := json.RawMessage(nil)
	if custom := t.server.Output; custom != nil {
		text, object = custom(t.from, *t.result)
	} else {
		text = output(outcomes, t.server.Sentence)
	}
	if len(text)+len(object) <= maxOutput {
		mine.OutputText = text
		mine.OutputJSON = object
	}
}

// output returns the text for --get-server-output: this server's measurement and verdict.
func output(outcomes []transfer.Outcome, sentence func(verdict.Evidence) string) string {
	var b strings.Builder
	fmt.Fprintln(&b, "fullpipe at the server:")
	for _, o := range outcomes {
		if o.TCP != nil {
			writeTCP(&b, o.TCP, sentence)
		} else {
			writeDatagrams(&b, o.Datagrams)
		}
	}
	return b.String()
}

func senderLabel(d transfer.Direction) string {
	if d == transfer.Up {
		return "server sends"
	}
	return "client sends"
}

func writeTCP(b *strings.Builder, r *transfer.Result, sentence func(verdict.Evidence) string) {
	span, _ := r.Received()
	v := live.Judge(r)
	fmt.Fprintf(b, "  %s  %s (%s in %s)\n", senderLabel(r.Spec.Direction), units.Rate(span.Bps()), units.Size(span.Bytes),
		units.Time(span.Duration()))
	limited := string(v.Limiter) + verdict.Suffix(v.Subtype)
	if len(v.Candidates) > 0 {
		limited += ": " + verdict.Join(v.Candidates, " or ")
	}
	fmt.Fprintf(b, "  limited by    %s, %s confidence\n", limited, v.Confidence)
	for _, e := range v.Evidence {
		said := string(e.Code)
		if sentence != nil {
			said = sentence(e)
		}
		fmt.Fprintf(b, "                %s\n", said)
	}
}

func writeDatagrams(b *strings.Builder, r *transfer.DatagramResult) {
	if r.Spec.Direction == transfer.Up {
		fmt.Fprintf(b, "  %s  %d datagrams of %d bytes\n", senderLabel(r.Spec.Direction), r.Sent, r.Spec.Size)
		return
	}
	fmt.Fprintf(b, "  %s  %s, %d of %d datagrams lost (%.2g %%), jitter %s", senderLabel(r.Spec.Direction),
		units.Rate(r.Bps()), r.Lost, r.Sent, 100*r.LossRatio(), units.Time(r.Jitter))
	if r.Variation != nil {
		fmt.Fprintf(b, ", delay variation %s at the 95th percentile", units.Time(r.Variation.P95))
	}
	fmt.Fprintln(b)
	if r.Reordered != nil && r.Duplicates != nil && *r.Reordered+*r.Duplicates > 0 {
		fmt.Fprintf(b, "                %d out of order, %d duplicates\n", *r.Reordered, *r.Duplicates)
	}
}
