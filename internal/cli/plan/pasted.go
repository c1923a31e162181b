package plan

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/cli/cmdflag"
	"github.com/fullpipe-net/fullpipe/internal/cli/exit"
	"github.com/fullpipe-net/fullpipe/internal/cli/input"
	"github.com/fullpipe-net/fullpipe/internal/plan"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// longestPaste is the most that is read of another program's output.
const longestPaste = 8 << 20

// takePasted fills in what --from and --ping tell and no flag states.
func (f *flags) takePasted(cmd *cobra.Command) error {
	if f.from == "-" && f.ping == "-" {
		return exit.Usage("--ping", "standard input is --from's already", "a file for one of both")
	}
	for _, source := range []struct {
		flag, name string
		parse      func(string) (*plan.Pasted, error)
		right      string
	}{{"--ping", f.ping, plan.ParsePing, "what ping printed, every line of it"},
		{"--from", f.from, plan.ParseResult, "what iperf, iperf3, speedtest or mtr --report printed"}} {
		if source.name == "" {
			continue
		}
		text, err := input.Read(cmd, source.name, longestPaste)
		if err != nil {
			return exit.Usage(source.flag, exit.Plain(err), source.right)
		}
		p, err := source.parse(string(text))
		if err != nil {
			return exit.Usage(source.flag, fmt.Sprintf("%s: %v", source.name, err), source.right)
		}
		f.take(p)
	}
	return nil
}

// take has flags that were given win over what was pasted.
func (f *flags) take(p *plan.Pasted) {
	if f.rtt == 0 && p.RTT > 0 {
		f.rtt = cmdflag.Duration(p.RTT)
		if f.jitter == 0 {
			f.jitter = cmdflag.Duration(p.Jitter)
		}
		note := fmt.Sprintf("round trip from %s: least %s", p.Program, units.Time(p.RTT))
		if p.RTTAtMost {
			note = fmt.Sprintf("round trip from %s: below %s, its clock's step: the windows are for that, a shorter round trip "+
				"needs less", p.Program, units.Time(p.RTT))
		}
		if p.Jitter > 0 {
			note += ", varying by " + units.Time(p.Jitter)
		}
		f.pasted = append(f.pasted, note)
	}
	line := func(payload float64) units.Rate { return units.Rate(plan.LineBps(payload, plan.DefaultMSS)) }
	switch {
	case f.rate > 0 || f.up > 0 || f.down > 0:
	case p.UpBps > 0 && p.DownBps > 0:
		f.up = line(p.UpBps)
		f.down = line(p.DownBps)
	case p.UpBps > 0 || p.DownBps > 0:
		f.rate = line(max(p.UpBps, p.DownBps))
	default:
		if p.Lost > 0 {
			f.pasted = append(f.pasted, fmt.Sprintf("%s lost %.3g %% of its probes: no window cures loss", p.Program,
				100*p.Lost))
		}
		return
	}
	if p.UpBps > 0 || p.DownBps > 0 {
		f.pasted = append(f.pasted, fmt.Sprintf("rate from %s: what one transfer got, with its headers; if something else "+
			"than the line limited it, "+
			"the path carries more: fullpipe measure tells", p.Program))
	}
}
