package exec

import (
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/cli/cmdflag"
	"github.com/fullpipe-net/fullpipe/internal/cli/console"
	"github.com/fullpipe-net/fullpipe/internal/cli/farend"
	"github.com/fullpipe-net/fullpipe/internal/cli/progress"
	"github.com/fullpipe-net/fullpipe/internal/search"
	"github.com/fullpipe-net/fullpipe/internal/sockops"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/tune"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// toFlags select the path that exec measures before it starts CMD.
type toFlags struct {
	farend.PeerFlags
	peer   string
	budget cmdflag.Duration
}

func (t *toFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&t.peer, "to", "", "tune the path to this PEER first, then use the "+
		"settings that helped for connections to PEER")
	flags.StringVar(&t.Direction, "direction", "up", "with --to: up (CMD sends), down or both")
	flags.Var((*cmdflag.Period)(&t.budget), "budget", "with --to: time for each direction (default: as tune)")
	t.AddReach(flags, "with --to: ")
}

// rule tunes the path to the peer and returns the rule with the settings that helped, or nil if automatic sizing is as
// good.
func (t *toFlags) rule(cmd *cobra.Command) (*sockops.Rule, error) {
	t.DownOnly(cmd, t.peer)
	cfg, err := t.Tuning()
	if err != nil {
		return nil, err
	}
	cfg.Budget = time.Duration(t.budget)
	cfg.Goal = tune.Throughput
	cfg.Seed = 1
	t.Notes = console.Progress(cmd)
	far, err := t.Open(cmd.Context(), t.peer)
	if err != nil {
		return nil, err
	}
	defer far.Close()
	line := progress.NewLine(console.Progress(cmd))
	cfg.Peer = far
	cfg.Progress = line.Show
	result, err := tune.Run(cmd.Context(), cfg)
	line.Clear()
	if err != nil {
		return nil, err
	}
	rule, notes := ruleFor(result)
	for _, text := range notes {
		console.Note(cmd, "fullpipe: %s: %s", t.peer, text)
	}
	return rule, nil
}

// ruleFor returns the rule with this end's settings that helped, and notes on them and on the far end's settings, which
// exec cannot set.
func ruleFor(r *tune.Result) (rule *sockops.Rule, notes []string) {
	var to netip.Addr
	if r.Near != nil && len(r.Near.Streams) > 0 {
		to = r.Near.Streams[0].Remote.Addr().Unmap()
	}
	var socket transfer.Socket
	for i := range r.Directions {
		d := &r.Directions[i]
		spec, gain := helped(d)
		path := fmt.Sprintf("%s: %s, %s round trip", d.Direction, units.Rate(d.Path.BottleneckBps), units.Time(d.Path.RTT))
		if spec == nil {
			notes = append(notes, path+": no change was shown to help")
			continue
		}
		notes = append(notes, fmt.Sprintf("%s: %.3g times the goodput with %s", path, gain, socketText(spec.Near)))
		if spec.Far != (transfer.Socket{}) {
			notes = append(notes, fmt.Sprintf("%s: that was with %s at the far end, which exec cannot set: fullpipe tune "+
				"prints the commands",
				d.Direction, socketText(spec.Far)))
		}
		merge(&socket, spec.Near)
	}
	if !to.IsValid() || socket == (transfer.Socket{}) {
		return nil, notes
	}
	return &sockops.Rule{To: netip.PrefixFrom(to, to.BitLen()), Socket: socket}, notes
}

// helped returns the faster transfer and its factor: with the chosen window, otherwise with the best other remedy for
// one connection. A gain that is only likely does not count.
func helped(d *tune.Direction) (spec *transfer.Spec, gain float64) {
	if d.Decision.Strength == search.Likely {
		return nil, 0
	}
	shown := d.Decision.Strength == search.Shown && d.Gain != nil && d.Gain.Low > 1
	if shown && d.After != nil && d.After.Typical != nil && d.After.Typical.Spec.Streams <= 1 {
		return &d.After.Typical.Spec, d.Gain.Mid
	}
	const minGain = 1.1 // docs/glossary.md: limiter
	for i := range d.Remedies {
		r := &d.Remedies[i]
		if r.Gain.Low > 1 && r.Gain.Mid >= minGain && r.Gain.Mid > gain && r.Spec.Streams <= 1 {
			spec = &r.Spec
			gain = r.Gain.Mid
		}
	}
	return spec, gain
}

// merge adds the settings of another direction.
func merge(into *transfer.Socket, s transfer.Socket) {
	into.SendBuffer = max(into.SendBuffer, s.SendBuffer)
	into.ReceiveBuffer = max(into.ReceiveBuffer, s.ReceiveBuffer)
	into.Clamp = max(into.Clamp, s.Clamp)
	into.PacingBps = max(into.PacingBps, s.PacingBps)
	if s.MSS > 0 && (into.MSS == 0 || s.MSS < into.MSS) {
		into.MSS = s.MSS
	}
	if s.Congestion != "" {
		into.Congestion = s.Congestion
	}
}

func socketText(s transfer.Socket) string {
	var parts []string
	add := func(name string, bytes int) {
		if bytes > 0 {
			parts = append(parts, name+" "+units.Size(bytes).String())
		}
	}
	add("send buffer", s.SendBuffer)
	add("receive buffer", s.ReceiveBuffer)
	add("window", s.Clamp)
	add("MSS", s.MSS)
	if s.Congestion != "" {
		parts = append(parts, s.Congestion)
	}
	if s.PacingBps > 0 {
		parts = append(parts, "pacing at "+units.Rate(s.PacingBps).String())
	}
	if len(parts) == 0 {
		return "automatic buffers"
	}
	return strings.Join(parts, ", ")
}
