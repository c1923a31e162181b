package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/limiter"
	"github.com/fullpipe-net/fullpipe/internal/path"
	"github.com/fullpipe-net/fullpipe/internal/report"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// measureFlags are what a user asks of one measured transfer.
type measureFlags struct {
	peerFlags
	time                  time.Duration
	interval              duration
	everywhere            bool // intervals are printed where no terminal is, too
	bytes                 units.Size
	parallel              int
	send, receive, window units.Size
	write                 units.Size
	congestion            string
	mss                   int
	noDelay               bool
	writeRate, readRate   units.Rate
	exchange              bool
	bidir                 bool
	dscp                  int
	udp                   udpFlags
	pacing                units.Rate
	picture               string
	compare               compareFlags
}

func newMeasure() *cobra.Command {
	var f measureFlags
	cmd := &cobra.Command{
		Use:   "measure PEER",
		Short: "measure one transfer and name what limits it",
		Long: `measure carries out one TCP transfer with PEER and says what limits it, with evidence.

Buffers, window, congestion control and MSS belong to the end that they matter at:
--send-buffer, --congestion and --mss to the sender, --receive-buffer and --window to
the receiver. With --direction up this host sends. What is not given is the system's
default, which for buffers is automatic sizing.

With --compare two addresses of the same far end are measured in turn and the difference
is put down to overhead, round trip, loss, window, capacity or the hosts' CPU: to what
would give the slower one 10 % or more if it were gone, or to nothing that is known.`,
		Example: `  fullpipe measure server.example.net --key-file key
  fullpipe measure server.example.net --direction both --receive-buffer 64KiB
  fullpipe measure server.example.net --udp --rate 20mbit --direction both
  fullpipe measure --compare 10.8.0.1 server.example.net --key-file key
  fullpipe measure lab:wan-40ms --time 5s`,
		Args: func(cmd *cobra.Command, args []string) error {
			if f.compare.on {
				return f.compare.check(args)
			}
			return onePeer(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			f.downOnly(cmd, args[0])
			f.everywhere = cmd.Flags().Changed("interval")
			if err := f.bothAtOnce(cmd); err != nil {
				return err
			}
			if err := f.compareAlone(cmd); err != nil {
				return err
			}
			specs, err := f.specs()
			if err != nil {
				return err
			}
			datagrams, err := f.datagramSpecs(cmd)
			if err != nil {
				return err
			}
			if done, err := inLab(cmd, args[0]); done {
				return err
			}
			if f.compare.on {
				return f.runCompare(cmd, args, specs)
			}
			if f.bidir && datagrams == nil {
				return f.runBoth(cmd, args[0], specs[0], specs[1])
			}
			if datagrams != nil {
				return f.runUDP(cmd, args[0], datagrams)
			}
			return f.run(cmd, args[0], specs)
		},
	}
	fl := cmd.Flags()
	f.peerFlags.add(fl)
	fl.DurationVarP(&f.time, "time", "t", 5*time.Second, "how long each transfer lasts")
	f.interval = duration(time.Second)
	fl.VarP(&f.interval, "interval", "i", "print what came every so often, on a terminal also when not given; 0 never")
	fl.VarP(&f.bytes, "bytes", "n", "end after this much payload instead of after a time")
	fl.IntVarP(&f.parallel, "parallel", "P", 1, "number of connections at a time")
	fl.Var(&f.send, "send-buffer", "the sender's send buffer (SO_SNDBUF); automatic if not given")
	fl.Var(&f.receive, "receive-buffer", "the receiver's receive buffer (SO_RCVBUF); automatic if not given")
	fl.Var(&f.window, "window", "bound of the receiver's window, with automatic sizing left on (TCP_WINDOW_CLAMP)")
	fl.Var(&f.write, "write-size", "bytes of one write by the sender; large ones if not given")
	fl.StringVarP(&f.congestion, "congestion", "C", "", "the sender's congestion control")
	fl.IntVar(&f.mss, "mss", 0, "bound of the sender's segments in bytes (TCP_MAXSEG)")
	fl.Var(&f.pacing, "pacing", "bound of the sender's rate in its kernel (SO_MAX_PACING_RATE)")
	fl.BoolVar(&f.noDelay, "no-delay", false, "send small writes at once (TCP_NODELAY)")
	fl.Var(&f.writeRate, "write-rate", "hold the sending program to this rate")
	fl.Var(&f.readRate, "read-rate", "hold the receiving program to this rate")
	fl.BoolVar(&f.exchange, "exchange", false, "write requests of --write-size in two pieces and wait for an answer to each")
	fl.IntVar(&f.dscp, "dscp", 0, "code point that the sender's packets carry")
	fl.StringVar(&f.picture, "picture", "", "draw throughput, bytes in flight and round trips of the transfer to this SVG `file`")
	fl.BoolVar(&f.bidir, "bidir", false, "measure both directions at the same time")
	fl.BoolVar(&f.compare.on, "compare", false, "measure two addresses of one far end in turn, as inside and outside a tunnel, and say why they differ")
	fl.IntVar(&f.compare.rounds, "rounds", 2, "with --compare: how often, each time first, second, second, first")
	fl.BoolVarP(&f.udp.on, "udp", "u", false, "send UDP, and tell loss, jitter, order and delay variation")
	f.udp.rate, f.udp.datagram = 10e6, 1448
	fl.Var(&f.udp.rate, "rate", "payload of UDP over all streams; 0 is as fast as the sender can")
	fl.BoolVar(&f.udp.capacity, "capacity", false, "with --udp: search the largest rate that gets through; fills the path for some 10 s")
	fl.Var(&f.udp.datagram, "datagram", "payload of one UDP datagram")
	return cmd
}

// bothAtOnce makes --bidir ask for both directions.
func (f *measureFlags) bothAtOnce(cmd *cobra.Command) error {
	switch {
	case !f.bidir:
		return nil
	case cmd.Flags().Changed("direction") && f.direction != "both":
		return &usageError{"--bidir", "means both directions, not " + f.direction, "one of --bidir and --direction"}
	case f.udp.capacity:
		return &usageError{"--bidir", "leaves neither direction its capacity", "--capacity --direction both, one after the other"}
	}
	f.direction = "both"
	return nil
}

// leastInterval is as often as far ends tell what arrived.
const leastInterval = 100 * time.Millisecond

// every is how often lines are printed there, 0 for never.
func (f *measureFlags) every(out io.Writer) time.Duration {
	if !f.everywhere && !isTerminal(out) {
		return 0
	}
	return time.Duration(f.interval)
}

// specs are the transfers to carry out, one for each direction.
func (f *measureFlags) specs() ([]transfer.Spec, error) {
	directions, err := f.directions()
	if err != nil {
		return nil, err
	}
	if _, err := f.route(); err != nil {
		return nil, err
	}
	if f.parallel < 1 {
		return nil, &usageError{"--parallel", fmt.Sprintf("%d connections carry nothing", f.parallel), "1 or more"}
	}
	if f.time <= 0 {
		return nil, &usageError{"--time", fmt.Sprintf("%v is no time to measure in", f.time), "5s"}
	}
	if f.interval != 0 && f.interval < duration(leastInterval) {
		return nil, &usageError{"--interval", fmt.Sprintf("%v is too short to tell anything", time.Duration(f.interval)), "100ms or more, or 0 for none"}
	}
	if f.dscp < 0 || f.dscp > 63 {
		return nil, &usageError{"--dscp", fmt.Sprintf("%d is no code point", f.dscp), "0 to 63, as in 46 for expedited forwarding"}
	}
	sender := transfer.Socket{SendBuffer: int(f.send), Congestion: f.congestion, MSS: f.mss, NoDelay: f.noDelay, TOS: f.dscp << 2, PacingBps: float64(f.pacing)}
	receiver := transfer.Socket{ReceiveBuffer: int(f.receive), Clamp: int(f.window), NoDelay: f.noDelay}
	var specs []transfer.Spec
	for _, d := range directions {
		s := transfer.Spec{Direction: d, Near: sender, Far: receiver, Streams: f.parallel, Time: f.time, Bytes: int64(f.bytes),
			Latency: !f.bidir || d == transfer.Up, // of one of two that run at once: it is the same path
			Program: transfer.Program{WriteBytes: int(f.write), WriteBps: float64(f.writeRate), ReadBps: float64(f.readRate), Exchange: f.exchange}}
		if d == transfer.Down {
			s.Near, s.Far = receiver, sender
		}
		if s.Bytes > 0 {
			s.Time = 0
		}
		specs = append(specs, s)
	}
	return specs, nil
}

func (f *measureFlags) run(cmd *cobra.Command, text string, specs []transfer.Spec) error {
	ctx := cmd.Context()
	f.notes = cmd.ErrOrStderr()
	far, err := f.open(ctx, text)
	if err != nil {
		return err
	}
	defer far.Close()
	doc := report.Measure{Header: newHeader(cmd), Peer: peerName(text)}
	for _, spec := range specs {
		direction, err := f.measureOne(ctx, far, spec, &doc, cmd.ErrOrStderr())
		if direction != nil {
			doc.Directions = append(doc.Directions, *direction)
		}
		if err != nil {
			return f.cutShort(cmd, &doc, err)
		}
	}
	return show(cmd, &doc)
}

// measureOne carries out one transfer; with an error the direction holds what was
// measured until then, or is nil.
func (f *measureFlags) measureOne(ctx context.Context, far transfer.Peer, spec transfer.Spec, doc *report.Measure, progress io.Writer) (*report.Direction, error) {
	var intervals []transfer.Interval
	lines := newLive(progress, f.every(progress), spec)
	result, err := far.Run(ctx, spec, func(i transfer.Interval) {
		intervals = append(intervals, i)
		lines.show(spec.Direction, i)
	})
	lines.clear()
	var unsupported *transfer.Unsupported
	if errors.As(err, &unsupported) {
		return nil, &usageError{"measure", err.Error(), "what the far end allows, or leave that option out"}
	}
	if result == nil {
		return nil, err
	}
	doc.Near, doc.Far = report.NewHost(result.Near), report.NewHost(result.Far)
	verdict := limiter.Judge(result)
	result.Warnings = append(result.Warnings, f.pathNotes(ctx, result, verdict)...)
	direction := report.NewDirection(result, verdict, intervals)
	return &direction, errors.Join(err, f.draw(result, verdict))
}

// draw writes the picture that was asked for; with both directions the file's name says
// which.
func (f *measureFlags) draw(result *transfer.Result, verdict limiter.Verdict) error {
	if f.picture == "" {
		return nil
	}
	name := f.picture
	if f.direction == "both" {
		ext := filepath.Ext(name)
		name = fmt.Sprintf("%s-%s%s", strings.TrimSuffix(name, ext), result.Spec.Direction, ext)
	}
	var svg bytes.Buffer
	if err := report.WritePicture(&svg, result, verdict); err != nil {
		return fmt.Errorf("--picture %s: %w", name, err)
	}
	return os.WriteFile(name, svg.Bytes(), 0o644)
}

// pathNotes are what the two ends' views of the handshake, and after a black hole probes
// of their own, tell of the path.
func (f *measureFlags) pathNotes(ctx context.Context, r *transfer.Result, v limiter.Verdict) []string {
	var notes []string
	if r.Near == nil || len(r.Near.Streams) == 0 {
		return nil
	}
	near := r.Near.Streams[0]
	if r.Far != nil && len(r.Far.Streams) > 0 {
		if differ := path.Disagreements(near.Handshake, r.Far.Streams[0].Handshake); len(differ) > 0 {
			notes = append(notes, "the two ends disagree on "+strings.Join(differ, " and ")+": something on the way rewrites the handshake")
		}
	}
	received, known := r.Received()
	nothing := known && near.Handshake != nil && received.Bytes < 2*int64(near.Handshake.MSS)
	if (nothing || v.Limiter == limiter.MTUBlackHole) && ctx.Err() == nil {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		route, _ := f.route()
		if m, err := path.FindMTU(ctx, near.Remote.Addr(), path.Config{Route: route}); err == nil && m.Bytes < m.Largest {
			notes = append(notes, fmt.Sprintf("packets of up to %d bytes pass, larger ones vanish although %d could leave: a router drops them without a word",
				m.Bytes, m.Largest))
		}
	}
	return notes
}

// cutShort prints what was measured before an error.
func (f *measureFlags) cutShort(cmd *cobra.Command, doc *report.Measure, err error) error {
	if len(doc.Directions) == 0 {
		return err
	}
	return showCut(cmd, doc, &doc.Error, err)
}
