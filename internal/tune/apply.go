package tune

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/audit"
	"github.com/fullpipe-net/fullpipe/internal/host"
	"github.com/fullpipe-net/fullpipe/internal/model"
	"github.com/fullpipe-net/fullpipe/internal/plan"
	"github.com/fullpipe-net/fullpipe/internal/stats"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// Applied is what a change of this host's settings gave, measured with it and without it
// in turn.
type Applied struct {
	Changes []host.Did     // of this host
	Far     []host.Did     // of the far one
	Before  Measured       // with the old settings
	After   Measured       // with the new ones
	Gain    stats.Interval // of goodput, or of what the goal wants to be large
	rate    stats.Interval // of goodput, where the goal is another
	goal    Goal
	// Kept says that the change stands; else it was taken back, and Reason says why.
	Kept   bool
	Reason string
	// Marked is how many segments queues marked, all runs with the change together, where
	// ECN was asked for and the sender tells; else nil.
	Marked *int64
}

// fewestPairs keeps two runs that happen to agree from deciding.
const fewestPairs = 3

// HostChanges are what this host, as the snapshot shows it, needs for a direction; far is
// the peer's address. The narrowest scope that serves comes first: a smaller window, where
// that was better, belongs to the route; larger buffers to the host; another congestion
// control, where windows do not limit and it helps, to the route or else to the host. Pacing
// becomes a shaper of what goes to the far end; a *host.UnsettableError says that the device's
// queue is to be left alone. Where a transfer of a stated size is of interest that slow start
// limits, the route's initial window is what it needs.
func (d *Direction) HostChanges(far netip.Addr, target plan.Target, now *audit.Snapshot) ([]host.Change, error) {
	prefix, err := host.RouteTo(far)
	routed := err == nil && prefix != "default" && prefix != "::/0"
	if routed && d.shortFile() > 0 {
		return []host.Change{host.Set(host.Route, prefix+" initcwnd", strconv.Itoa(d.File.InitialWindow))}, nil
	}
	if changes := d.narrower(prefix); routed && len(changes) > 0 {
		return changes, nil
	}
	if d.Chosen != nil && d.Chosen.PacingBps > 0 && d.Direction == transfer.Up {
		return d.shaper(far)
	}
	if d.Delay == nil { // larger buffers only lengthen a queue
		settings, err := d.hostSettings(target, now)
		if err != nil {
			return nil, err
		}
		changes, err := host.Changes(settings, "")
		if err != nil || len(changes) > 0 {
			return changes, err
		}
	}
	congestion := d.betterCongestion()
	switch {
	case congestion == "":
		return d.marks(now), nil
	case routed:
		return []host.Change{host.Set(host.Route, prefix+" congctl", congestion)}, nil
	}
	return []host.Change{host.Set(host.Sysctl, "net.ipv4.tcp_congestion_control", congestion)}, nil
}

// shortFile is the size of the transfer of interest, where slow start is what limits that one
// and this host is who sends it; else 0.
func (d *Direction) shortFile() int64 {
	if d.File == nil || d.File.InitialWindow == 0 || d.Direction != transfer.Up {
		return 0
	}
	return d.File.Bytes
}

// shaper holds what this host sends to the far end to the chosen pacing.
func (d *Direction) shaper(far netip.Addr) ([]host.Change, error) {
	name, err := host.ShaperTo(far)
	if err != nil {
		return nil, &host.UnsettableError{Setting: "a shaper", Why: err.Error()}
	}
	changes := []host.Change{host.Set(host.Qdisc, name, strconv.FormatInt(int64(d.Chosen.PacingBps)/8*8, 10))}
	if _, err := host.Preview(host.Config{}, changes); err != nil {
		return nil, &host.UnsettableError{Setting: "a shaper", Why: err.Error()}
	}
	return changes, nil
}

// marks has this host ask for ECN where loss limits and nothing else helps that it can do. The
// far end agrees by its default (net.ipv4.tcp_ecn = 2). Only a queue that marks makes a
// difference then, so the proof takes it back on any other path.
func (d *Direction) marks(now *audit.Snapshot) []host.Change {
	v := d.Before.Verdict
	elsewhere := d.Chosen == nil || d.Direction == transfer.Down && d.Chosen.Window == 0 // nothing of it is this host's
	// A queue that drops what it cannot mark looks like a policer.
	policed := v.Subtype != "" && v.Confidence != verdict.Low
	if v.Limiter != verdict.Congestion || policed || !elsewhere || now.Values[ecnSetting] == "1" {
		return nil
	}
	return []host.Change{host.Set(host.Sysctl, ecnSetting, "1")}
}

// ecnSetting is 1 where connections ask for ECN, 2 where they agree to it only (tcp(7)).
const ecnSetting = "net.ipv4.tcp_ecn"

// count adds what was marked in a run with the change.
func (a *Applied) count(r *transfer.Result) {
	if a.Marked == nil {
		return
	}
	if marked, ok := r.Marked(); ok {
		*a.Marked += marked
	} else {
		a.Marked = nil
	}
}

// hostSettings raise the buffers' maxima of this host to what fills the path.
func (d *Direction) hostSettings(target plan.Target, now *audit.Snapshot) ([]plan.Setting, error) {
	role := plan.Sender
	if d.Direction == transfer.Down {
		role = plan.Receiver
	}
	p, err := d.hostPlan(target, role, now)
	if err != nil {
		return nil, err
	}
	return p.Settings, nil
}

// hostPlan raises the buffers' maxima to what fills the path by automatic sizing. Where
// windows still limited the fastest transfer, nobody knows how much more the path carries:
// then twice what that transfer needed. The host's memory bounds it.
func (d *Direction) hostPlan(target plan.Target, role plan.Role, now *audit.Snapshot) (*plan.Plan, error) {
	if d.Path.BottleneckBps <= 0 || d.Path.RTT <= 0 {
		return nil, errors.New("too little was measured to plan")
	}
	window := float64(d.Path.Window)
	if d.Chosen != nil {
		window = max(window, float64(d.Chosen.Window))
	}
	if d.Path.AtLeast {
		window *= 2
	}
	path := plan.Path{RateBps: d.Path.BottleneckBps, RTT: d.Path.RTT, Jitter: d.Path.Jitter, MSS: d.Path.MSS,
		ReceiveWindow: model.Window(window, d.Path.MSS), MemoryBytes: now.MemoryBytes}
	if now.LimitBytes > 0 {
		path.MemoryBytes = min(path.MemoryBytes, now.LimitBytes)
	}
	return plan.New(path, target, plan.Options{Role: role, Values: now.Values})
}

// narrower are the attributes of the route to the far end that hold this host to the
// chosen window, where that is smaller than what automatic sizing takes.
func (d *Direction) narrower(prefix string) []host.Change {
	automatic := 0
	for _, t := range d.Trials {
		if t.Automatic && t.Remedy == "" {
			automatic = max(automatic, t.Effective)
		}
	}
	if d.Chosen == nil || d.Chosen.Window >= automatic {
		return nil
	}
	if d.Direction == transfer.Up {
		return []host.Change{host.Set(host.Route, prefix+" cwnd", strconv.Itoa(max(2, d.Chosen.Window/d.Path.MSS)))}
	}
	return []host.Change{host.Set(host.Route, prefix+" window", strconv.Itoa(d.Chosen.Window))}
}

// betterCongestion is the congestion control that was shown to help this host's sending by
// a tenth or more, by itself; "" where none was.
func (d *Direction) betterCongestion() string {
	if d.Direction != transfer.Up {
		return ""
	}
	if d.Chosen != nil && d.Chosen.Congestion != "" {
		return d.Chosen.Congestion
	}
	name, best := "", 1.1
	for _, r := range d.Remedies {
		alone := r.Setup == (Setup{Congestion: r.Setup.Congestion}) && r.Beside == Setup{}
		if alone && r.Setup.Congestion != "" && r.Gain.Low > 1 && r.Gain.Mid > best {
			name, best = r.Setup.Congestion, r.Gain.Mid
		}
	}
	return name
}

// Apply makes the changes on this host, and those of the far one if it is not nil, and
// measures what a program gets with them and without them in turn, B A A B …, each time on
// fresh connections. Unless the factor is shown to be above 1, the hosts are put back as they
// were, and so they are after an error or when ctx ends.
func Apply(ctx context.Context, cfg Config, d *Direction, changes []host.Change, far *FarHost) (*Applied, error) {
	l := newLoop(cfg, d.Direction)
	l.out.Path = d.Path
	l.round = d.Path.RTT
	if l.budget.Time == 0 {
		l.budget.Time = max(30*time.Second, 300*d.Path.RTT)
	}
	if slices.ContainsFunc(changes, func(c host.Change) bool { return strings.HasSuffix(c.Name, " initcwnd") }) {
		l.fileBytes = d.shortFile()
	}
	s := &toggle{sides: []side{&thisHost{changes}}}
	if far != nil {
		s.sides = append(s.sides, far)
	}
	out := &Applied{goal: cfg.Goal}
	if slices.ContainsFunc(changes, func(c host.Change) bool { return c.Name == ecnSetting }) {
		out.Marked = new(int64)
	}
	err := l.alternate(ctx, s, out)
	out.decide(err)
	// Whatever happened, the host ends as Kept says.
	settle := context.WithoutCancel(ctx)
	if failed := s.set(settle, out.Kept); failed != nil {
		err = errors.Join(err, failed)
		out.Kept, out.Reason = false, "the host could not be put into the state that the proof asks for (fullpipe status "+
			"tells): "+failed.Error()
	}
	if len(s.last) > 0 {
		out.Changes = s.last[0]
	}
	if len(s.last) > 1 {
		out.Far = s.last[1]
	}
	return out, err
}

// longEnough is how many round trips a buffer takes to grow from its default to what the path
// needs, and cubic to fill a long path after slow start was left early.
const longEnough = 30

// alternate measures pairs until the factor is known well enough; when the budget has
// ended, until it is known which is faster. The up to four looks at a 95 % interval that
// this takes leave one side's error below 5 %.
func (l *loop) alternate(ctx context.Context, s *toggle, out *Applied) error {
	var with, without []*Trial
	// Long enough for a buffer to grow from its default to what the path needs.
	length := max(longEnough*l.round, time.Second)
	for pair := 0; pair < mostPairs; pair++ {
		shown := out.Gain.Low > 1 || out.Gain.High < 1
		if pair >= fewestPairs && (out.Gain.Within(tight) || shown && !l.affordsTime(2*length)) {
			break
		}
		for turn := range 2 {
			on := (turn == 0) == (pair%2 == 0)
			if err := s.set(ctx, on); err != nil {
				return err
			}
			t, err := l.tryWith(ctx, on, length)
			if err != nil {
				return err
			}
			if on {
				out.count(t.result)
				with = append(with, &t)
			} else {
				without = append(without, &t)
			}
		}
		out.Before, out.After = l.measured(without), l.measured(with)
		out.Gain = stats.Gain(out.Before.Goodputs, out.After.Goodputs, confidence)
		if l.cfg.Goal == Latency || l.cfg.Goal == Fair && l.fileBytes == 0 {
			out.rate, out.Gain = out.Gain, stats.Gain(l.scores(without), l.scores(with), confidence)
		}
	}
	return nil
}

// tryWith makes one transfer of a proof: of the stated size where slow start is what limits
// that, and its whole time counts.
func (l *loop) tryWith(ctx context.Context, on bool, length time.Duration) (Trial, error) {
	reason := "proof: as it was"
	if on {
		reason = "proof: with the change"
	}
	t := l.automatic(length, reason)
	if l.fileBytes == 0 {
		return l.tryFor(ctx, t)
	}
	t.whole, t.Spec.Bytes, t.Spec.Time = true, l.fileBytes, 10*length
	return l.try(ctx, t)
}

// scores are what the goal wants to be large, of each transfer.
func (l *loop) scores(trials []*Trial) (all []float64) {
	for _, t := range trials {
		all = append(all, l.score(t, 0))
	}
	return all
}

func (l *loop) affordsTime(length time.Duration) bool { return l.elapsed+length <= l.budget.Time }

// decide keeps the change where it is shown to help.
func (a *Applied) decide(err error) {
	switch {
	case err != nil:
		a.Reason = "the proof was cut short: " + err.Error()
	case a.rate.Mid > 0 && a.rate.Mid < keeps:
		a.Reason = fmt.Sprintf("the change costs goodput (× %.2f)", a.rate.Mid)
	case a.Gain.Low > 1 && a.rate.Mid > 0 && a.goal == Fair:
		a.Kept, a.Reason = true, "shown to gain more than it takes from another flow on the link"
	case a.Gain.Low > 1 && a.rate.Mid > 0:
		a.Kept, a.Reason = true, "shown to shorten the queue and to keep the rate"
	case a.Gain.Low > 1:
		a.Kept = true
		a.Reason = "shown to be faster with the change"
	case a.Gain.High < 1:
		a.Reason = "the path is slower with the change"
	default:
		a.Reason = fmt.Sprintf("no gain was shown (× %.2f to × %.2f)", a.Gain.Low, a.Gain.High)
	}
	switch {
	case a.Marked == nil || err != nil:
	case *a.Marked == 0:
		a.Reason += "; no queue on the way marked anything"
	default:
		a.Reason += fmt.Sprintf("; queues marked %d segments instead of dropping them", *a.Marked)
	}
}
