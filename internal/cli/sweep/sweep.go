// Package sweep measures a grid of buffers and settings.
package sweep

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
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
	resume                string
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

Each run is written to a file at once; --resume FILE continues an interrupted sweep. Cells
that fullpipe can predict from others are measured last. If no time is left for a cell, its
value is predicted and marked as such.`,
		Example: `  fullpipe sweep server.example.net --key-file key --send-buffers 16K-1M:x2 --receive-buffers 16K-1M:x2
  fullpipe sweep lab:wan-12ms --budget 2m --html sweep.html
  fullpipe sweep lab:lan-100m,stack=windows-2000 --send-buffers 8K-64K:x2 --receive-buffers automatic --write-sizes 1K-16K:x2`,
		Args: farend.OnePeer,
		RunE: func(cmd *cobra.Command, args []string) error {
			f.DownOnly(cmd, args[0])
			id, rules, err := f.config(args[0])
			if err != nil {
				return err
			}
			if done, err := farend.InLab(cmd, args[0]); done {
				return err
			}
			return f.run(cmd, args[0], id, rules)
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
		"maximum time of all runs together, including those before --resume (default: unlimited)")
	fl.VarP((*cmdflag.Period)(&f.time), "time", "t", "duration of each run")
	fl.Uint64Var(&f.seed, "seed", 1, "`number` that selects the random order")
	fl.StringVar(&f.resume, "resume", "", "store the runs in this file, and continue the sweep in it")
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
func (f *flags) config(text string) (id sweep.Identity, rules sweep.Rules, err error) {
	id = sweep.Identity{Peer: lab.PeerName(text), Time: time.Duration(f.time), Seed: f.seed}
	for _, axis := range []struct {
		flag, text string
		to         *[]int
	}{{"--send-buffers", f.send, &id.Axes.Send}, {"--receive-buffers", f.receive, &id.Axes.Receive},
		{"--write-sizes", f.write, &id.Axes.Write}} {
		if *axis.to, err = sweep.ParseSizes(axis.text); err != nil {
			return id, rules, exit.Usage(axis.flag, exit.Plain(err), "8K-1M:x2,automatic")
		}
	}
	if id.Axes.Directions, err = f.Directions(); err != nil {
		return id, rules, err
	}
	if _, err := f.Route(); err != nil {
		return id, rules, err
	}
	for name := range strings.SplitSeq(f.congestion, ",") {
		id.Axes.Congestion = append(id.Axes.Congestion, strings.TrimSpace(name))
	}
	if err := id.Axes.Check(); err != nil {
		return id, rules, exit.Usage("sweep", exit.Plain(err), "fewer values, each once")
	}
	if id.Time <= 0 {
		return id, rules, exit.Usage("--time", "a run without length measures nothing", "--time 2s")
	}
	if f.repeats < 1 {
		return id, rules, exit.Usage("--repeats", fmt.Sprintf("%d runs measure nothing", f.repeats), "1 or more")
	}
	var percent float64
	if number, ok := strings.CutSuffix(strings.TrimSpace(f.precision), "%"); !ok {
		return id, rules, exit.Usage("--precision", fmt.Sprintf("%q is no share", f.precision), "--precision 3%")
	} else if _, err := fmt.Sscanf(number, "%g", &percent); err != nil || !(percent >= 0.1 && percent <= 50) {
		return id, rules, exit.Usage("--precision", fmt.Sprintf("%q is not between 0.1%% and 50%%", f.precision),
			"--precision 3%")
	}
	rules = sweep.Rules{Precision: percent / 100, MaxRuns: f.repeats, Budget: time.Duration(f.budget), Seed: f.seed}
	return id, rules, nil
}

func (f *flags) run(cmd *cobra.Command, text string, id sweep.Identity, rules sweep.Rules) error {
	ctx := cmd.Context()
	f.Notes = console.Progress(cmd)
	page, err := present.CreateFile(cmd, "--html", f.html)
	if err != nil {
		return err
	}
	defer page.Discard()
	file, err := f.journal(cmd)
	if err != nil {
		return err
	}
	path := file.File().Name()
	temporary := f.resume == ""
	journal, err := sweep.OpenJournal(file, id)
	if err != nil {
		return err
	}
	defer journal.Close()
	if n := len(journal.Runs); n > 0 {
		f.Note(fmt.Sprintf("%s has %d runs of this sweep; continuing", path, n))
	}
	far, err := f.Open(ctx, text)
	if err != nil {
		return errors.Join(err, removeUnused(journal))
	}
	defer far.Close()
	if temporary {
		f.Note("until the sweep is complete, its runs are in " + path)
	}
	line := progress.NewLine(console.Progress(cmd))
	doc, failed := sweep.Run(ctx, sweep.Config{Peer: far, Rules: rules, Journal: journal,
		Progress: func(p sweep.Progress) {
			line.Draw(p.Share, fmt.Sprintf("%d of %d cells  ", p.Done, p.Cells), p.BestBps, brief(p.Cell))
		}})
	line.Clear()
	if doc == nil || len(journal.Runs) == 0 {
		return errors.Join(failed, removeUnused(journal))
	}
	report.Sweep(present.Header(cmd), doc)
	present.NoteLate(cmd, doc)
	status := exit.Done
	if failed != nil {
		var failure record.Failure
		failure, status = exit.Describe(ctx, failed)
		failure.Try = "the same command line with --resume " + path
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
	if temporary && doc.Complete {
		return journal.Remove()
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

// journal opens the file of the runs: the user's, or a temporary one that is deleted when the sweep is complete.
func (f *flags) journal(cmd *cobra.Command) (*atomicfile.File, error) {
	if f.resume != "" {
		file, err := atomicfile.Edit(cmd.Context(), f.resume)
		return file, present.FileError(cmd, "--resume", err)
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		dir = os.TempDir()
	}
	dir = filepath.Join(dir, "fullpipe")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("directory for the runs: %w", err)
	}
	file, err := atomicfile.Temporary(dir, "sweep-"+present.Started.Format("20060102T150405")+"-*.jsonl")
	if err != nil {
		return nil, fmt.Errorf("directory for the runs: %w", err)
	}
	return file, nil
}

// removeUnused removes a new journal without runs.
func removeUnused(journal *sweep.Journal) error {
	if len(journal.Runs) > 0 {
		return nil
	}
	return journal.Remove()
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
