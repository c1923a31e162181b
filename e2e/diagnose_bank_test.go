//go:build linux

package e2e

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/capture"
	"github.com/fullpipe-net/fullpipe/internal/flow"
	"github.com/fullpipe-net/fullpipe/internal/limiter"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// captured is a trial of the attribution's with what captures at both ends say of it.
type captured struct {
	trial
	views       map[string]limiter.Diagnosis // "sender", "receiver", "middle"
	flows       map[string]*flow.Direction
	windowShare float64 // by the kernel's clock; NaN: not known
}

// TestBankDiagnose captures the attribution's trials at both ends and compares what the
// captures say with what is gained by taking the cause away. The variables of
// TestBankAttribution choose the trials; FULLPIPE_BANK_CAPTURES is a directory to keep
// the captures in.
func TestBankDiagnose(t *testing.T) {
	bankOnly(t)
	dir := os.Getenv("FULLPIPE_BANK_CAPTURES")
	if dir == "" {
		dir = t.TempDir()
	}
	var trials []*captured
	for _, one := range drawTrials(t) {
		trials = append(trials, &captured{trial: one, views: map[string]limiter.Diagnosis{}, flows: map[string]*flow.Direction{}})
	}
	var wait sync.WaitGroup
	light := make(chan struct{}, 4)
	for i, r := range trials {
		name := filepath.Join(dir, fmt.Sprintf("%03d", i))
		if r.point.bps > lightest {
			continue
		}
		wait.Go(func() {
			light <- struct{}{}
			defer func() { <-light }()
			r.carryOut(t, name)
		})
	}
	wait.Wait()
	for i, r := range trials {
		if r.point.bps > lightest {
			alone(t, func() { r.carryOut(t, filepath.Join(dir, fmt.Sprintf("%03d", i))) })
		}
	}
	reportDiagnoses(t, trials)
}

// tap is a shell command that captures in the background until the lab ends.
func tap(file string) string {
	return fmt.Sprintf("; tcpdump -Z root -i any -s 128 -B 16384 -U --immediate-mode -w %[1]s tcp >/dev/null 2>%[1]s.log & "+
		"for i in $(seq 250); do grep -q listening %[1]s.log 2>/dev/null && exit 0; sleep 0.02; done; cat %[1]s.log >&2; exit 1", file)
}

func (r *captured) carryOut(t *testing.T, name string) {
	with := r.point.free()
	r.cause.with(r.point, &with)
	near, far := name+".near.pcap", name+".far.pcap"
	tapped := with
	tapped.near, tapped.far = cmp.Or(with.near, "true")+tap(near), cmp.Or(with.far, "true")+tap(far)
	result, err := carryOut(t, tapped)
	if err != nil {
		r.err = err
		return
	}
	r.with, r.windowShare = goodput(result), kernelWindowShare(result)
	for view, file := range map[string]string{"sender": near, "receiver": far} {
		if r.views[view], r.flows[view], r.err = sentFrom(file, result.Sender().Streams[0].Local); r.err != nil {
			return
		}
	}
	r.verdict = r.views["sender"].Verdict
	r.gains = map[limiter.Name]float64{}
	without := r.point.free()
	if r.cause.without != nil {
		r.cause.without(r.point, &without)
	}
	if result, r.err = carryOut(t, without); r.err == nil {
		r.gains[r.cause.limiter] = goodput(result)/r.with - 1
	}
	if r.err == nil && r.cause.limiter == limiter.Bottleneck && r.verdict.Limiter == limiter.Congestion {
		if result, r.err = carryOut(t, r.point.free()); r.err == nil { // a queue that is not too short
			r.gains[limiter.Congestion] = goodput(result)/r.with - 1
		}
	}
	t.Log(r.String())
}

// sentFrom judges the direction of a capture that an end sent, among those beside it.
func sentFrom(file string, end netip.AddrPort) (limiter.Diagnosis, *flow.Direction, error) {
	f, err := capture.Open(file)
	if err != nil {
		return limiter.Diagnosis{}, nil, err
	}
	defer f.Close()
	a, err := capture.Analyze(context.Background(), capture.Config{Workers: 1}, f)
	if err != nil {
		return limiter.Diagnosis{}, nil, err
	}
	var asked limiter.Parallel
	var all []limiter.Parallel
	for _, c := range a.Connections {
		for _, d := range c.Directions() {
			one := limiter.Parallel{Connection: c, Direction: d}
			if d.From.AddrPort() == end {
				asked = one
			}
			if d.From.AddrPort().Addr() == end.Addr() {
				all = append(all, one)
			}
		}
	}
	if asked.Direction == nil {
		return limiter.Diagnosis{}, nil, fmt.Errorf("%s: no data from %v in it", file, end)
	}
	return limiter.JudgeCapture(asked.Connection, asked.Direction, all...), asked.Direction, nil
}

// kernelWindowShare is the part of the transfer in which the sender's kernel counted the
// peer's window as what held data back.
func kernelWindowShare(r *transfer.Result) float64 {
	end := r.Sender()
	if end == nil || len(end.Streams) != 1 || len(end.Streams[0].Samples) == 0 {
		return math.NaN()
	}
	s := end.Streams[0]
	last := s.Samples[len(s.Samples)-1]
	if last.Have&transfer.HaveLimits == 0 || s.Last <= s.First {
		return math.NaN()
	}
	return last.ReceiveLimited.Seconds() / (s.Last - s.First).Seconds()
}

// fits says whether a verdict is right by what was gained, where a capture cannot tell
// why a sender holds itself back, and a shaper at the sender is a link to all others.
func (r *captured) fits(v limiter.Verdict) (right, known bool) {
	gain := r.gains[r.cause.limiter]
	if gain < limits {
		return false, false
	}
	if r.gains[v.Limiter] >= limits {
		return true, true
	}
	if v.Limiter == r.cause.limiter || v.Limiter == limiter.Sender && slices.Contains(v.Candidates, r.cause.limiter) ||
		v.Limiter == limiter.Bottleneck && r.cause.limiter == limiter.LocalQueue {
		return true, true
	}
	return false, gain >= limits+unsure
}

func (r *captured) String() string {
	text := fmt.Sprintf("%s at %v: %.3g Mbit/s, gained without %+.0f %%, %v", r.cause.name, r.point, r.with/1e6, 100*r.gains[r.cause.limiter], r.err)
	for _, view := range []string{"sender", "receiver"} {
		g := r.views[view]
		right, known := r.fits(g.Verdict)
		mark := map[bool]string{true: "right", false: "WRONG"}[right]
		if !known {
			mark = "too close to call"
		}
		text += fmt.Sprintf("\n    %-8s %s: %s %s %s", view, mark, g.Limiter, g.Subtype, g.Confidence)
		for _, n := range g.Shares.Top() {
			if g.Shares[n] >= 0.05 {
				text += fmt.Sprintf(" %s %.0f %%", n, 100*g.Shares[n])
			}
		}
	}
	return text
}

// windowClock is the share of a direction's time in which its window was full.
func windowClock(d *flow.Direction) float64 {
	var full, all int64
	for i := range d.Slices {
		for clock, took := range d.Slices[i].Clock {
			all += took
			if c := flow.Clock(clock); c == flow.Full || c == flow.Closed {
				full += took
			}
		}
	}
	return float64(full) / float64(max(all, 1))
}

func reportDiagnoses(t *testing.T, trials []*captured) {
	const command = "FULLPIPE_BANK=1 go test ./e2e -run TestBankDiagnose -timeout 60m"
	record := func(name, claim, measured, spread string, ok bool) {
		t.Helper()
		record(t, bankRow{Section: "captures", Case: name, Claim: claim, Measured: measured, Spread: spread,
			Verdict: map[bool]string{true: "pass", false: "fail"}[ok], Command: command})
	}
	confident, agree, judged := 0, 0, 0
	for view, least := range map[string]float64{"sender": 0.9, "receiver": 0.85} {
		right, known := 0, 0
		var wrong []string
		var off []float64
		for _, r := range trials {
			if r.err != nil {
				t.Errorf("%s at %v: %v", r.cause.name, r.point, r.err)
				continue
			}
			v := r.views[view].Verdict
			if ok, sure := r.fits(v); sure {
				known++
				if ok {
					right++
				} else {
					wrong = append(wrong, r.cause.name)
					if v.Confidence == limiter.High {
						confident++
					}
				}
			}
			if !math.IsNaN(r.windowShare) {
				off = append(off, math.Abs(windowClock(r.flows[view])-r.windowShare))
			}
		}
		slices.Sort(wrong)
		record("verdict at the "+view, fmt.Sprintf("right in %.0f %% of the trials", 100*least), fmt.Sprintf("%d of %d", right, known),
			"wrong: "+strings.Join(slices.Compact(wrong), ", "), float64(right) >= least*float64(known))
		if slices.Sort(off); len(off) > 0 {
			within := map[string]float64{"sender": 0.05, "receiver": 0.1}[view]
			n := 0
			for _, o := range off {
				if o <= within {
					n++
				}
			}
			record("share of a full window at the "+view, fmt.Sprintf("within %.0f points of the kernel's clock", 100*within),
				fmt.Sprintf("%d of %d trials", n, len(off)), fmt.Sprintf("median off %.1f, most %.1f points", 100*off[len(off)/2], 100*off[len(off)-1]),
				float64(n) >= 0.9*float64(len(off)))
		}
	}
	var inside, predicted int
	for _, r := range trials {
		if r.err != nil {
			continue
		}
		a, b := r.views["sender"].Verdict, r.views["receiver"].Verdict
		judged++
		fitsA, _ := r.fits(a)
		fitsB, _ := r.fits(b)
		if a.Limiter == b.Limiter || fitsA && fitsB || min(rank(a.Confidence), rank(b.Confidence)) == 0 {
			agree++
		}
		p := r.views["sender"].Prediction
		if right, known := r.fits(a); p == nil || !right || !known {
			continue
		}
		predicted++
		if got := r.with * (1 + r.gains[r.cause.limiter]); got >= 0.98*p.LowBps && (p.AtLeast || got <= 1.02*p.HighBps) {
			inside++
		}
	}
	record("wrong with high confidence", "at most 1 % of the verdicts", fmt.Sprintf("%d of %d", confident, 2*judged), "sender and receiver", float64(confident) <= 0.02*float64(judged))
	record("sender and receiver agree", "the same verdict, both right, or one of them of low confidence", fmt.Sprintf("%d of %d", agree, judged), "", float64(agree) >= 0.9*float64(judged))
	record("prediction after the fix", "inside the printed range in 90 %", fmt.Sprintf("%d of %d", inside, predicted), "the fix applied in the lab", float64(inside) >= 0.9*float64(predicted))
}

func rank(c limiter.Confidence) int {
	return slices.Index([]limiter.Confidence{limiter.Low, limiter.Medium, limiter.High}, c)
}
