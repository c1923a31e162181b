// Package plan computes windows and settings for a stated path.
package plan

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/catalog"
	"github.com/fullpipe-net/fullpipe/internal/cli/cmdflag"
	"github.com/fullpipe-net/fullpipe/internal/cli/console"
	"github.com/fullpipe-net/fullpipe/internal/cli/exit"
	"github.com/fullpipe-net/fullpipe/internal/cli/present"
	"github.com/fullpipe-net/fullpipe/internal/host"
	"github.com/fullpipe-net/fullpipe/internal/model"
	"github.com/fullpipe-net/fullpipe/internal/plan"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/report"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

type flags struct {
	rate        units.Rate
	up, down    units.Rate
	flowCap     units.Rate
	direction   string
	end         string
	rtt, jitter cmdflag.Duration
	maxDelay    cmdflag.Duration
	mss         int
	connections int
	memory      units.Size
	window      units.Size
	role        string
	target      string
	format      string
	undo        bool
	timestamps  bool
	route       plan.Route
	vpn, app    string
	ping, from  string
	tunes       []string
	pasted      []string // notes on the values that were taken from files
	mtu         int
	around      int // bytes that the tunnel puts around a full segment's packet
	also, paths []string
}

// New returns the command plan.
func New() *cobra.Command {
	f := &flags{}
	cmd := &cobra.Command{
		Use:   "plan --rate RATE --rtt TIME | --path PATH...",
		Short: "compute windows and settings for a stated path; measures nothing",
		Long: `plan computes the window that keeps a path full: rate x (RTT + jitter),
rounded up to an even number of segments. It prints the settings that a system needs for it.
It measures and changes nothing. For several paths it finds the smallest window with which
each path keeps at least 95 % of its rate, and shows the queueing delay that this window
adds on each path; --max-delay limits that delay. With --window it also prints the effect of
a given window.`,
		Example: `  fullpipe plan --rate 100mbit --rtt 40ms
  fullpipe plan --rate 100mbit --rtt 40ms --target windows-2000 --format reg > window.reg
  fullpipe plan --rate 10gbit --rtt 70ms --connections 20 --memory 64GiB --target linux-6.1
  fullpipe plan --rate-up 4mbit --rate-down 20mbit --rtt 600ms --target windows-2000 --end far
  ping -c 20 host | fullpipe plan --rate 100mbit --ping -
  fullpipe plan --from iperf3.json --ping ping.txt --target server-2022
  fullpipe plan --rate 30mbit --rtt 12ms --vpn pppoe,ipsec:aes256-cbc-sha1,natt
  fullpipe plan --path 10mbit,85ms --path wan-40ms --path office.json --target windows-2000
  fullpipe plan --rate 1gbit --rtt 30ms --target linux-6.1 --app quic-go --format kubernetes
  fullpipe plan --window 64KiB --rtt 40ms
  fullpipe plan --window 64KiB --rate 100mbit`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runPlan(cmd, f) },
	}
	flags := cmd.Flags()
	flags.Var(&f.rate, "rate", "rate of the path at the IP layer, for example 100mbit")
	flags.Var(&f.up, "rate-up", "the rate at which this host sends, if it is not --rate-down")
	flags.Var(&f.down, "rate-down", "the rate at which this host receives")
	flags.Var(&f.flowCap, "flow-cap", "rate limit of one connection, as cloud providers set "+
		"it, for example 5gbit")
	flags.StringVarP(&f.direction, "direction", "d", "both", "direction of the data: up (this host sends), down or both")
	flags.StringVar(&f.end, "end", "near", "the host to set: near (this host) or far (the other end)")
	flags.Var(&f.rtt, "rtt", "minimum RTT of the path, for example 40ms")
	flags.Var(&f.jitter, "jitter", "jitter of the RTT: its 95th percentile minus its minimum")
	flags.IntVar(&f.mss, "mss", plan.DefaultMSS, "payload bytes of a full segment; 1448 with timestamps on Ethernet")
	flags.StringVar(&f.ping, "ping", "", "take the RTT and its jitter from the output of ping "+
		"on any system: a file, "+
		"or - for standard input")
	flags.StringVar(&f.from, "from", "", "take rate and RTT from the output of iperf, iperf3, "+
		"a speed test or mtr: a file, or -")
	flags.StringArrayVar(&f.tunes, "tune", nil, "take the path from a `file` that tune --json wrote (may be repeated)")
	flags.StringVar(&f.app, "app", "", "also print the limit of this program's own window or "+
		"block, and the setting that raises it: "+
		strings.Join(catalog.ProgramNames(), ", "))
	flags.StringVar(&f.vpn, "vpn", "", "tunnels that the packets go through, the outermost first: "+
		strings.Join(model.TunnelNames(), ", ")+
		"; write natt, ipv6, tcp or key after the tunnel that has it")
	flags.IntVar(&f.mtu, "mtu", 1500, "with --vpn: MTU of the path outside the tunnel")
	flags.IntVar(&f.connections, "connections", 1, "bulk connections at one time")
	flags.Var(&f.memory, "memory", "RAM of the host; limits the buffers of all connections")
	flags.Var(&f.window, "window", "print up to which RTT this window fills --rate, or which "+
		"rate it gives at --rtt")
	flags.Var(&f.maxDelay, "max-delay", "maximum queueing delay that the window may add to the "+
		"RTT of a path, for example 200ms")
	flags.StringArrayVar(&f.also, "also", nil, "another `path` that the same settings have to serve: RATE,RTT[,JITTER] "+
		"(may be repeated)")
	flags.StringArrayVar(&f.paths, "path", nil, "a `path` to serve: RATE,RTT[,JITTER], a lab "+
		"profile (wan-40ms or rate=100mbit,rtt=40ms), or a file written by tune --json (may be "+
		"repeated)")
	flags.StringVar(&f.role, "role", "both", "sender, receiver or both")
	flags.StringVar(&f.target, "target", "", "system to set: "+strings.Join(plan.Targets(), ", ")+
		", or with a version as linux-6.1 (default: this one)")
	flags.StringVar(&f.format, "format", "text", "text, json, "+strings.Join(append(plan.Formats(), plan.Languages()...),
		", "))
	flags.BoolVar(&f.undo, "undo", false, "with --format: print the commands that undo the change")
	flags.BoolVar(&f.timestamps, "timestamps", false, "also turn on TCP timestamps, on systems "+
		"where that is a setting (Tcp1323Opts 3)")
	flags.StringVar(&f.route.Prefix, "route", "", "set it only for one destination: a prefix "+
		"such as 10.2.0.0/16, or default")
	flags.StringVar(&f.route.Via, "via", "", "current next hop of the route")
	flags.StringVar(&f.route.Dev, "dev", "", "current interface of the route")
	flags.IntVar(&f.route.InitCwnd, "initcwnd", 0, "with --route: initial congestion window in segments")
	flags.IntVar(&f.route.InitRwnd, "initrwnd", 0, "with --route: initial receive window in segments")
	flags.StringVar(&f.route.Congestion, "congestion", "", "with --route: congestion control "+
		"for that destination")
	flags.BoolVar(&f.route.Clamp, "clamp", false, "with --route: limit the window to the "+
		"planned one")
	return cmd
}

func runPlan(cmd *cobra.Command, f *flags) error {
	if f.format == "json" {
		if err := cmd.Flags().Set("json", "true"); err != nil {
			return err
		}
	}
	doc := &record.Plan{Header: present.Header(cmd), Settings: []plan.Setting{}, Warnings: []string{}}
	tunnel, err := f.tunnel(cmd)
	if err != nil {
		return err
	}
	program, err := cmdflag.FindProgram(f.app)
	if err != nil {
		return err
	}
	var text []byte
	asksWindow := f.window > 0
	if !asksWindow || f.rate > 0 && f.rtt > 0 || len(f.paths) > 0 {
		made, err := makePlan(cmd, f)
		if err != nil {
			return asUsage(err)
		}
		doc = report.Plan(present.Header(cmd), made)
		if f.end == "far" {
			report.OfFarEnd(doc)
		}
		doc.Tunnel = tunnel
		if program.Name != "" {
			doc.App = report.PlanApp(program, made)
		}
		doc.Notes = append(f.pasted, doc.Notes...)
		if f.format != "text" && f.format != "json" {
			if text, err = made.Text(f.format, f.undo, doc.Warnings); err != nil {
				return asUsage(err)
			}
		} else if f.undo {
			return exit.Usage("--undo", "undoes the text of a --format", "--format with it: "+strings.Join(plan.Formats(),
				", "))
		}
	}
	if asksWindow {
		if err := f.answerWindow(doc); err != nil {
			return err
		}
	}
	if text != nil && !console.WantsJSON(cmd) {
		_, err := console.Unescaped(cmd).Write(text) // CRLF and UTF-16, as its system reads it
		return err
	}
	return present.Document(cmd, doc)
}

// answerWindow computes the effect of the stated window on the stated path.
func (f *flags) answerWindow(doc *record.Plan) error {
	if f.window > model.MaxWindow {
		return exit.Usage("--window", fmt.Sprintf("%s is more than TCP can advertise", f.window),
			units.Size(model.MaxWindow).Exact()+" at most")
	}
	if f.rate <= 0 && f.rtt <= 0 {
		return exit.Usage("--window", "its effect depends on the path", "--rate or --rtt with it")
	}
	doc.RateBps = float64(f.rate)
	doc.RTTS = time.Duration(f.rtt).Seconds()
	doc.Window = &record.WindowAnswer{WindowBytes: int(f.window), WindowScale: model.Scale(int(f.window))}
	if f.rate > 0 {
		doc.Window.ToleratedRTTS = model.RTT(int(f.window), float64(f.rate)).Seconds()
	}
	if f.rtt > 0 {
		doc.Window.AllowedRateBps = model.Rate(int(f.window), time.Duration(f.rtt))
	}
	return nil
}

func makePlan(cmd *cobra.Command, f *flags) (*plan.Plan, error) {
	target, values, err := f.system()
	if err != nil {
		return nil, err
	}
	role := plan.Role(strings.ToLower(f.role))
	if role != plan.Sender && role != plan.Receiver && role != plan.Both {
		return nil, exit.Usage("--role", fmt.Sprintf("%q is not a role", f.role), "sender, receiver or both")
	}
	if f.mss == 0 || f.connections == 0 {
		return nil, exit.Usage("--mss, --connections", "0 is not a count", "leave them out for 1460 bytes and 1 connection")
	}
	paths, err := f.allPaths(cmd)
	if err != nil {
		return nil, err
	}
	if role, err = f.ends(role, paths); err != nil {
		return nil, err
	}
	program, err := cmdflag.FindProgram(f.app)
	if err != nil {
		return nil, err
	}
	options := plan.Options{Role: role, Timestamps: f.timestamps, Route: f.route, Values: values,
		MaxDelay: time.Duration(f.maxDelay), ReceiveDatagrams: program.ReceiveDatagrams, SendDatagrams: program.SendDatagrams}
	if len(paths) > 1 || f.maxDelay > 0 {
		return plan.NewForAll(paths, target, options)
	}
	return plan.New(paths[0], target, options)
}

// system is the target and, of this host, the values that it has.
func (f *flags) system() (plan.Target, map[string]string, error) {
	if f.target != "" {
		target, err := plan.ParseTarget(f.target)
		return target, nil, err
	}
	s, err := host.Snapshot()
	if err != nil { // arithmetic needs no host: the system's defaults are used
		return host.Target(""), nil, nil
	}
	return host.Target(s.Version), s.Values, nil
}

// asUsage makes a plan's refusal a usage error.
func asUsage(err error) error {
	if wrong, ok := err.(*plan.ArgumentError); ok {
		return exit.Usage(wrong.Argument, wrong.Message, wrong.Right)
	}
	return err
}
