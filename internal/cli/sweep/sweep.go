// Package sweep measures a grid of buffers and settings.
package sweep

import (
	"fmt"
	"io"
	"strings"
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
	"github.com/fullpipe-net/fullpipe/internal/report"
	"github.com/fullpipe-net/fullpipe/internal/sweep"
)

type flags struct {
	farend.PeerFlags
	send, receive, write  string
	congestion, precision string
	repeats               int
	budget, time          cmdflag.Duration
	seed                  uint64
	html                  string
	csv                   bool
}

// New returns the command sweep.
func New() *cobra.Command {
	f := flags{time: cmdflag.Duration(2 * time.Second)}
	cmd := &cobra.Command{
		Use:   "sweep PEER",
		Short: "measure a grid of buffers, write sizes and congestion controls",
		Long: `sweep measures every combination of send buffers, receive buffers, write
sizes, directions and congestion controls, in random order. It repeats each cell until its
95 % confidence interval is within --precision, or until the time of --budget is used.
Goodput excludes slow start. Each cell has its limiter.

The value of --send-buffers, --receive-buffers and --write-sizes is a list of sizes, ranges
that step by a factor (8K-1M:x2) or a size (8K-64K:+8K), and the word automatic, which
leaves the size to the system. K is 1024, kB 1000.

An interrupted sweep shows the cells measured up to then.`,
		Example: `  fullpipe sweep server.example.net --key-file key --send-buffers 16K-1M:x2 --receive-buffers 16K-1M:x2
  fullpipe sweep lab:wan-12ms --budget 2m --html sweep.html
  fullpipe sweep lab:lan-100m,stack=windows-2000 --send-buffers 8K-64K:x2 --receive-buffers automatic --write-sizes 1K-16K:x2`,
		Args: farend.OnePeer,
		RunE: func(cmd *cobra.Command, args []string) error {
			f.DownOnly(cmd, args[0])
			cfg, err := f.config(args[0])
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
	const grid = "16K,64K,256K,1M,automatic"
	fl.StringVar(&f.send, "send-buffers", grid, "the sender's send buffers (SO_SNDBUF)")
	fl.StringVar(&f.receive, "receive-buffers", grid, "the receiver's receive buffers (SO_RCVBUF)")
	fl.StringVar(&f.write, "write-sizes", record.Automatic, "bytes of one write by the sender")
	fl.StringVarP(&f.congestion, "congestion", "C", "", "the sender's congestion controls, "+
		"separated by commas (default: the sender's own default)")
	fl.StringVar(&f.precision, "precision", "3%", "how exact each cell must be: half of its 95 "+
		"% confidence interval, relative to its goodput")
	fl.IntVar(&f.repeats, "repeats", 10, "maximum number of runs of one cell")
	fl.Var((*cmdflag.Period)(&f.budget), "budget",
		"maximum time of all runs together (default: unlimited)")
	fl.VarP((*cmdflag.Period)(&f.time), "time", "t", "duration of each run")
	fl.Uint64Var(&f.seed, "seed", 1, "`number` that selects the random order")
	fl.StringVar(&f.html, "html", "",
		"also write a page with the heat map and curves to this `file`; - is standard output")
	fl.BoolVar(&f.csv, "csv", false, "print one line of comma-separated values for each cell")
	history.AddFlags(cmd, true, f.path)
	return cmd
}

// path returns the series that the options belong to.
func (f *flags) path(hostID, far string) record.SeriesID {
	p := f.PeerFlags.Path("sweep", hostID, far)
	p.Congestion = f.congestion
	return p
}

// config returns the grid and the rules of the flags.
func (f *flags) config(text string) (cfg sweep.Config, err error) {
	cfg = sweep.Config{Name: lab.PeerName(text), Time: time.Duration(f.time)}
	for _, axis := range []struct {
		flag, text string
		to         *[]int
	}{{"--send-buffers", f.send, &cfg.Axes.Send}, {"--receive-buffers", f.receive, &cfg.Axes.Receive},
		{"--write-sizes", f.write, &cfg.Axes.Write}} {
		if *axis.to, err = sweep.ParseSizes(axis.text); err != nil {
			return cfg, exit.Usage(axis.flag, exit.Plain(err), "8K-1M:x2,automatic")
		}
	}
	cfg.Axes.Directions, err = f.Directions()
	if err != nil {
		return cfg, err
	}
	if _, err := f.Route(); err != nil {
		return cfg, err
	}
	for name := range strings.SplitSeq(f.congestion, ",") {
		cfg.Axes.Congestion = append(cfg.Axes.Congestion, strings.TrimSpace(name))
	}
	if err := cfg.Axes.Check(); err != nil {
		return cfg, exit.Usage("sweep", exit.Plain(err), "fewer values, each once")
	}
	if cfg.Time <= 0 {
		return cfg, exit.Usage("--time", "a run without length measures nothing", "--time 2s")
	}
	if f.repeats < 1 {
		return cfg, exit.Usage("--repeats", fmt.Sprintf("%d runs measure nothing", f.repeats), "1 or more")
	}
	var percent float64
	if number, ok := strings.CutSuffix(strings.TrimSpace(f.precision), "%"); !ok {
		return cfg, exit.Usage("--precision", fmt.Sprintf("%q is no share", f.precision), "--precision 3%")
	} else if _, err := fmt.Sscanf(number, "%g", &percent); err != nil || !(percent >= 0.1 && percent <= 50) {
		return cfg, exit.Usage("--precision", fmt.Sprintf("%q is not between 0.1%% and 50%%", f.precision),
			"--precision 3%")
	}
	cfg.Rules = sweep.Rules{Precision: percent / 100, MaxRuns: f.repeats, Budget: time.Duration(f.budget), Seed: f.seed}
	return cfg, nil
}

func (f *flags) run(cmd *cobra.Command, text string, cfg sweep.Config) error {
	ctx := cmd.Context()
	f.Notes = console.Progress(cmd)
	page, err := present.CreateFile(cmd, "--html", f.html)
	if err != nil {
		return err
	}
	defer page.Discard()
	far, err := f.Open(ctx, text)
	if err != nil {
		return err
	}
	defer far.Close()
	line := progress.NewLine(console.Progress(cmd))
	cfg.Peer = far
	cfg.Progress = func(p sweep.Progress) {
		line.Draw(p.Share, fmt.Sprintf("%d of %d cells  ", p.Done, p.Cells), p.BestBps, brief(p.Cell))
	}
	doc, failed := sweep.Run(ctx, cfg)
	line.Clear()
	if doc == nil {
		return failed
	}
	report.Sweep(present.Header(cmd), doc)
	present.NoteLate(cmd, doc)
	status := exit.Done
	if failed != nil {
		var failure record.Failure
		failure, status = exit.Describe(ctx, failed)
		doc.Error = &failure
		doc.Interrupted = true
	}
	if err := f.print(cmd, doc, page); err != nil {
		return err
	}
	if doc.Error != nil && !console.WantsJSON(cmd) {
		console.PrintFailure(cmd, *doc.Error)
	}
	if status != exit.Done {
		return exit.Status(status)
	}
	return nil
}

// brief returns a cell for the progress line, without automatic sizes.
func brief(c record.SweepSetup) string {
	parts := []string{string(c.Direction)}
	for _, part := range []struct {
		name string
		size int
	}{{"send", c.Send}, {"receive", c.Receive}, {"write", c.Write}} {
		if part.size > 0 {
			parts = append(parts, part.name+" "+record.SweepSize(part.size))
		}
	}
	if c.Congestion != "" {
		parts = append(parts, c.Congestion)
	}
	return strings.Join(parts, ", ")
}

// print writes the sweep in the requested forms.
func (f *flags) print(cmd *cobra.Command, doc *record.Sweep, page *atomicfile.File) error {
	if err := present.WriteFile("--html", page, func(w io.Writer) error { return html.Write(w, doc) }); err != nil {
		return err
	}
	if page != nil && f.html != "-" {
		f.Note("the page is in " + f.html)
	}
	return present.Document(cmd, doc)
}
