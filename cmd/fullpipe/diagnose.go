package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/capture"
	"github.com/fullpipe-net/fullpipe/internal/flow"
	"github.com/fullpipe-net/fullpipe/internal/report"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

type diagnoseFlags struct {
	host         string
	port         uint16
	least        units.Size
	top          int
	details, csv bool
	html         string
	near, far    string
}

func newDiagnose() *cobra.Command {
	f := diagnoseFlags{least: 100_000}
	cmd := &cobra.Command{
		Use:   "diagnose FILE...",
		Short: "what limited each connection in a capture, and what to change",
		Long: `diagnose reads captures (pcap or pcapng, also compressed with gzip or zstd; - is
standard input) and says what limited each TCP connection in each direction, how sure
that is, what to change and what that would give. Several files are parts of one capture.`,
		Example: `  tcpdump -i eth0 -s 128 -w slow.pcap tcp port 443
  fullpipe diagnose slow.pcap
  fullpipe diagnose slow.pcap --host 192.0.2.7 --details
  fullpipe diagnose slow.pcap --html slow.html`,
		RunE: func(cmd *cobra.Command, args []string) error { return diagnose(cmd, args, &f) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.host, "host", "", "only connections with this address at either end")
	flags.Uint16Var(&f.port, "port", 0, "only connections with this port at either end")
	flags.Var(&f.least, "bytes", "only directions that carried at least this much; where none did, all")
	flags.IntVar(&f.top, "top", 20, "how many connections to list, those that lost most time first")
	flags.BoolVar(&f.details, "details", false, "tell all that is known of each listed connection")
	flags.StringVar(&f.near, "near", "", "one of two captures of the same connections, the one to diagnose")
	flags.StringVar(&f.far, "far", "", "the other one: what arrives changed at it is told")
	flags.StringVar(&f.html, "html", "", "also write a page with graphs of the listed connections to this file")
	flags.BoolVar(&f.csv, "csv", false, "print one line of comma-separated values for each direction")
	return cmd
}

func diagnose(cmd *cobra.Command, names []string, f *diagnoseFlags) error {
	names, err := f.files(names)
	if err != nil {
		return err
	}
	if f.html != "" && slices.Contains(names, "-") {
		return &usageError{"--html", "graphs need a second look at the capture, and standard input can be read once", "write it to a file first"}
	}
	wanted, err := f.wanted()
	if err != nil {
		return err
	}
	a, err := analyze(cmd.Context(), names, capture.Config{Flow: flow.Config{Wanted: wanted}})
	interrupted := errors.Is(err, context.Canceled)
	if err != nil && !interrupted {
		return err
	}
	doc := report.NewDiagnose(newHeader(cmd), a, int64(f.least))
	doc.Interrupted = interrupted
	if f.far != "" && !interrupted {
		far, err := analyze(cmd.Context(), []string{f.far}, capture.Config{})
		if err != nil {
			return err
		}
		doc.Compare(far)
	}
	if f.html != "" && !interrupted {
		if err := writePage(cmd, names, f, doc); err != nil {
			return err
		}
	}
	switch out := cmd.OutOrStdout(); {
	case wantsJSON(cmd):
		err = printJSON(out, doc)
	case f.csv:
		err = doc.WriteCSV(out)
	default:
		doc.WriteText(out, max(f.top, 1), f.details)
	}
	if err == nil && interrupted {
		return exitStatus(statusInterrupted)
	}
	return err
}

// files are the captures to diagnose.
func (f *diagnoseFlags) files(names []string) ([]string, error) {
	switch {
	case (f.near == "") != (f.far == ""):
		return nil, &usageError{"--near", "two captures of the same connections are compared: both are needed", "--near A.pcap --far B.pcap"}
	case f.near != "" && len(names) > 0:
		return nil, &usageError{names[0], "--near and --far name the captures already", "leave it out"}
	case f.near != "":
		return []string{f.near}, nil
	case len(names) == 0:
		return nil, &usageError{"FILE", "no capture was named", "fullpipe diagnose FILE, or - for standard input"}
	}
	return names, nil
}

func (f *diagnoseFlags) wanted() (func(a, b flow.Endpoint) bool, error) {
	if f.host == "" && f.port == 0 {
		return nil, nil
	}
	var host netip.Addr
	if f.host != "" {
		var err error
		if host, err = netip.ParseAddr(f.host); err != nil {
			return nil, &usageError{"--host", fmt.Sprintf("%q is not an address", f.host), "--host 192.0.2.7"}
		}
	}
	is := func(e flow.Endpoint) bool {
		ap := e.AddrPort()
		return (f.host == "" || ap.Addr() == host.Unmap()) && (f.port == 0 || ap.Port() == f.port)
	}
	return func(a, b flow.Endpoint) bool { return is(a) || is(b) }, nil
}

// writePage reads the captures once more, this time keeping the points of the connections
// that are listed, and writes the page with their graphs.
func writePage(cmd *cobra.Command, names []string, f *diagnoseFlags, doc *report.Diagnose) error {
	cfg := doc.Graphs(max(f.top, 1))
	a, err := analyze(cmd.Context(), names, capture.Config{Flow: cfg})
	if err != nil {
		return err
	}
	doc.Draw(a)
	out, err := os.CreateTemp(filepath.Dir(f.html), ".fullpipe-*.html")
	if err != nil {
		return fmt.Errorf("--html: %w", err)
	}
	defer os.Remove(out.Name()) // fails once it has its name
	err = errors.Join(doc.WriteHTML(out), out.Chmod(0o644), out.Sync(), out.Close())
	if err == nil {
		err = os.Rename(out.Name(), f.html)
	}
	if err != nil {
		return fmt.Errorf("--html: %w", err)
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "graphs written to %s\n", f.html)
	return nil
}

// analyze opens the files and follows what is in them.
func analyze(ctx context.Context, names []string, cfg capture.Config) (*capture.Analysis, error) {
	var files []*capture.File
	defer func() {
		for _, f := range files {
			f.Close()
		}
	}()
	for _, name := range names {
		f, err := capture.Open(name)
		if err != nil {
			if errors.Is(err, os.ErrNotExist) {
				return nil, &usageError{name, "there is no such file", "tcpdump -i any -s 128 -w FILE.pcap tcp"}
			}
			return nil, err
		}
		files = append(files, f)
	}
	return capture.Analyze(ctx, cfg, files...)
}
