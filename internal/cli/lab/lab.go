// Package lab runs programs on two hosts with a link between them, on this machine.
package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/cli/console"
	"github.com/fullpipe-net/fullpipe/internal/cli/exit"
	"github.com/fullpipe-net/fullpipe/internal/cli/farend"
	"github.com/fullpipe-net/fullpipe/internal/cli/present"
	"github.com/fullpipe-net/fullpipe/internal/lab"
	"github.com/fullpipe-net/fullpipe/internal/link"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/secret"
)

// options are lab's flags.
type options struct{ far, report, capture string }

// New returns the command lab.
func New() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "lab PROFILE [--far CMD] -- CMD...",
		Short: "run programs on two hosts with a link between them (Linux)",
		Long: `lab needs Linux, /dev/net/tun, and root or user namespaces. On other systems
run fullpipe serve on a second host, or lab in WSL 2 or a Linux virtual machine.

lab runs CMD on a virtual host. A link connects it to a second virtual host. PROFILE
describes the link: a name (see: fullpipe lab list) or settings such as
rate=100mbit,rtt=40ms,loss=0.01%,queue=1bdp. A name may be followed by settings; fullpipe
lab list explains them all. Both programs find the addresses in $FULLPIPE_NEAR and
$FULLPIPE_FAR. If the path has a VPN (vpn=gateway, vpn=wireguard), these addresses are
inside it; the addresses outside it are in $FULLPIPE_NEAR_OUTSIDE and $FULLPIPE_FAR_OUTSIDE.
Signals are passed on to CMD. If CMD ignores SIGTERM, a second SIGTERM, 1 s or more later,
kills it.`,
		Example: `  fullpipe lab wan-40ms -- sh -c 'ping -c 3 $FULLPIPE_FAR'
  fullpipe lab rate=20mbit,rtt=30ms --far 'iperf3 -s -1' -- sh -c 'iperf3 -c $FULLPIPE_FAR'
  fullpipe lab wan-40ms,loss=0.1%,near.stack=windows-2000 -- bash
  fullpipe lab wan-40ms,vpn=wireguard -- ping -c 3 198.19.0.2
  fullpipe lab wan-80ms,far.factor=0 --far 'iperf3 -s -1' -- sh -c 'iperf3 -c $FULLPIPE_FAR'`,
		Args: func(cmd *cobra.Command, args []string) error {
			if cmd.ArgsLenAtDash() != 1 || len(args) < 2 {
				return exit.Usage("lab", "needs a profile, then -- and a command", "fullpipe lab wan-40ms -- bash")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			path, err := link.Parse(args[0])
			if err != nil {
				return farend.ProfileError(err)
			}
			return runLab(cmd, path, o, args[1:])
		},
	}
	cmd.Flags().StringVar(&o.far, "far", "", "command for the far host, run by sh -c; it is "+
		"stopped when CMD ends")
	cmd.Flags().StringVar(&o.report, "report", "", "write the link's counters, and how late it "+
		"delivered packets, to this file, as JSON")
	cmd.Flags().StringVar(&o.capture, "capture", "", "write the packet headers, as seen in the "+
		"middle of the link, to this file (pcap)")
	cmd.AddCommand(newLabList(), newLabExperiments())
	return cmd
}

func runLab(cmd *cobra.Command, path link.Path, o options, args []string) error {
	out, err := present.CreateFile(cmd, "--report", o.report)
	if err != nil {
		return err
	}
	defer out.Discard()
	capture, err := present.StreamFile(cmd, "--capture", o.capture)
	if err != nil {
		return err
	}
	defer capture.Discard()
	noteStacks(console.Progress(cmd), path)
	os.Unsetenv(secret.Store) // not for CMD; the key stays, since both ends of a lab share it by that
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	defer signal.Stop(signals)
	run := lab.Run{
		Config: lab.Config{Path: path, Tap: capture.File()},
		Near: lab.Command{Args: args, Stdin: os.Stdin, Stdout: console.Raw(cmd.OutOrStdout()),
			Stderr: console.Raw(cmd.ErrOrStderr())},
		Signals: signals,
	}
	if o.far != "" {
		run.Far = lab.Command{Args: []string{"/bin/sh", "-c", o.far},
			Stdout: console.Raw(cmd.ErrOrStderr()), Stderr: console.Raw(cmd.ErrOrStderr())}
	}
	var up, down link.Counters
	var late lab.Lateness
	run.AtEnd = func(l *lab.Lab) (err error) {
		up, down, late, err = l.Counted()
		return err
	}
	start := time.Now()
	// Signals are CMD's business, so they do not cancel.
	status, err := run.Do(context.WithoutCancel(cmd.Context()))
	var not *lab.NotRun
	switch {
	case errors.As(err, &not):
		return exit.WithStatus(not, not.Status)
	case err != nil:
		return exit.WithStatus(err, exit.OwnFailure)
	}
	if out != nil {
		doc := labReport{present.Header(cmd), path.Profile, path.RTT.Seconds(), status, time.Since(start).Seconds(),
			reportVPN(path),
			[]linkReport{reportLink("up", path.Up, up, late.Up), reportLink("down", path.Down, down, late.Down)},
			late.Floor.Round(time.Microsecond).Seconds()}
		err := present.WriteFile("--report", out, func(w io.Writer) error { return present.JSON(w, doc) })
		if err != nil {
			return exit.WithStatus(err, exit.OwnFailure)
		}
	}
	if err := capture.Commit(); err != nil {
		return exit.WithStatus(fmt.Errorf("--capture: %w", err), exit.OwnFailure)
	}
	if status != 0 {
		return exit.Status(status)
	}
	return nil
}

// noteStacks prints which parts of a stack are imitated here, and which no kernel setting can
// make of another program.
func noteStacks(w io.Writer, path link.Path) {
	for _, s := range []struct {
		end   string
		stack link.Stack
	}{{"near", path.Near}, {"far", path.Far}} {
		if s.stack.Foreign() {
			fmt.Fprintf(w, "fullpipe: note: the %s end has the windows, options and start of %s; loss recovery and pacing are "+
				"Linux's\n", s.end, s.stack.Name)
		}
		if s.stack.SenderRule != "" {
			fmt.Fprintf(w, "fullpipe: note: the %s end's %s buffers what it sends by a rule of its own (%s); only fullpipe's "+
				"sender obeys it\n",
				s.end, s.stack.Name, s.stack.SenderRule)
		}
		if rule := s.stack.ReceiverRule(); rule != "" {
			fmt.Fprintf(w, "fullpipe: note: where nobody asks for a receive buffer, fullpipe's receivers at the %s end have "+
				"the window scale factor\n"+
				"of %s (%s); other programs have its window with Linux's factor, and with %s.factor=0 that "+
				"of 0, also if they request more\n", s.end, s.stack.Name, rule, s.end)
		}
	}
}

type labReport struct {
	record.Header
	Profile    string       `json:"profile,omitempty"`
	RTT        float64      `json:"rtt_s"`
	Status     int          `json:"status"`
	Elapsed    float64      `json:"elapsed_s"`
	VPN        *vpnReport   `json:"vpn,omitempty"`
	Directions []linkReport `json:"directions"`
	Floor      float64      `json:"floor_s,omitempty"` // the least round trip that could have been asked for
}

type vpnReport struct {
	Kind      string `json:"kind"` // gateway or wireguard
	CryptoBps int64  `json:"crypto_bps,omitempty"`
	MTUBytes  int    `json:"mtu_bytes"` // the largest packet of near's that passes
}

// reportVPN is nil for a path without one.
func reportVPN(p link.Path) *vpnReport {
	switch p.VPN.Kind {
	case link.Gateway:
		return &vpnReport{p.VPN.Kind, p.VPN.Crypto, p.Up.Largest(false)}
	case link.WireGuard:
		return &vpnReport{Kind: p.VPN.Kind, MTUBytes: p.VPN.MTU}
	}
	return nil
}

type linkReport struct {
	Direction      string `json:"direction"`
	RateBps        int64  `json:"rate_bps,omitempty"`
	QueueBytes     int64  `json:"queue_bytes,omitempty"`
	QueuePackets   int64  `json:"queue_packets,omitempty"`
	OfferedPackets int64  `json:"offered_packets"`
	OfferedBytes   int64  `json:"offered_bytes"`
	CarriedPackets int64  `json:"carried_packets"`
	CarriedBytes   int64  `json:"carried_bytes"`
	ArrivedPackets int64  `json:"arrived_packets"`
	ArrivedBytes   int64  `json:"arrived_bytes"`
	DroppedQueue   int64  `json:"dropped_queue_packets"`
	DroppedPolicer int64  `json:"dropped_policer_packets"`
	// DroppedUnmarked would have been marked if both ends had agreed to ECN.
	DroppedUnmarked int64 `json:"dropped_unmarked_packets"`
	Marked          int64 `json:"marked_packets"`
	DroppedGateway  int64 `json:"dropped_gateway_packets"`
	DroppedMTU      int64 `json:"dropped_mtu_packets"`
	Lost            int64 `json:"lost_packets"`
	Duplicated      int64 `json:"duplicated_packets"`
	Reordered       int64 `json:"reordered_packets"`
	LargestQueue    int64 `json:"largest_queue_bytes"`

	Late record.LinkLate `json:"late"`
}

func reportLink(direction string, c link.Config, n link.Counters, l lab.Late) linkReport {
	return linkReport{direction, c.Rate, c.QueueBytes, c.QueuePackets, n.Offered, n.OfferedBytes, n.Carried,
		n.CarriedBytes,
		n.Delivered, n.DeliveredBytes, n.DroppedQueue, n.DroppedPolicer,
		n.DroppedUnmarked, n.Marked, n.DroppedGateway, n.DroppedMTU, n.Lost, n.Duplicated,
		n.Reordered, n.QueuePeakBytes, present.NewLinkLate(l)}
}
