//go:build linux

package bench

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
	"github.com/fullpipe-net/fullpipe/internal/flow"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/timeline"
)

// diagnosed is a trial of the attribution with the verdicts on its captures.
type diagnosed struct {
	trial
	views []view
	freed map[verdict.Name]float64 // goodput without it, bit/s
}

// view is a transfer as one capture shows it.
type view struct {
	captureInfo
	timeline.Diagnosis
	flow *flow.Direction
}

// captureInfo is what the bank knows about a capture in addition to its packets.
type captureInfo struct {
	Vantage     string // "sender", "receiver", "middle"
	Offloads    bool   // super-segments at both ends, else packets
	File        string
	Sender      netip.AddrPort
	Goodput     float64 // bit/s
	WindowShare float64 // by the kernel's clock; below 0: not known
	Lost        int     // packets that the capturing program says it lost
}

// kept is the stored part of a trial, except for its captures.
type kept struct {
	Cause        string
	Bps          float64
	RTT          time.Duration
	With         float64
	Gains, Freed map[verdict.Name]float64
	Captures     []captureInfo
}

// TestBankDiagnose captures every cause of the attribution bank, with and without the hosts' offloads. It compares
// the verdicts on the captures with the gain from removing the cause. FULLPIPE_BANK_TRIALS is the number of points
// for each cause (2), FULLPIPE_BANK_SEED draws other points, FULLPIPE_BANK_RATES bounds their rates ("1e6-1e9"), and
// FULLPIPE_BANK_CAUSES picks causes. FULLPIPE_BANK_CAPTURES is a directory that keeps the captures and the truth
// about them; with FULLPIPE_BANK_AGAIN=1 the test judges the captures in it instead. It takes about 15 minutes.
func TestBankDiagnose(t *testing.T) {
	bankOnly(t)
	dir := os.Getenv("FULLPIPE_BANK_CAPTURES")
	if dir == "" {
		dir = t.TempDir()
	}
	if os.Getenv("FULLPIPE_BANK_AGAIN") == "1" {
		reportDiagnoses(t, judgedAgain(t, dir))
		return
	}
	var trials []*diagnosed
	for _, one := range drawTrials(t, span{1e6, 1e9, time.Millisecond, 300 * time.Millisecond}, 2) {
		trials = append(trials, &diagnosed{trial: one, freed: map[verdict.Name]float64{}})
	}
	for _, group := range side(trials) {
		alone(t, func() {
			var wait sync.WaitGroup
			for _, r := range group {
				wait.Go(func() {
					r.carryOut(t, filepath.Join(dir, fmt.Sprintf("%03d", slices.Index(trials, r))))
				})
			}
			wait.Wait()
		})
	}
	reportDiagnoses(t, trials)
}

// side groups the trials that may run concurrently: three of similar duration where the link is slow, else one.
func side(trials []*diagnosed) (groups [][]*diagnosed) {
	const abreast = 3
	var light []*diagnosed
	for _, r := range trials {
		if r.point.RateBps <= lightest {
			light = append(light, r)
		} else {
			groups = append(groups, []*diagnosed{r})
		}
	}
	slices.SortStableFunc(light, func(a, b *diagnosed) int { return int(a.point.RTT - b.point.RTT) })
	return slices.AppendSeq(groups, slices.Chunk(light, abreast))
}

// carryOut captures the transfer with its cause, and measures the gain without it.
func (r *diagnosed) carryOut(t *testing.T, name string) {
	for _, offloads := range []bool{true, false} {
		if r.err = r.capture(t, name, offloads); r.err != nil {
			return
		}
	}
	r.verdict, r.with = r.views[0].Verdict, r.with/2
	r.gains = map[verdict.Name]float64{}
	if on := r.views[0].Goodput; r.point.RateBps > lightest && r.cause.Limiter == verdict.Bottleneck {
		r.freed[verdict.CPU] = on // packets one by one may be more than the sending processor can do
	}
	gain := func(name verdict.Name, without harness.LabTransfer) {
		result, err := harness.RunTransfer(t, without)
		if r.err = err; err == nil {
			r.freed[name] = harness.Goodput(result)
			r.gains[name] = r.freed[name]/r.with - 1
		}
	}
	without := r.point.UnlimitedTransfer()
	if r.cause.Without != nil {
		r.cause.Without(r.point, &without)
	}
	gain(r.cause.Limiter, without)
	for _, said := range r.others() {
		with := r.point.UnlimitedTransfer()
		r.cause.With(r.point, &with)
		switch {
		case r.err != nil:
			return
		case said == verdict.Congestion && r.cause.Limiter == verdict.Bottleneck:
			gain(said, r.point.UnlimitedTransfer()) // a queue that is not too short
		case said == verdict.Bottleneck:
			faster := r.point.DoubleRate().UnlimitedTransfer()
			r.cause.With(r.point, &faster)
			faster.Path = strings.Replace(with.Path, fmt.Sprintf("rate=%.0f,", r.point.RateBps), fmt.Sprintf("rate=%.0f,",
				2*r.point.RateBps), 1)
			gain(said, faster)
		case said == verdict.SlowStart && with.Spec.Time > 0: // also where a stall of the machine ended slow start
			with.Spec.Time *= 3
			gain(said, with)
		case said == verdict.Sender && with.Spec.Near.SendBuffer > 0 && r.freed[verdict.SendBuffer] == 0:
			with.Spec.Near.SendBuffer = 0
			gain(verdict.SendBuffer, with)
		case said == verdict.ReceiverWindow && with.Spec.Far.ReceiveBuffer > 0 && r.freed[said] == 0:
			with.Spec.Far.ReceiveBuffer = 0
			gain(said, with)
		}
	}
	if err := r.keep(name + ".json"); err != nil {
		t.Error(err)
	}
	t.Log(r.String())
}

func (r *diagnosed) keep(file string) error {
	k := kept{Cause: r.cause.Name, Bps: r.point.RateBps, RTT: r.point.RTT, With: r.with, Gains: r.gains, Freed: r.freed}
	for i := range r.views {
		k.Captures = append(k.Captures, r.views[i].captureInfo)
	}
	for _, gains := range []map[verdict.Name]float64{k.Gains, k.Freed} {
		for name, v := range gains {
			gains[name] = min(v, math.MaxFloat32) // of nothing, everything is infinitely more
		}
	}
	text, err := json.MarshalIndent(k, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o644)
}

// judgedAgain reads the trials that keep has written to a directory.
func judgedAgain(t *testing.T, dir string) (trials []*diagnosed) {
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no trial was kept in %s: %v", dir, err)
	}
	for _, file := range files {
		var k kept
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, &k); err != nil {
			t.Fatal(err)
		}
		all := harness.Causes()
		r := &diagnosed{freed: k.Freed, trial: trial{point: harness.PathPoint{RateBps: k.Bps, RTT: k.RTT}, with: k.With,
			gains: k.Gains}}
		r.cause = all[slices.IndexFunc(all, func(c harness.Cause) bool { return c.Name == k.Cause })]
		for _, capture := range k.Captures {
			if r.err = r.look(dir, capture); r.err != nil {
				break
			}
		}
		t.Log(filepath.Base(file), r.String())
		trials = append(trials, r)
	}
	return trials
}

// look judges a capture in a directory.
func (r *diagnosed) look(dir string, c captureInfo) error {
	g, d, err := harness.DiagnoseSender(filepath.Join(dir, c.File), c.Sender)
	if err == nil {
		r.views = append(r.views, view{c, g, d})
	}
	return err
}

// others are the limiters that captures named instead of the cause.
func (r *diagnosed) others() (all []verdict.Name) {
	for i := range r.views {
		if right, _ := r.fits(&r.views[i]); !right {
			all = append(all, r.views[i].Limiter)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func (r *diagnosed) capture(t *testing.T, name string, offloads bool) error {
	with := r.point.UnlimitedTransfer()
	r.cause.With(r.point, &with)
	where := map[string]string{}
	c := &harness.Captures{}
	if offloads {
		c.Near, c.Far = name+".on.near.pcap", name+".on.far.pcap"
	} else {
		c.Near, c.Far, c.Middle = name+".off.near.pcap", name+".off.far.pcap", name+".off.middle.pcap"
		where["middle"] = c.Middle
		for _, script := range []*string{&with.Near, &with.Far} {
			*script = cmp.Or(*script, "true") + "; ip link set $DEVICE gso_max_segs 1"
		}
	}
	with.Captures = c
	result, err := harness.RunTransfer(t, with)
	if err != nil {
		return err
	}
	r.with += harness.Goodput(result)
	where["sender"], where["receiver"] = c.Near, c.Far
	if with.Spec.Direction == transfer.Down {
		where["sender"], where["receiver"] = c.Far, c.Near
	}
	for _, vantage := range vantages {
		if where[vantage] == "" {
			continue
		}
		if err := r.look(filepath.Dir(name), captureInfo{vantage, offloads, filepath.Base(where[vantage]),
			result.Sender().Streams[0].Local, harness.Goodput(result), kernelWindowShare(result), c.Lost}); err != nil {
			return err
		}
	}
	return nil
}

var vantages = []string{"sender", "receiver", "middle"}

// kernelWindowShare is the part of the transfer in which the sender's kernel counted itself as limited by the receive
// window.
func kernelWindowShare(r *transfer.Result) float64 {
	end := r.Sender()
	if end == nil || len(end.Streams) != 1 || len(end.Streams[0].Samples) == 0 {
		return -1
	}
	s := end.Streams[0]
	last := s.Samples[len(s.Samples)-1]
	if last.Have&transfer.HaveLimits == 0 || s.Last <= s.First {
		return -1
	}
	return last.RwndLimited.Seconds() / (s.Last - s.First).Seconds()
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

// fits reports whether a verdict agrees with the measured gain. It allows for two limits of a capture: the cause of a
// sender's own pauses is not visible, and a shaper at the sender looks like a link.
func (r *diagnosed) fits(v *view) (right, known bool) {
	most, unclear := 0.0, false
	for name, freed := range r.freed {
		gain := freed/v.Goodput - 1
		meant := v.Limiter == name || v.Limiter == verdict.Sender && slices.Contains(v.Candidates, name) ||
			v.Limiter == verdict.Bottleneck && name == verdict.LocalQueue
		if meant && gain >= limits {
			return true, true
		}
		unclear = unclear || meant && gain >= limits-unsure
		most = max(most, gain)
	}
	return false, most >= limits+unsure && !unclear
}

// foresaw reports whether the goodput measured without the cause lies in the printed range.
func (r *diagnosed) foresaw(p *timeline.Prediction) bool {
	got := r.freed[r.cause.Limiter]
	return got >= 0.98*p.LowBps && (p.AtLeast || got <= 1.02*p.HighBps)
}

// agree reports whether the captures of one transfer that name a limiter name the same one,
// or each a true one.
func (r *diagnosed) agree(offloads bool) bool {
	var named []verdict.Name
	true_ := true
	for i := range r.views {
		v := &r.views[i]
		if v.Offloads != offloads || v.Limiter == verdict.Unknown || v.Limiter == verdict.Mixed {
			continue
		}
		right, _ := r.fits(v)
		true_ = true_ && right
		named = append(named, v.Limiter)
	}
	slices.Sort(named)
	return true_ || len(slices.Compact(named)) <= 1
}

func (r *diagnosed) String() string {
	text := fmt.Sprintf("%s at %v: %.3g Mbit/s,", r.cause.Name, r.point, r.with/1e6)
	for name, gain := range r.gains {
		text += fmt.Sprintf(" %+.0f %% without %s,", 100*gain, name)
	}
	for i := range r.views {
		v := &r.views[i]
		right, known := r.fits(v)
		mark := map[bool]string{true: "right", false: "WRONG"}[right]
		if !known {
			mark = "too close to call"
		}
		text += fmt.Sprintf("\n    %-8s %-3s %s: %s %s %s", v.captureInfo.Vantage, map[bool]string{true: "on",
			false: "off"}[v.Offloads], mark, v.Limiter, v.Subtype, v.Confidence)
		for _, n := range v.Shares.Top() {
			if v.Shares[n] >= 0.05 {
				text += fmt.Sprintf(" %s %.0f %%", n, 100*v.Shares[n])
			}
		}
		text += fmt.Sprintf("; window full %.0f %%, by the kernel %.0f %%", 100*windowClock(v.flow), 100*v.WindowShare)
		if p := v.Prediction; p != nil {
			text += fmt.Sprintf("; predicted %.3g to %.3g Mbit/s%s, gave %.3g%s", p.LowBps/1e6, p.HighBps/1e6,
				map[bool]string{true: " at least"}[p.AtLeast],
				r.freed[r.cause.Limiter]/1e6, map[bool]string{false: " OUTSIDE"}[r.foresaw(p)])
		}
		if v.Lost > 0 || v.flow.Unseen > 0 {
			text += fmt.Sprintf("; tcpdumps lost %d packets, %d bytes unseen", v.Lost, v.flow.Unseen)
		}
	}
	return text
}
