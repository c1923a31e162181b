package plan

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/cli/cmdflag"
	"github.com/fullpipe-net/fullpipe/internal/cli/exit"
	"github.com/fullpipe-net/fullpipe/internal/cli/input"
	"github.com/fullpipe-net/fullpipe/internal/link"
	"github.com/fullpipe-net/fullpipe/internal/model"
	"github.com/fullpipe-net/fullpipe/internal/plan"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/report"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// allPaths are the paths that one plan has to serve: --rate and --rtt, then each --path,
// then each --also.
func (f *flags) allPaths(cmd *cobra.Command) ([]plan.Path, error) {
	var paths []plan.Path
	if err := f.takePasted(cmd); err != nil {
		return nil, err
	}
	stated, err := f.stated()
	if err != nil {
		return nil, err
	}
	if stated != nil {
		paths = append(paths, *stated)
	}
	for _, name := range f.tunes {
		some, err := pathsOf(cmd, name)
		if err != nil {
			var usage *exit.UsageError
			if errors.As(err, &usage) {
				usage.Argument = "--tune"
				return nil, usage
			}
			return nil, exit.Usage("--tune", exit.Plain(err), "a file that tune --json wrote")
		}
		paths = append(paths, some...)
	}
	for _, text := range f.paths {
		some, err := pathsOf(cmd, text)
		if err != nil {
			return nil, err
		}
		paths = append(paths, some...)
	}
	for _, text := range f.also {
		other, err := ratePath("--also", text)
		if err != nil {
			return nil, err
		}
		paths = append(paths, other)
	}
	for i := range paths {
		paths[i].MSS = f.mss
		paths[i].Connections = f.connections
		paths[i].MemoryBytes = int64(f.memory)
		paths[i].Overhead += f.around
		if bound := float64(f.flowCap); bound > 0 && (paths[i].FlowCapBps == 0 || bound < paths[i].FlowCapBps) {
			paths[i].FlowCapBps = bound
		}
	}
	return paths, nil
}

// stated is the path of --rate, or of --rate-up and --rate-down; nil where only others are.
func (f *flags) stated() (*plan.Path, error) {
	p := &plan.Path{RateBps: float64(f.rate), RTT: time.Duration(f.rtt), Jitter: time.Duration(f.jitter)}
	switch {
	case f.up <= 0 && f.down <= 0:
		if f.rate <= 0 && f.rtt <= 0 && len(f.paths)+len(f.tunes) > 0 {
			return nil, nil
		}
	case f.rate > 0:
		return nil, exit.Usage("--rate", "it is for both directions, and --rate-up or --rate-down is given",
			"--rate-up 4mbit --rate-down 20mbit")
	case f.up <= 0 && f.direction != "down", f.down <= 0 && f.direction != "up":
		return nil, exit.Usage("--rate-up, --rate-down", "one of both is not there",
			"--rate-up 4mbit --rate-down 20mbit, or --direction up")
	default:
		p.RateBps = float64(f.up)
		p.BackBps = float64(f.down)
		if f.up <= 0 {
			p.RateBps = p.BackBps
		}
	}
	return p, nil
}

// ends turns the paths round for the far host, and narrows the role to the direction that
// is used.
func (f *flags) ends(role plan.Role, paths []plan.Path) (plan.Role, error) {
	far := f.end == "far"
	if f.end != "near" && !far {
		return role, exit.Usage("--end", fmt.Sprintf("%q is no end", f.end), "near or far")
	}
	used := plan.Both
	switch f.direction {
	case "both":
	case "up", "down":
		used = plan.Sender
		if (f.direction == "down") != far {
			used = plan.Receiver
		}
	default:
		return role, exit.Usage("--direction", fmt.Sprintf("%q is no direction", f.direction), "up, down or both")
	}
	for i := range paths {
		if p := &paths[i]; far && p.BackBps > 0 {
			p.RateBps, p.BackBps = p.BackBps, p.RateBps
		}
	}
	switch {
	case used == plan.Both || used == role:
		return role, nil
	case role == plan.Both:
		return used, nil
	}
	return role, exit.Usage("--role", fmt.Sprintf("the %s host is no %s with --direction %s", f.end, role, f.direction),
		"--role "+string(used))
}

// tunnel is what --vpn leaves of the path: it becomes the segments' size.
func (f *flags) tunnel(cmd *cobra.Command) (*record.PlanTunnel, error) {
	if f.vpn == "" {
		return nil, nil
	}
	layers, err := model.ParseTunnel(f.vpn)
	if err != nil {
		return nil, exit.Usage("--vpn", exit.Plain(err), strings.Join(model.TunnelNames(), ", ")+", the outermost first")
	}
	inner := layers.MTU(f.mtu)
	if inner < 576 || f.mtu > 65535 {
		return nil, exit.Usage("--mtu", fmt.Sprintf("%d leaves %d bytes in %s", f.mtu, inner, layers), "--mtu 1500")
	}
	if cmd.Flags().Changed("mss") && f.mss > inner-model.IPHeaders {
		return nil, exit.Usage("--mss", fmt.Sprintf("%s carries segments of %d bytes at most", layers,
			inner-model.IPHeaders), "leave it out")
	} else if !cmd.Flags().Changed("mss") {
		f.mss = inner - model.IPHeaders
	}
	if inner < model.LeastIPv6MTU {
		f.pasted = append(f.pasted, fmt.Sprintf("%s leaves %d bytes inside: IPv6 needs %d (RFC 8200), so it does not pass "+
			"unless the tunnel itself fragments", layers, inner, model.LeastIPv6MTU))
	}
	full := f.mss + model.IPHeaders
	f.around = layers.Carry(full, f.mtu) - full
	return report.PlanTunnel(layers, f.mtu, f.mss), nil
}

// pathsOf reads what --path names: a file of results, a path in the lab's words, or
// RATE,RTT[,JITTER].
func pathsOf(cmd *cobra.Command, text string) ([]plan.Path, error) {
	if _, err := os.Stat(text); err == nil {
		result, err := input.Read(cmd, text, maxResult)
		if err != nil {
			return nil, err
		}
		paths, err := measuredPaths(result)
		if err != nil {
			return nil, exit.Usage("--path", fmt.Sprintf("%s: %s", text, exit.Plain(err)), "a file that tune --json wrote")
		}
		return paths, nil
	}
	if first, _, _ := strings.Cut(text, ","); !strings.Contains(first, "=") {
		if _, err := units.ParseRate(first); err == nil {
			p, err := ratePath("--path", text)
			return []plan.Path{p}, err
		}
	}
	path, err := link.Parse(strings.TrimPrefix(text, "lab:"))
	if err != nil {
		return nil, exit.Usage("--path", exit.Plain(err),
			"10mbit,85ms or wan-40ms or rate=100mbit,rtt=40ms or a file of tune "+
				"--json")
	}
	return []plan.Path{ofLab(path)}, nil
}

// ofLab returns a lab's path as a path to plan for. Its jitter is the spread of the round trip and the time for which
// packets wait to be forwarded together.
func ofLab(path link.Path) plan.Path {
	p := plan.Path{RateBps: float64(path.Up.Rate), RTT: path.RTT, Overhead: path.Up.Overhead, HalfDuplex: path.HalfDuplex,
		Jitter: (path.Up.Jitter+path.Down.Jitter)/2 + path.Up.Aggregate + path.Down.Aggregate}
	if path.Down.Rate != path.Up.Rate {
		p.BackBps = float64(path.Down.Rate)
	}
	p.FlowCapBps = float64(max(path.Up.FlowRate, path.Down.FlowRate))
	return p
}

// maxResult is the largest file of results in bytes.
const maxResult = 64 << 20

// measuredPaths are the directions of a tune's result whose rate is known.
func measuredPaths(text []byte) ([]plan.Path, error) {
	var result struct {
		Schema     string
		Directions []struct {
			Path struct {
				Bottleneck float64 `json:"bottleneck_bps"`
				RTT        float64 `json:"rtt_min_s"`
				Jitter     float64 `json:"jitter_s"`
			}
		}
	}
	if err := json.Unmarshal(text, &result); err != nil {
		return nil, fmt.Errorf("no result: %w", err)
	}
	if !strings.HasPrefix(result.Schema, "fullpipe/tune/") {
		return nil, fmt.Errorf("%q has no rate and round trip of a path", result.Schema)
	}
	var paths []plan.Path
	for _, d := range result.Directions {
		if d.Path.Bottleneck > 0 && d.Path.RTT > 0 && d.Path.RTT <= cmdflag.MaxRTT && d.Path.Jitter >= 0 &&
			d.Path.Jitter <= cmdflag.MaxRTT {
			paths = append(paths, plan.Path{RateBps: d.Path.Bottleneck, RTT: units.Seconds(d.Path.RTT),
				Jitter: units.Seconds(d.Path.Jitter)})
		}
	}
	if len(paths) == 0 {
		return nil, errors.New("neither direction's rate was found")
	}
	return paths, nil
}

// ratePath reads RATE,RTT[,JITTER].
func ratePath(flag, text string) (p plan.Path, err error) {
	wrong := func(err error) error {
		return exit.Usage(flag, fmt.Sprintf("%q: %v", text, err), flag+" 64kbit,100ms or "+flag+" 10mbit,85ms,20ms")
	}
	fields := strings.Split(text, ",")
	if len(fields) < 2 || len(fields) > 3 {
		return p, wrong(errors.New("a path is RATE,RTT or RATE,RTT,JITTER"))
	}
	rate, err := units.ParseRate(fields[0])
	if err != nil {
		return p, wrong(err)
	}
	p.RateBps = float64(rate)
	if p.RTT, err = units.ParseTime(fields[1]); err != nil {
		return p, wrong(err)
	}
	if len(fields) == 3 {
		if p.Jitter, err = units.ParseTime(fields[2]); err != nil {
			return p, wrong(err)
		}
	}
	return p, nil
}

// maxPaste is the largest output of another program in bytes.
const maxPaste = 8 << 20

// takePasted fills in the values of --from and --ping that no flag states.
func (f *flags) takePasted(cmd *cobra.Command) error {
	if f.from == "-" && f.ping == "-" {
		return exit.Usage("--ping", "standard input is --from's already", "a file for one of both")
	}
	for _, source := range []struct {
		flag, name string
		parse      func(string) (*plan.Pasted, error)
		right      string
	}{{"--ping", f.ping, plan.ParsePing, "every line of ping's output"},
		{"--from", f.from, plan.ParseResult, "the output of iperf, iperf3, speedtest or mtr --report"}} {
		if source.name == "" {
			continue
		}
		text, err := input.Read(cmd, source.name, maxPaste)
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

// take fills in flags that were not given from pasted output.
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
	if p.Lost > 0 {
		f.pasted = append(f.pasted, fmt.Sprintf("%s lost %.3g %% of its probes: no window cures loss", p.Program, 100*p.Lost))
	}
	line := func(payload float64) units.Rate { return units.Rate(plan.LineBps(payload, plan.DefaultMSS)) }
	switch {
	case f.rate > 0 || f.up > 0 || f.down > 0:
	case p.UpBps > 0 && p.DownBps > 0:
		f.up = line(p.UpBps)
		f.down = line(p.DownBps)
	case p.UpBps > 0 || p.DownBps > 0:
		f.rate = line(max(p.UpBps, p.DownBps))
	}
	if p.UpBps > 0 || p.DownBps > 0 {
		f.pasted = append(f.pasted, fmt.Sprintf("rate from %s: the throughput of one transfer; if the line did not "+
			"limit it, the path carries more: see fullpipe measure", p.Program))
	}
}
