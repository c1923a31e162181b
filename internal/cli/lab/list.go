package lab

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/cli/console"
	"github.com/fullpipe-net/fullpipe/internal/cli/exit"
	"github.com/fullpipe-net/fullpipe/internal/cli/present"
	"github.com/fullpipe-net/fullpipe/internal/didyoumean"
	"github.com/fullpipe-net/fullpipe/internal/lab"
	"github.com/fullpipe-net/fullpipe/internal/link"
	"github.com/fullpipe-net/fullpipe/internal/model"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
	"github.com/fullpipe-net/fullpipe/internal/secret"
)

func newLabList() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "list the links and stacks that have a name, and all settings",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if console.WantsJSON(cmd) {
				return present.JSON(cmd.OutOrStdout(), newLabListing(cmd))
			}
			if err := printLabList(cmd.OutOrStdout()); err != nil {
				return err
			}
			return printFloor(cmd.OutOrStdout(), labFloor(cmd.Context()))
		},
	}
}

type labListing struct {
	record.Header
	Profiles []listedProfile `json:"profiles"`
	Stacks   []listedStack   `json:"stacks"`
	Settings []listedSetting `json:"settings"`
	Floor    float64         `json:"floor_s,omitempty"` // the least round trip of a lab here
}

// labFloor is the least round trip that a lab on this machine has, as one measures it when
// it starts; 0 where none can be started.
func labFloor(ctx context.Context) time.Duration {
	path, err := link.Parse("rtt=0ms")
	if err != nil {
		return 0
	}
	l, err := lab.Start(ctx, lab.Config{Path: path})
	if err != nil {
		return 0
	}
	defer l.Close()
	a, err := l.Lateness()
	if err != nil {
		return 0
	}
	return a.Floor.Round(time.Microsecond)
}

func printFloor(w io.Writer, floor time.Duration) error {
	least := "not known: no lab can be started"
	if floor > 0 {
		least = fmt.Sprintf("%.3f ms just now", 1e3*floor.Seconds())
	}
	fmt.Fprintln(w)
	return text.Paragraph(w, "", fmt.Sprintf("The least round trip of a lab on this machine: %s. An rtt includes it; "+
		"less cannot be had.", least))
}

type listedProfile struct {
	Name     string `json:"name"`
	About    string `json:"about"`
	Settings string `json:"settings"`
}

type listedSetting struct {
	Name    string `json:"name"`
	Example string `json:"example"`
	About   string `json:"about"`
}

type listedStack struct {
	Name       string            `json:"name"`
	About      string            `json:"about"`
	Sysctls    map[string]string `json:"sysctls"`
	SenderRule string            `json:"sender_rule,omitempty"`
	Window     int               `json:"window_bytes,omitempty"`         // where a program asks for none
	Largest    int               `json:"largest_window_bytes,omitempty"` // also if it requests more
	Initial    int               `json:"initial_window_segments,omitempty"`
	DelayedAck float64           `json:"delayed_ack_s,omitempty"`
	Source     string            `json:"source,omitempty"`
}

func newLabListing(cmd *cobra.Command) labListing {
	doc := labListing{Header: present.Header(cmd), Floor: labFloor(cmd.Context()).Seconds()}
	for _, p := range link.Profiles() {
		doc.Profiles = append(doc.Profiles, listedProfile{p.Name, p.About, p.Text})
	}
	for _, s := range link.Stacks() {
		l := listedStack{Name: s.Name, About: s.About, Sysctls: map[string]string{}, SenderRule: s.SenderRule,
			Window: s.Window, Largest: s.LargestWindow, Initial: s.InitialWindow, DelayedAck: s.DelayedAck.Seconds(),
			Source: s.Source}
		for _, c := range s.Sysctls {
			l.Sysctls["net."+c.Name] = c.Value
		}
		doc.Stacks = append(doc.Stacks, l)
	}
	for _, s := range link.Settings() {
		doc.Settings = append(doc.Settings, listedSetting(s))
	}
	return doc
}

func printLabList(w io.Writer) error {
	if err := printProfiles(w); err != nil {
		return err
	}
	rows := [][]string{{""}, {"STACK", "DESCRIPTION"}}
	for _, s := range link.Stacks() {
		rows = append(rows, []string{s.Name, s.About})
	}
	if err := text.Columns(w, rows); err != nil {
		return err
	}
	err := text.Paragraph(w, "", "Loss recovery and pacing are Linux's in all of them. Sources of the others' values:")
	if err != nil {
		return err
	}
	for _, row := range sources() {
		if err := text.Paragraph(w, "  ", strings.Join(row, ": ")); err != nil {
			return err
		}
	}
	rows = [][]string{{""}, {"SETTING", "WRITE IT AS", "EFFECT"}}
	for _, s := range link.Settings() {
		rows = append(rows, []string{s.Name, s.Example, s.About})
	}
	return text.Columns(w, append(rows,
		[]string{"up.SETTING, down.SETTING", "down.rate=10mbit", "for one direction only (up: near to far)"},
		[]string{"near.SETTING, far.SETTING", "far.stack=server-2012", "for one host only (stack and its changes)"}))
}

// printProfiles prints the named links: on a terminal the settings of each below it, else a row for each.
func printProfiles(w io.Writer) error {
	if !render.IsTerminal(w) {
		rows := [][]string{{"PROFILE", "SETTINGS", "DESCRIPTION"}}
		for _, p := range link.Profiles() {
			rows = append(rows, []string{p.Name, p.Text, p.About})
		}
		return text.Columns(w, rows)
	}
	rows := [][]string{{"PROFILE", "DESCRIPTION"}}
	for _, p := range link.Profiles() {
		rows = append(rows, []string{p.Name, p.About})
	}
	if err := text.Columns(w, rows); err != nil {
		return err
	}
	fmt.Fprintln(w, "\nTHEIR SETTINGS")
	for _, p := range link.Profiles() {
		fmt.Fprintf(w, "%s\n  %s\n", p.Name, p.Text)
	}
	return nil
}

// sources returns the foreign stacks with the source of their values, each source once.
func sources() (rows [][]string) {
	for _, s := range link.Stacks() {
		switch last := len(rows) - 1; {
		case !s.Foreign():
		case last >= 0 && rows[last][1] == s.Source:
			rows[last][0] += ", " + s.Name
		default:
			rows = append(rows, []string{s.Name, s.Source})
		}
	}
	return rows
}

// experiment is a sweep with a name: a path and the windows that are tried on it.
type experiment struct {
	name, about string
	path        string // in the lab's words
	mss         int
	windows     []int // bytes, of the receiver
	time        string
}

// experiments are the four charts of the Windows 95 article (docs/coverage.md, N1): the
// receive window that is best on each of its links, by trying. The receiver delays its
// acknowledgements as those of then did.
func experiments() []experiment {
	return []experiment{
		{"windows-95-lan", "10 Mbit/s Ethernet: hardly anything below two segments (2920 bytes), all from a few more on",
			"lab:lan-10m,far.delack=200ms", 1460, []int{1460, 2144, 2900, 2944, 4096, 6000, 8192, 16384, 24576}, "2s"},
		{"windows-95-isdn", "one ISDN channel of 64 kbit/s", "lab:isdn-64k,far.delack=200ms", 1460,
			[]int{1460, 2144, 2900, 2944, 4096, 8192, 16384, 24576}, "15s"},
		{"windows-95-modem-28.8k", "a V.34 modem", "lab:modem-28.8k,far.delack=200ms", 1460,
			[]int{1460, 2144, 2900, 2944, 4096, 8192, 16384, 24576}, "30s"},
		{"windows-95-modem-14.4k", "a V.32bis modem", "lab:modem-14.4k,far.delack=200ms", 1460,
			[]int{1460, 2144, 2900, 2944, 4096, 8192, 16384, 24576}, "40s"},
	}
}

// command is the experiment as a user would write it: a window is what a receive buffer
// ends up advertising.
func (e *experiment) command() []string {
	buffers := make([]string, len(e.windows))
	for i, w := range e.windows {
		buffers[i] = strconv.Itoa(model.LinuxBufferFor(w, e.mss))
	}
	return []string{"sweep", e.path, "--send-buffers", "automatic", "--receive-buffers", strings.Join(buffers, ","),
		"--time", e.time, "--repeats", "3"}
}

func newLabExperiments() *cobra.Command {
	return &cobra.Command{
		Use:   "experiments [NAME] [-- FLAG...]",
		Short: "run a published experiment again: the sweeps of the founding documents",
		Long: `experiments lists sweeps that have a name; with NAME it runs that sweep.
Flags after -- are added to sweep's flags: --budget 1m, --html chart.html, --repeats 1.`,
		Example: `  fullpipe lab experiments
  fullpipe lab experiments windows-95-lan
  fullpipe lab experiments windows-95-modem-28.8k --json -- --repeats 1 --time 10s`,
		Args: func(cmd *cobra.Command, args []string) error {
			names := len(args)
			if dash := cmd.ArgsLenAtDash(); dash >= 0 {
				names = dash
			}
			if names > 1 || names == 0 && len(args) > 0 {
				return exit.Usage("NAME", "one experiment at a time", "fullpipe lab experiments windows-95-lan -- --repeats 1")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			all := experiments()
			if len(args) == 0 {
				return listExperiments(cmd, all)
			}
			i := slices.IndexFunc(all, func(e experiment) bool { return e.name == args[0] })
			if i < 0 {
				names := make([]string, len(all))
				for i := range all {
					names[i] = all[i].name
				}
				try := "fullpipe lab experiments"
				if near := didyoumean.Nearest(args[0], names); near != "" {
					try = near + " (" + try + " lists them all)"
				}
				return exit.Usage("NAME", fmt.Sprintf("no experiment is called %q", args[0]), try)
			}
			return runExperiment(cmd, all[i], args[1:])
		},
	}
}

type experimentListing struct {
	record.Header
	Experiments []listedExperiment `json:"experiments"`
}

type listedExperiment struct {
	Name    string   `json:"name"`
	About   string   `json:"about"`
	Windows []int    `json:"windows_bytes"`
	Command []string `json:"command"`
}

func listExperiments(cmd *cobra.Command, all []experiment) error {
	out := cmd.OutOrStdout()
	if console.WantsJSON(cmd) {
		doc := experimentListing{Header: present.Header(cmd)}
		for _, e := range all {
			doc.Experiments = append(doc.Experiments, listedExperiment{e.name, e.about, e.windows,
				append([]string{"fullpipe"}, e.command()...)})
		}
		return present.JSON(out, doc)
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "EXPERIMENT\tWHAT IT IS")
	for _, e := range all {
		fmt.Fprintf(table, "%s\t%s\n", e.name, e.about)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, e := range all {
		fmt.Fprintf(out, "\n%s: windows of %s bytes\n    fullpipe %s\n", e.name, numbers(e.windows),
			strings.Join(e.command(), " "))
	}
	return nil
}

func numbers(all []int) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(all), " ", ", "), "[]")
}

// runExperiment becomes the sweep: signals, output and status are its own.
func runExperiment(cmd *cobra.Command, e experiment, more []string) error {
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program's own file: %w", err)
	}
	args := append([]string{program}, e.command()...)
	for _, name := range []string{"json", "quiet"} {
		if on, err := cmd.Flags().GetBool(name); err == nil && on {
			args = append(args, "--"+name)
		}
	}
	if !slices.ContainsFunc(more, func(s string) bool { return strings.HasPrefix(s, "--receive-buffers") }) {
		fmt.Fprintf(console.Progress(cmd), "fullpipe: note: %s: the receive buffers' windows are %s bytes\n", e.name,
			numbers(e.windows))
	}
	environment := secret.Without(os.Environ(), secret.Key, secret.Store)
	if err := syscall.Exec(program, append(args, more...), environment); err != nil {
		return fmt.Errorf("run fullpipe %s: %w", strings.Join(args[1:], " "), err)
	}
	return nil
}
