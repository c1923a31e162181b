// Package rfc6349 carries out the test of RFC 6349.
package rfc6349

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/atomicfile"
	"github.com/fullpipe-net/fullpipe/internal/cli/cmdflag"
	"github.com/fullpipe-net/fullpipe/internal/cli/console"
	"github.com/fullpipe-net/fullpipe/internal/cli/exit"
	"github.com/fullpipe-net/fullpipe/internal/cli/farend"
	"github.com/fullpipe-net/fullpipe/internal/cli/present"
	"github.com/fullpipe-net/fullpipe/internal/cli/progress"
	"github.com/fullpipe-net/fullpipe/internal/history"
	"github.com/fullpipe-net/fullpipe/internal/lab"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render/html"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
	"github.com/fullpipe-net/fullpipe/internal/report"
	"github.com/fullpipe-net/fullpipe/internal/rfc6349"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// rfc6349Flags are the flags of rfc6349.
type rfc6349Flags struct {
	farend.PeerFlags
	cir, cirUp, cirDown units.Rate
	overhead            int
	tolerance           cmdflag.Share
	efficiency, delay   cmdflag.Share
	time, budget        cmdflag.Duration
	frames              []int
	frameTime           cmdflag.Duration
	frameLoss           cmdflag.Share
	html, reference     string
}

// New returns the command rfc6349.
func New() *cobra.Command {
	f := rfc6349Flags{tolerance: rfc6349.DefaultTolerance, frameLoss: 0.001}
	cmd := &cobra.Command{
		Use:   "rfc6349 PEER",
		Short: "test a line's TCP throughput as RFC 6349 says, and sign it off",
		Long: `rfc6349 runs the test of RFC 6349 in its order. It measures the path MTU, the
idle RTT, and the rate of the bottleneck in each direction (by UDP, or by several TCP
connections if the far end has no UDP). Then it runs one connection with windows around the
bandwidth-delay product, and one and several connections with a sufficient window, in each
direction alone and in both at once. It reports Transfer Time Ratio, TCP Efficiency and
Buffer Delay.

With a committed rate (--cir) it signs the line off: pass, fail or inconclusive. A limit of
the hosts never counts against the line. The exit status is 3 unless the line passes.
--frames also measures, with UDP, the highest rate for each Ethernet frame size, as RFC 2544
does.

The test fills the path for minutes. Do not run it on a line that others are using.`,
		Example: `  fullpipe rfc6349 server.example.net --cir 100mbit --key-file key
  fullpipe rfc6349 server.example.net --cir-up 10mbit --cir-down 100mbit --overhead 18 --html line.html
  fullpipe rfc6349 iperf3://server.example.net --direction up --budget 2m
  fullpipe rfc6349 lab:rate=20mbit,rtt=30ms --cir 20mbit --time 2s --frames`,
		Args: farend.OnePeer,
		RunE: func(cmd *cobra.Command, args []string) error {
			f.DownOnly(cmd, args[0])
			cfg, err := f.config(cmd)
			if err != nil {
				return err
			}
			if done, err := farend.InLab(cmd, args[0]); done {
				return err
			}
			return f.run(cmd, args[0], cfg)
		},
	}
	fl := cmd.Flags()
	f.PeerFlags.Add(fl)
	direction := fl.Lookup("direction")
	f.Direction = "both"
	direction.DefValue = "both"
	direction.Usage = "which end sends: up (this host), down (PEER), or both: one after the " +
		"other, then both at once"
	fl.Var(&f.cir, "cir", "the committed rate of each direction")
	fl.Var(&f.cirUp, "cir-up", "the committed rate in direction up (default: --cir)")
	fl.Var(&f.cirDown, "cir-down", "the committed rate in direction down (default: --cir)")
	fl.IntVar(&f.overhead, "overhead", 0, "bytes of framing per packet that the committed rate "+
		"includes: 0 (IP layer), 18 (Ethernet frames) or 38 (with preamble and gap)")
	fl.Var(&f.tolerance, "tolerance", "how far a rate may be below the required one")
	fl.Var(&f.efficiency, "least-efficiency", "also require this minimum TCP Efficiency, for "+
		"example 99.9%")
	fl.Var(&f.delay, "most-buffer-delay", "also require this maximum Buffer Delay, for example 50%")
	fl.VarP((*cmdflag.Period)(&f.time), "time", "t", "duration of each TCP run; the RFC "+
		"requires 30s (default 10s)")
	fl.Var((*cmdflag.Period)(&f.budget), "budget",
		"time for the whole test; a shorter one means shorter and fewer runs (default: about 5 "+
			"minutes for both directions)")
	fl.IntSliceVar(&f.frames, "frames", nil, "also find the highest rate for Ethernet frames "+
		"of these `sizes` (--frames alone: the sizes of RFC 2544)")
	fl.Lookup("frames").NoOptDefVal = sizes(rfc6349.FrameSizes())
	fl.Var((*cmdflag.Period)(&f.frameTime), "frame-time",
		"duration of each trial of --frames; RFC 2544 requires 60s (default 1s)")
	fl.Var(&f.frameLoss, "frame-loss", "with --frames: loss that still counts as passed; RFC "+
		"2544 allows none")
	fl.StringVar(&f.html, "html", "", "also write the report as a page to this `file`, for a browser or a printer; - "+
		"is standard output")
	fl.StringVar(&f.reference, "reference", "", "name of the line in the report, such as its circuit number")
	history.AddFlags(cmd, true, f.Series("rfc6349"))
	return cmd
}

// sizes are numbers as a flag takes them.
func sizes(all []int) (text string) {
	for i, n := range all {
		if i > 0 {
			text += ","
		}
		text += fmt.Sprint(n)
	}
	return text
}

func (f *rfc6349Flags) config(cmd *cobra.Command) (rfc6349.Config, error) {
	cfg := rfc6349.Config{Overhead: f.overhead, Tolerance: float64(f.tolerance), LeastEfficiency: float64(f.efficiency),
		MostBufferDelay: float64(f.delay), Time: time.Duration(f.time), Budget: time.Duration(f.budget),
		Frames:    rfc6349.Frames{Sizes: f.frames, Loss: float64(f.frameLoss), Time: time.Duration(f.frameTime)},
		Committed: map[transfer.Direction]float64{}}
	var err error
	cfg.Directions, err = f.Directions()
	if err != nil {
		return cfg, err
	}
	route, err := f.Route()
	if err != nil {
		return cfg, err
	}
	cfg.Echo = farend.Echo(route)
	for _, d := range cfg.Directions {
		flag := "cir-up"
		own := f.cirUp
		if d == transfer.Down {
			flag = "cir-down"
			own = f.cirDown
		}
		for name, value := range map[string]units.Rate{"cir": f.cir, flag: own} {
			if cmd.Flags().Changed(name) && value < 1000 {
				return cfg, exit.Usage("--"+name, fmt.Sprintf("%s is too little to test", value), "--"+name+" 100mbit")
			}
		}
		if own == 0 {
			own = f.cir
		}
		if own > 0 {
			cfg.Committed[d] = float64(own)
		}
	}
	for flag, d := range map[string]transfer.Direction{"cir-up": transfer.Up, "cir-down": transfer.Down} {
		if cmd.Flags().Changed(flag) && !slices.Contains(cfg.Directions, d) {
			return cfg, exit.Usage("--"+flag, "that direction is not tested", "--direction both")
		}
	}
	switch {
	case f.overhead < 0 || f.overhead > 200:
		return cfg, exit.Usage("--overhead", fmt.Sprintf("%d bytes are no framing", f.overhead), "0, 18 or 38")
	case cmd.Flags().Changed("time") && f.time < cmdflag.Duration(500*time.Millisecond):
		return cfg, exit.Usage("--time", fmt.Sprintf("%s is too short for a run", units.Time(time.Duration(f.time))),
			"10s, or 30s as the RFC asks")
	case cmd.Flags().Changed("budget") && f.budget < cmdflag.Duration(5*time.Second):
		return cfg, exit.Usage("--budget", fmt.Sprintf("%s is too short for the test", units.Time(time.Duration(f.budget))),
			"30s")
	case f.tolerance <= 0 || f.tolerance >= 1:
		return cfg, exit.Usage("--tolerance", "must lie between 0 and 100 %", "5%")
	case f.efficiency >= 1 || f.frameLoss >= 1:
		return cfg, exit.Usage("--least-efficiency", "shares must lie below 100 %", "99.9%")
	}
	for _, size := range f.frames {
		if size < 64 || size > 9234 {
			return cfg, exit.Usage("--frames", fmt.Sprintf("no Ethernet frame has %d bytes", size), "--frames="+
				sizes(rfc6349.FrameSizes()))
		}
	}
	return cfg, nil
}

func (f *rfc6349Flags) run(cmd *cobra.Command, peer string, cfg rfc6349.Config) error {
	ctx := cmd.Context()
	f.Notes = console.Progress(cmd)
	page, err := present.CreateFile(cmd, "--html", f.html)
	if err != nil {
		return err
	}
	defer page.Discard()
	far, err := f.Open(ctx, peer)
	if err != nil {
		return err
	}
	defer far.Close()
	cfg.Peer = far
	line := progress.NewLine(console.Progress(cmd))
	cfg.Progress = func(p rfc6349.Progress) {
		line.Draw(p.Done, string(p.Direction)+"  ", p.BestBps, text.RFC6349Sentence(&p.Doing))
	}
	result, err := rfc6349.Run(ctx, cfg)
	line.Clear()
	if result.Path.MSS == 0 { // nobody was met
		return err
	}
	doc := report.RFC6349(present.Header(cmd), lab.PeerName(peer), f.reference, cfg, result)
	status := exit.Done
	if result.Verdict == rfc6349.Fail || result.Verdict == rfc6349.Inconclusive {
		status = exit.No
	}
	if err != nil {
		var failure record.Failure
		failure, status = exit.Describe(ctx, err)
		doc.Error = &failure
	}
	if err := f.print(cmd, doc, page); err != nil {
		return err
	}
	if status != exit.Done {
		return exit.Status(status)
	}
	return nil
}

func (f *rfc6349Flags) print(cmd *cobra.Command, doc *record.RFC6349, page *atomicfile.File) error {
	present.NoteLate(cmd, doc)
	if err := present.WriteFile("--html", page, func(w io.Writer) error { return html.Write(w, doc) }); err != nil {
		return err
	}
	if err := present.Document(cmd, doc); err != nil || console.WantsJSON(cmd) {
		return err
	}
	if f.html != "" && f.html != "-" {
		console.Note(cmd, "report written to %s", f.html)
	}
	if doc.Error != nil {
		console.PrintFailure(cmd, *doc.Error)
	}
	return nil
}
