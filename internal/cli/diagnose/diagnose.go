// Package diagnose judges the connections of captures.
package diagnose

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/atomicfile"
	"github.com/fullpipe-net/fullpipe/internal/capture"
	"github.com/fullpipe-net/fullpipe/internal/cli/cmdflag"
	"github.com/fullpipe-net/fullpipe/internal/cli/console"
	"github.com/fullpipe-net/fullpipe/internal/cli/exit"
	"github.com/fullpipe-net/fullpipe/internal/cli/farend"
	"github.com/fullpipe-net/fullpipe/internal/cli/input"
	"github.com/fullpipe-net/fullpipe/internal/cli/present"
	"github.com/fullpipe-net/fullpipe/internal/cli/progress"
	"github.com/fullpipe-net/fullpipe/internal/diagnose"
	"github.com/fullpipe-net/fullpipe/internal/flow"
	"github.com/fullpipe-net/fullpipe/internal/history"
	"github.com/fullpipe-net/fullpipe/internal/plan"
	"github.com/fullpipe-net/fullpipe/internal/render/html"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
	"github.com/fullpipe-net/fullpipe/internal/report"
	"github.com/fullpipe-net/fullpipe/internal/turns"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

type flags struct {
	host         string
	port         uint16
	least        units.Size
	top          int
	details, csv bool
	html         string
	near, far    string
	target       string
	iface        string
	time         time.Duration
	failOn       []string
}

// New returns the command diagnose.
func New() *cobra.Command {
	f := flags{least: 100_000}
	cmd := &cobra.Command{
		Use:   "diagnose FILE...",
		Short: "name the limiter of each connection in a capture, and its remedy",
		Long: `diagnose reads captures (pcap or pcapng, also compressed with gzip or zstd; -
is standard input). For each TCP connection and direction it names the limiter, the
confidence, the change that helps and the expected gain. Several files are parts of one
capture, or two captures of the same connections, which are compared as with --near and
--far.`,
		Example: `  tcpdump -i eth0 -s 128 -w slow.pcap tcp port 443
  fullpipe diagnose slow.pcap
  fullpipe diagnose slow.pcap --host 192.0.2.7 --details
  fullpipe diagnose slow.pcap --html slow.html`,
		RunE: func(cmd *cobra.Command, args []string) error { return diagnoseCaptures(cmd, args, &f) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.host, "host", "", "only connections with this address at either end")
	flags.Uint16Var(&f.port, "port", 0, "only connections with this `port` at either end")
	flags.Var(&f.least, "bytes", "only directions that carried at least this much; all, if "+
		"none did")
	flags.IntVar(&f.top, "top", 20, "number of connections to list; the one that lost the most "+
		"time comes first")
	flags.BoolVar(&f.details, "details", false, "print everything known about each listed "+
		"connection")
	flags.StringVar(&f.iface, "interface", "", "Linux: capture packet headers on this "+
		"interface (any: all) until Ctrl-C; needs CAP_NET_RAW")
	flags.VarP((*cmdflag.Period)(&f.time), "time", "t", "how long to capture live")
	flags.StringVar(&f.near, "near", "", "with --far: the `file` to diagnose, one of two "+
		"captures of the same connections")
	flags.StringVar(&f.far, "far", "", "with --near: the `file` captured at the other "+
		"end; adds where data was lost, in which direction it was delayed and which TCP options "+
		"were changed between the two; the clocks may differ")
	flags.StringVar(&f.target, "target", "", "print settings of this `system` for the end that limits: "+
		strings.Join(plan.Targets(), ", ")+", or with a version as linux-6.1 (default: by its handshake)")
	flags.StringVar(&f.html, "html", "", "also write a page with graphs of the listed connections to this `file`; - is "+
		"standard output")
	flags.StringSliceVar(&f.failOn, "fail-on", nil, "exit 3 if requests take longer (`p99>50ms`; also p50, "+
		"p90, max) or stall: "+strings.Join(turns.StallNames(), ", "))
	flags.BoolVar(&f.csv, "csv", false, "print one line of comma-separated values for each direction")
	history.AddFlags(cmd, false, new(farend.PeerFlags).Series("diagnose"))
	return cmd
}

// spareHeap is what a diagnosis may allocate before the collector first looks: most need no
// more, and with many connections it took a twentieth of the time.
const spareHeap = 64 << 20

// sparingGC is the collector's percentage (GOGC) once more connections were seen than can be followed.
const sparingGC = 40

func diagnoseCaptures(cmd *cobra.Command, names []string, f *flags) (err error) {
	defer runtime.KeepAlive(make([]byte, spareHeap)) // never touched: it counts, but takes no memory
	names, err = f.files(names)
	if err != nil {
		return err
	}
	wanted, err := f.wanted()
	if err != nil {
		return err
	}
	limits, err := cmdflag.ParseRequestLimits(f.failOn, turns.StallNames())
	if err != nil {
		return err
	}
	if f.target != "" {
		if _, err := plan.ParseTarget(f.target); err != nil {
			return exit.Usage("--target", fmt.Sprintf("%q is not a system that is known", f.target),
				strings.Join(plan.Targets(), ", "))
		}
	}
	page, err := present.CreateFile(cmd, "--html", f.html)
	if err != nil {
		return err
	}
	defer page.Discard()
	cfg := capture.Config{Flow: flow.Config{Wanted: wanted}}
	if f.far != "" {
		cfg.Flow.Passes = diagnose.Passes
	}
	if f.html != "" && f.once(names) {
		cfg.Flow.Points = pointsAtOnce
	}
	a, err := f.analyze(cmd, names, cfg)
	interrupted := cmd.Context().Err() != nil
	if a == nil || err != nil && !interrupted {
		return err
	}
	p := places{names: names, near: a}
	if !interrupted {
		p, err = f.separate(cmd, p, cfg)
		if err != nil {
			return err
		}
		a = p.near
	}
	if a.Dropped > 0 { // judging and encoding stay below what reading took
		debug.FreeOSMemory()
		defer debug.SetGCPercent(debug.SetGCPercent(sparingGC))
	}
	diagnosis := diagnose.New(a, int64(f.least))
	diagnosis.Record.Warnings = append(diagnosis.Record.Warnings, p.notes...)
	if f.target != "" {
		diagnosis.SetTarget(f.target)
	}
	if p.far != nil {
		diagnosis.Compare(p.far)
	}
	doc := report.Diagnose(present.Header(cmd), diagnosis)
	doc.Interrupted = interrupted
	doc.Criteria = limits.Judge(doc.AllRequests())
	if f.html != "" {
		if err := f.writePage(cmd, p.names, diagnosis, page); err != nil {
			return err
		}
	}
	if doc.Seen > 0 {
		debug.FreeOSMemory() // the timelines, before the document is encoded
	}
	history.Seal(cmd, doc)
	defer func() { err = history.First(cmd, err, history.Keep(cmd, doc)) }()
	switch out := cmd.OutOrStdout(); {
	case console.TakesOutput(cmd):
	case console.WantsJSON(cmd):
		err = present.JSON(out, doc)
	case f.csv:
		err = text.CSV(out, doc)
	default:
		err = text.Connections(out, doc, max(f.top, 1), f.details)
	}
	switch {
	case err == nil && interrupted:
		return exit.Status(exit.Interrupted)
	case err == nil && cmdflag.RequestsFailed(doc.Criteria):
		return exit.Status(exit.No)
	}
	return err
}

// files are the captures to diagnose.
func (f *flags) files(names []string) ([]string, error) {
	switch {
	case (f.near == "") != (f.far == ""):
		return nil, exit.Usage("--near", "two captures of the same connections are compared: both are needed",
			"--near A.pcap --far B.pcap")
	case f.near != "" && len(names) > 0:
		return nil, exit.Usage(names[0], "--near and --far name the captures already", "leave it out")
	case f.near != "":
		return []string{f.near}, nil
	case f.iface != "" && len(names) > 0:
		return nil, exit.Usage(names[0], "--interface captures live and reads no file", "leave one of them out")
	case f.iface != "":
		return nil, nil
	case f.time != 0:
		return nil, exit.Usage("--time", "a capture file has its own length", "--interface NAME --time 30s")
	case len(names) == 0:
		return nil, exit.Usage("FILE", "no capture was named", "fullpipe diagnose FILE, or - for standard input")
	}
	return names, nil
}

func (f *flags) wanted() (func(a, b flow.Endpoint) bool, error) {
	if f.host == "" && f.port == 0 {
		return nil, nil
	}
	var host netip.Addr
	if f.host != "" {
		var err error
		if host, err = netip.ParseAddr(f.host); err != nil {
			return nil, exit.Usage("--host", fmt.Sprintf("%q is not an address", f.host), "--host 192.0.2.7")
		}
	}
	is := func(e flow.Endpoint) bool {
		ap := e.AddrPort()
		return (f.host == "" || ap.Addr() == host.Unmap()) && (f.port == 0 || ap.Port() == f.port)
	}
	return func(a, b flow.Endpoint) bool { return is(a) || is(b) }, nil
}

// pointsAtOnce is how many points a line keeps where the capture cannot be read again for
// the connections that turn out to matter.
const pointsAtOnce = 2000

// once reports whether the capture can be read only once.
func (f *flags) once(names []string) bool {
	return f.iface != "" || slices.Contains(names, "-")
}

// writePage writes the page with the graphs of the connections that are listed, for which
// it reads the captures again if it can.
func (f *flags) writePage(cmd *cobra.Command, names []string, d *diagnose.Diagnosis, page *atomicfile.File) error {
	if !f.once(names) {
		a, err := analyzeFiles(cmd, names, capture.Config{Flow: d.Graphs(max(f.top, 1))})
		if err != nil {
			return err
		}
		d.Draw(a)
	}
	if err := present.WriteFile("--html", page, func(w io.Writer) error { return html.Write(w, d.Record) }); err != nil {
		return err
	}
	if f.html != "-" {
		console.Note(cmd, "graphs written to %s", f.html)
	}
	return nil
}

// analyze follows what is in the files or passes the interface.
func (f *flags) analyze(cmd *cobra.Command, names []string, cfg capture.Config) (*capture.Analysis, error) {
	if f.iface == "" {
		return analyzeFiles(cmd, names, cfg)
	}
	ctx := cmd.Context()
	until := ctx
	if f.time > 0 {
		var cancel context.CancelFunc
		until, cancel = context.WithTimeout(ctx, f.time)
		defer cancel()
	}
	live, err := capture.Listen(until, f.iface)
	if err != nil {
		return nil, err
	}
	defer live.Close()
	if out := console.Progress(cmd); console.IsTerminal(out) {
		console.Note(cmd, "capturing on %s; Ctrl-C ends it and diagnoses what came", f.iface)
		view := &progress.Capture{Out: out}
		defer view.Clear()
		cfg.Live = view.Show
	}
	return capture.Analyze(context.WithoutCancel(ctx), cfg, live)
}

// analyzeFiles opens the files and follows what is in them.
func analyzeFiles(cmd *cobra.Command, names []string, cfg capture.Config) (*capture.Analysis, error) {
	var files []*capture.File
	defer func() {
		for _, f := range files {
			f.Close()
		}
	}()
	for _, name := range names {
		in, err := input.Open(cmd, name)
		if err == nil {
			defer in.Close()
		}
		var f *capture.File
		if err == nil {
			f, err = capture.NewFile(captureName(name), in)
		}
		if err != nil {
			var missing *input.MissingError
			if errors.As(err, &missing) {
				missing.Other = "tcpdump -i any -s 128 -w FILE.pcap tcp"
				return nil, exit.Usage(name, "there is no such file", missing.Try())
			}
			return nil, err
		}
		files = append(files, f)
	}
	return capture.Analyze(cmd.Context(), cfg, files...)
}

// captureName is what messages call a capture.
func captureName(name string) string {
	if name == "-" {
		return "standard input"
	}
	return name
}
