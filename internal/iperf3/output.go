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

// outcome is what the server tells of one direction.
func (t *test) outcome(h half, started time.Time, complete bool) transfer.Outcome {
	switch h := h.(type) {
	case *load:
		return transfer.Outcome{TCP: &transfer.Result{Spec: h.spec, Started: started, Near: h.saw, Complete: complete}}
	case *flows:
		return transfer.Outcome{Datagrams: h.Result(started, complete)}
	}
	return transfer.Outcome{}
}

// mostOutput is how much of a server's output is sent; with all else in the results it has
// to stay within MaxServerResults.
const mostOutput = MaxServerResults / 2

// putOutput adds the server's output to the results, unless it is too long.
func (t *test) putOutput(mine *Results, outcomes []transfer.Outcome) {
	text := ""
	object := json.RawMessage(nil)
	if tell := t.server.Output; tell != nil {
		text, object = tell(t.from, *t.account)
	} else {
		text = output(outcomes, t.server.Sentence)
	}
	if len(text)+len(object) <= mostOutput {
		mine.OutputText = text
		mine.OutputJSON = object
	}
}

// output is the text that a client with --get-server-output prints: what this server
// saw of the test and what limited it.
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

func sender(d transfer.Direction) string {
	if d == transfer.Up {
		return "server sends"
	}
	return "client sends"
}

func writeTCP(b *strings.Builder, r *transfer.Result, sentence func(verdict.Evidence) string) {
	span, _ := r.Received()
	v := live.Judge(r)
	fmt.Fprintf(b, "  %s  %s (%s in %s)\n", sender(r.Spec.Direction), units.Rate(span.Bps()), units.Size(span.Bytes),
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
		fmt.Fprintf(b, "  %s  %d datagrams of %d bytes\n", sender(r.Spec.Direction), r.Sent, r.Spec.Size)
		return
	}
	fmt.Fprintf(b, "  %s  %s, %d of %d datagrams lost (%.2g %%), jitter %s", sender(r.Spec.Direction), units.Rate(r.Bps()),
		r.Lost, r.Sent, 100*r.LossRatio(), units.Time(r.Jitter))
	if r.Variation != nil {
		fmt.Fprintf(b, ", delay variation %s at the 95th percentile", units.Time(r.Variation.P95))
	}
	fmt.Fprintln(b)
	if r.Reordered != nil && r.Duplicates != nil && *r.Reordered+*r.Duplicates > 0 {
		fmt.Fprintf(b, "                %d came out of order, %d twice\n", *r.Reordered, *r.Duplicates)
	}
}
