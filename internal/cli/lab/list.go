package lab

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/cli/console"
	"github.com/fullpipe-net/fullpipe/internal/cli/present"
	"github.com/fullpipe-net/fullpipe/internal/lab"
	"github.com/fullpipe-net/fullpipe/internal/link"
	"github.com/fullpipe-net/fullpipe/internal/record"
)

func newLabList() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "the links and stacks that are known by name, and the settings",
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
	a, err := l.Account()
	if err != nil {
		return 0
	}
	return a.Floor.Round(time.Microsecond)
}

func printFloor(w io.Writer, floor time.Duration) error {
	text := "not known: no lab can be started"
	if floor > 0 {
		text = fmt.Sprintf("%.3f ms just now", 1e3*floor.Seconds())
	}
	_, err := fmt.Fprintf(w, "\nThe least round trip of a lab on this machine: %s. An rtt is the whole, with what the "+
		"machine needs for it;\n"+
		"less than the least cannot be had.\n", text)
	return err
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
	Largest    int               `json:"largest_window_bytes,omitempty"` // whatever it asks for
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
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "PROFILE\tSETTINGS\tWHAT IT IS")
	for _, p := range link.Profiles() {
		fmt.Fprintf(table, "%s\t%s\t%s\n", p.Name, p.Text, p.About)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(w)
	fmt.Fprintln(table, "STACK\tWHAT IT IS")
	for _, s := range link.Stacks() {
		fmt.Fprintf(table, "%s\t%s\n", s.Name, s.About)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(w, "Loss recovery and pacing are Linux's in all of them. Where the others' values are from:")
	printSources(w)
	fmt.Fprintln(w)
	fmt.Fprintln(table, "SETTING\tWRITE IT AS\tWHAT IT DOES")
	for _, s := range link.Settings() {
		fmt.Fprintf(table, "%s\t%s\t%s\n", s.Name, s.Example, s.About)
	}
	fmt.Fprintln(table, "up.SETTING, down.SETTING\tdown.rate=10mbit\tfor one direction only (up: near to far)")
	fmt.Fprintln(table, "near.SETTING, far.SETTING\tfar.stack=server-2012\tfor one host only (stack and what changes it)")
	return table.Flush()
}

// printSources says where each foreign stack's values can be looked up, each source once.
func printSources(w io.Writer) {
	var names, sources []string
	for _, s := range link.Stacks() {
		switch last := len(sources) - 1; {
		case !s.Foreign():
		case last >= 0 && sources[last] == s.Source:
			names[last] += ", " + s.Name
		default:
			names = append(names, s.Name)
			sources = append(sources, s.Source)
		}
	}
	for i, name := range names {
		fmt.Fprintf(w, "  %s: %s\n", name, sources[i])
	}
}
