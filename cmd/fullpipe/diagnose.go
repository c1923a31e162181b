package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"

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
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return diagnose(cmd, args, &f) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.host, "host", "", "only connections with this address at either end")
	flags.Uint16Var(&f.port, "port", 0, "only connections with this port at either end")
	flags.Var(&f.least, "bytes", "only directions that carried at least this much; where none did, all")
	flags.IntVar(&f.top, "top", 20, "how many connections to list, those that lost most time first")
	flags.BoolVar(&f.details, "details", false, "tell all that is known of each listed connection")
	flags.BoolVar(&f.csv, "csv", false, "print one line of comma-separated values for each direction")
	return cmd
}

func diagnose(cmd *cobra.Command, names []string, f *diagnoseFlags) error {
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
