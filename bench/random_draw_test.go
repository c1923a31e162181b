//go:build linux

package bench

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
	"github.com/fullpipe-net/fullpipe/internal/link"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// randomPath is a path, its hosts and their buffers as nobody chose them. Its text replays it:
// FULLPIPE_BANK_CASE takes it.
type randomPath struct {
	bps           float64
	rtt           time.Duration
	queue         float64 // in BDPs
	loss          float64 // per cent
	jitter        time.Duration
	send, receive int    // requested, bytes; 0: the system's own sizing
	near, far     string // the hosts' stacks; "": the lab's own, with ceilings that do not bind
	bytes         int    // of a file; 0: for a time
	bbr, ipv6     bool
}

// drawPath draws rates, round trips and queues evenly in the logarithm, buffers as the
// documents advise (a BDP and a little more) or too small, and now and then loss, jitter,
// another system at either end, a short file and bbr: two of them at once are as likely as
// chance makes them. A third is IPv6.
func drawPath(r *rand.Rand, mostBps float64) randomPath {
	at := randomPoint(r, span{2e6, mostBps, 5 * time.Millisecond, 150 * time.Millisecond})
	p := randomPath{bps: at.RateBps, rtt: at.RTT, queue: []float64{0.5, 1, 1, 2, 4}[r.IntN(5)]}
	if r.IntN(4) == 0 {
		p.loss = []float64{0.01, 0.1, 0.3, 1}[r.IntN(4)]
	}
	if r.IntN(5) == 0 {
		p.jitter = p.rtt / 20
	}
	buffer := func() int {
		if r.IntN(2) == 0 {
			return 0
		}
		factor := []float64{0.25, 0.5, 0.8, 1, 1.05, 1.2, 1.5, 3}[r.IntN(8)]
		return max(int(factor*at.BDP()), 8192)
	}
	p.send, p.receive = buffer(), buffer()
	stacks := []string{"linux-6.1", "windows-95", "windows-2000", "windows-xp", "server-2012", "windows-11", "macos"}
	switch stack := stacks[r.IntN(len(stacks))]; r.IntN(6) {
	case 0:
		p.near = stack
	case 1:
		p.far = stack
	}
	if r.IntN(6) == 0 && harness.MinBDP(60e3)(at) {
		p.bytes = int(at.BDP()) * []int{1, 2, 4}[r.IntN(3)]
	}
	p.bbr, p.ipv6 = r.IntN(6) == 0 && p.near == "", r.IntN(3) == 0
	return p
}

func (p randomPath) String() string {
	return fmt.Sprintf("bps=%.0f rtt=%v queue=%g loss=%g jitter=%v send=%d receive=%d near=%s far=%s bytes=%d bbr=%t "+
		"ipv6=%t", p.bps, p.rtt, p.queue, p.loss, p.jitter, p.send, p.receive, p.near, p.far, p.bytes, p.bbr, p.ipv6)
}

func parsePath(text string) (p randomPath, err error) {
	for _, field := range strings.Fields(text) {
		key, value, _ := strings.Cut(field, "=")
		switch key {
		case "bps":
			p.bps, err = strconv.ParseFloat(value, 64)
		case "rtt":
			p.rtt, err = time.ParseDuration(value)
		case "queue":
			p.queue, err = strconv.ParseFloat(value, 64)
		case "loss":
			p.loss, err = strconv.ParseFloat(value, 64)
		case "jitter":
			p.jitter, err = time.ParseDuration(value)
		case "send":
			p.send, err = strconv.Atoi(value)
		case "receive":
			p.receive, err = strconv.Atoi(value)
		case "near":
			p.near = value
		case "far":
			p.far = value
		case "bytes":
			p.bytes, err = strconv.Atoi(value)
		case "bbr":
			p.bbr, err = strconv.ParseBool(value)
		case "ipv6":
			p.ipv6, err = strconv.ParseBool(value)
		default:
			err = fmt.Errorf("%s: no such key", key)
		}
		if err != nil {
			return p, err
		}
	}
	return p, nil
}

// setup returns the transfer.
func (p randomPath) setup() harness.LabTransfer {
	at := harness.PathPoint{RateBps: p.bps, RTT: p.rtt}
	s := at.UnlimitedTransfer()
	s.IPv6 = p.ipv6
	more := ""
	if p.loss > 0 {
		more += fmt.Sprintf(",loss=%g%%", p.loss)
	}
	if p.jitter > 0 {
		more += fmt.Sprintf(",jitter=%v", p.jitter)
	}
	if p.near != "" {
		more, s.Near = more+",near.stack="+p.near, ""
	}
	if p.far != "" {
		more, s.Far = more+",far.stack="+p.far, ""
	}
	s.Path = at.LabPath(max(p.queue*at.BDP(), 15e3), more)
	s.Spec.Near.SendBuffer, s.Spec.Far.ReceiveBuffer = p.send, p.receive
	if p.bytes > 0 {
		s.Spec.Bytes, s.Spec.Time = int64(p.bytes), 0
	}
	if p.bbr {
		s.Spec.Near.Congestion = "bbr"
	}
	return s
}

// removal is a transfer without one cause.
type removal struct {
	name verdict.Name
	harness.LabTransfer
}

// removals are the counterfactuals. Each removes one cause:
//   - bottleneck: the link and its queue are twice as large, so that the queueing delay stays the same;
//   - congestion: no loss, or, where the path has none of its own, a queue of two BDPs (60 kB at
//     least) in place of one that is shorter than a BDP;
//   - send-buffer, receiver-window: a size below twice the capacity of path and queue is raised to at least
//     that by the system's autotuning with maxima of 64 MiB. Window scaling and SACK are enabled as well,
//     because systems introduced them together;
//   - slow-start: the initial window is the BDP, sent at the link's rate, where slow start to that
//     window takes a twentieth of the time or more.
func (p randomPath) removals() (all []removal) {
	at := harness.PathPoint{RateBps: p.bps, RTT: p.rtt}
	free, enough := at.UnlimitedTransfer(), int(2*(1+p.queue)*at.BDP())
	quick := p.setup()
	quick.Path = strings.Replace(quick.Path, at.LabPath(max(p.queue*at.BDP(), 15e3), ""),
		at.DoubleRate().LabPath(2*max(p.queue*at.BDP(), 15e3), ""), 1)
	all = append(all, removal{verdict.Bottleneck, quick})
	switch q := p; {
	case p.loss > 0:
		q.loss = 0
		all = append(all, removal{verdict.Congestion, q.setup()})
	case p.queue < 1:
		q.queue = max(2, 60e3/at.BDP())
		all = append(all, removal{verdict.Congestion, q.setup()})
	}
	if p.sends() < enough {
		s := p.setup()
		if s.Near, s.Spec.Near.SendBuffer = free.Near, 0; p.near != "" {
			s.Path += ",near.afd=off"
		}
		all = append(all, removal{verdict.SendBuffer, s})
	}
	if p.receives() < enough {
		s := p.setup()
		if s.Far, s.Spec.Far.ReceiveBuffer = free.Far, 0; p.near != "" || p.far != "" {
			s.Path += ",scaling=on,sack=on,far.window=auto,far.factor=auto"
		}
		all = append(all, removal{verdict.ReceiverWindow, s})
	}
	if p.opens() {
		all = append(all, removal{verdict.SlowStart, p.opened()})
	}
	return all
}

// most returns the last number of a stack's setting: its maximum.
func most(s link.Stack, sysctl string) int {
	for _, c := range s.Sysctls {
		var least, first, most int
		if _, err := fmt.Sscan(c.Value, &least, &first, &most); c.Name == sysctl && err == nil {
			return most
		}
	}
	return math.MaxInt
}

// stack returns the stack, if one was drawn.
func stack(name string) (s link.Stack, drawn bool) {
	s, err := link.FindStack(name)
	return s, err == nil
}

// sends returns the capacity of the sender's buffer. A socket's payload is about half of a maximum.
func (p randomPath) sends() int {
	s, drawn := stack(p.near)
	quota := 0
	switch _, err := fmt.Sscanf(s.SenderRule, "afd:%d", &quota); {
	case p.send > 0:
		return p.send
	case err == nil:
		return quota
	case drawn:
		return most(s, "ipv4.tcp_wmem") / 2
	}
	return math.MaxInt
}

// receives returns the largest window of the receiver.
func (p randomPath) receives() int {
	const unscaled = 65535
	largest := math.MaxInt
	s, drawn := stack(p.far)
	switch {
	case p.receive > 0:
		largest = p.receive
	case s.Window > 0:
		largest = s.Window
	case drawn:
		largest = most(s, "ipv4.tcp_rmem") / 2
	}
	if s.LargestWindow > 0 {
		largest = min(largest, s.LargestWindow)
	}
	if p.near == "windows-95" || p.far == "windows-95" { // either offers no window scale
		largest = min(largest, unscaled)
	}
	return largest
}

// opens reports whether doubling ten segments up to the BDP takes a twentieth of the time and more.
func (p randomPath) opens() bool {
	const initial = 10 * 1448
	doublings := math.Log2(harness.PathPoint{RateBps: p.bps, RTT: p.rtt}.BDP() / initial)
	took := max(p.setup().Spec.Time.Seconds(), float64(p.bytes)*8/p.bps)
	return doublings*p.rtt.Seconds() >= 0.05*took
}

// opened is the transfer with an initial window of the BDP, paced at the link's rate: a burst would overflow a queue
// of less than a BDP. Its receiver's window must not be smaller than that.
func (p randomPath) opened() harness.LabTransfer {
	bdp := harness.PathPoint{RateBps: p.bps, RTT: p.rtt}.BDP()
	family := "-4"
	if p.ipv6 {
		family = "-6"
	}
	route := func(attribute string) string {
		return fmt.Sprintf("; ip %s route show dev $DEVICE | grep src | while read -r to rest; do "+
			"ip %s route change $to dev $DEVICE $rest %s %.0f; done", family, family, attribute, math.Ceil(bdp/1400))
	}
	s := p.setup()
	s.Spec.Near.PacingBps = p.bps
	s.Near += route("initcwnd")
	if p.far == "" {
		s.Far += fmt.Sprintf("; echo 4096 %.0f 67108864 >tcp_rmem", max(4*bdp, 131072)) + route("initrwnd")
	}
	s.Near, s.Far = strings.TrimPrefix(s.Near, "; "), strings.TrimPrefix(s.Far, "; ")
	return s
}

// A case's text is the case, and nothing is taken away that is not there.
func TestRandomPathsReplay(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 0))
	seen := map[verdict.Name]int{}
	stacks, both, files := 0, 0, 0
	for range 500 {
		p := drawPath(r, mostRandom)
		again, err := parsePath(p.String())
		if err != nil || again != p {
			t.Fatalf("%v, %v, %v", p, again, err)
		}
		if p.near != "" || p.far != "" {
			stacks++
		}
		if p.bytes > 0 {
			files++
		}
		n := 0
		for _, one := range p.removals() {
			seen[one.name]++
			if _, err := link.Parse(one.Path); err != nil {
				t.Fatal(err)
			}
			if one.Path == p.setup().Path && one.Spec.Near == p.setup().Spec.Near && one.Spec.Far == p.setup().Spec.Far &&
				one.Near == p.setup().Near && one.Far == p.setup().Far {
				t.Errorf("%v: nothing is taken away with %s", p, one.name)
			}
			if one.name != verdict.Bottleneck {
				n++
			}
		}
		if n > 1 {
			both++
		}
	}
	for _, name := range []verdict.Name{verdict.Bottleneck, verdict.Congestion, verdict.SendBuffer, verdict.ReceiverWindow,
		verdict.SlowStart} {
		if seen[name] < 50 {
			t.Errorf("%s is taken away in %d of 500", name, seen[name])
		}
	}
	if stacks < 100 || both < 100 || files < 20 {
		t.Errorf("%d other systems, %d with two causes and more, %d files", stacks, both, files)
	}
}
