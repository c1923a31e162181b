// Package measure measures one transfer.
package measure

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/atomicfile"
	"github.com/fullpipe-net/fullpipe/internal/cli/cmdflag"
	"github.com/fullpipe-net/fullpipe/internal/cli/exit"
	"github.com/fullpipe-net/fullpipe/internal/cli/farend"
	"github.com/fullpipe-net/fullpipe/internal/cli/settings"
	"github.com/fullpipe-net/fullpipe/internal/config"
	"github.com/fullpipe-net/fullpipe/internal/history"
	"github.com/fullpipe-net/fullpipe/internal/peer"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// flags are the flags of measure.
type flags struct {
	farend.PeerFlags
	time                  time.Duration
	interval              cmdflag.Duration
	everywhere            bool // intervals are printed where no terminal is, too
	bytes, maxBytes       units.Size
	parallel              int
	send, receive, window units.Size
	write                 units.Size
	congestion            string
	mss                   int
	noDelay               bool
	writeRate, readRate   units.Rate
	exchange, copyData    bool
	bidir                 bool
	dscp                  int
	udp                   udpFlags
	pacing                units.Rate
	picture               string
	pictures              map[transfer.Direction]*atomicfile.File
	compare               compareFlags
	habits                habitFlags
	criteria              criteriaFlags
	requests              requestFlags
	csv, stream           bool
}

// New returns the command measure.
func New() *cobra.Command {
	cmd, _ := command()
	return cmd
}

// command also returns the destination of its flags.
func command() (*cobra.Command, *flags) {
	f := &flags{PeerFlags: farend.PeerFlags{Once: true}}
	cmd := &cobra.Command{
		Use:   "measure PEER",
		Short: "measure one transfer and name what limits it",
		Long: `measure runs one TCP transfer with PEER and names what limits it, with
evidence.

--send-buffer, --congestion and --mss set the sender, --receive-buffer and --window the
receiver. With --direction up this host sends. Without a flag the system's default applies,
which for buffers is automatic sizing.

With --rr (open connections) or --crr (a new connection each) it sends requests to a
fullpipe server, or GET requests to a web address, and reports how long they took and the
causes of slow ones.

With --compare it measures two addresses of the same far end in turn and names the cause of
the difference: overhead, RTT, loss, window, capacity or CPU. A cause is named if its
removal would raise the slower goodput by 10 % or more.`,
		Example: `  fullpipe measure server.example.net --key-file key
  fullpipe measure server.example.net --direction both --receive-buffer 64KiB
  fullpipe measure server.example.net --udp --rate 20mbit --direction both
  fullpipe measure server.example.net --rr --rate 500 --concurrency 8
  fullpipe measure https://www.example.net/health --rr --rate 20
  fullpipe measure --compare 10.8.0.1 server.example.net --key-file key
  fullpipe measure lab:wan-40ms --time 5s`,
		Args: func(cmd *cobra.Command, args []string) error {
			if f.compare.on {
				return f.compare.check(args)
			}
			if f.habits.client != "" && len(args) == 0 {
				return nil
			}
			return farend.OnePeer(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			args, err := f.habits.translate(cmd, f, args)
			if err != nil {
				return err
			}
			f.DownOnly(cmd, args[0])
			f.everywhere = cmd.Flags().Changed("interval")
			if err := f.check(cmd); err != nil {
				return err
			}
			specs, err := f.specs()
			if err != nil {
				return err
			}
			requests, isLoad, err := f.requestSpec(cmd, peer.DownOnly(args[0]))
			if err != nil {
				return err
			}
			datagrams, err := f.datagramSpecs(cmd)
			if err != nil {
				return err
			}
			if done, err := farend.InLab(cmd, args[0]); done {
				return err
			}
			if isLoad {
				return f.runRequests(cmd, args[0], requests)
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
	cmd.SetFlagErrorFunc(flagError)
	fl := cmd.Flags()
	f.PeerFlags.Add(fl)
	f.habits.add(fl)
	f.criteria.add(fl)
	f.requests.add(fl)
	fl.BoolVar(&f.csv, "csv", false, "print one line of comma-separated values for each direction")
	fl.BoolVar(&f.stream, "json-stream", false, "print one JSON object per line: each interval "+
		"when it ends, then the result")
	f.time = 5 * time.Second
	fl.VarP((*cmdflag.Period)(&f.time), "time", "t", "how long each transfer lasts")
	f.interval = cmdflag.Duration(time.Second)
	fl.VarP((*cmdflag.Period)(&f.interval), "interval", "i",
		"print the goodput at this interval; 0: never (default on a terminal: 1 s)")
	fl.VarP(&f.bytes, "bytes", "n", "end after this much payload instead of after a time")
	fl.Var(&f.maxBytes, "max-bytes", "end each transfer after this much payload, or after its "+
		"time, whichever is first")
	fl.IntVarP(&f.parallel, "parallel", "P", 1, "number of connections at a time")
	fl.Var(&f.send, "send-buffer", "send buffer of the sender (SO_SNDBUF; default: automatic)")
	fl.Var(&f.receive, "receive-buffer", "receive buffer of the receiver (SO_RCVBUF; default: "+
		"automatic)")
	fl.Var(&f.window, "window", "maximum receive window; automatic sizing stays on "+
		"(TCP_WINDOW_CLAMP)")
	fl.Var(&f.write, "write-size", "bytes of each write by the sender (default: large writes)")
	fl.StringVarP(&f.congestion, "congestion", "C", "", "the sender's congestion control")
	fl.IntVarP(&f.mss, "mss", "M", 0, "maximum segment size of the sender in bytes (TCP_MAXSEG)")
	fl.Var(&f.pacing, "pacing", "maximum rate of the sender, set in its kernel "+
		"(SO_MAX_PACING_RATE)")
	fl.BoolVarP(&f.noDelay, "no-delay", "N", false, "send small writes at once (TCP_NODELAY)")
	fl.Var(&f.writeRate, "write-rate", "limit how fast the sending program writes")
	fl.Var(&f.readRate, "read-rate", "limit how fast the receiving program reads")
	fl.BoolVar(&f.copyData, "copy-data", false, "copy the payload at both ends, as real "+
		"programs do")
	fl.BoolVar(&f.exchange, "exchange", false, "send requests of --write-size, each in two "+
		"writes, and wait for the answer to each request")
	fl.Var((*cmdflag.DSCP)(&f.dscp), "dscp", "DSCP of the sender's packets, a number or a name "+
		"(af11, cs1, ef)")
	fl.StringVar(&f.picture, "picture", "", "draw throughput, bytes in flight and round trips of the transfer to this "+
		"SVG `file`")
	fl.BoolVar(&f.bidir, "bidir", false, "measure both directions at the same time")
	fl.BoolVar(&f.compare.on, "compare", false, "measure two addresses of one far end in turn, "+
		"for example inside and outside a tunnel, and say why they differ")
	fl.IntVar(&f.compare.rounds, "rounds", 2, "with --compare: number of rounds; one round is "+
		"first, second, second, first address")
	fl.BoolVarP(&f.udp.on, "udp", "u", false, "send UDP, and report loss, jitter, order and delay variation")
	f.udp.rate = 10e6
	f.udp.datagram = 1448
	fl.Var(&rateValue{&f.udp.rate, &f.requests}, "rate", "rate of the UDP payload of all streams together; 0: as fast "+
		"as the sender can; with --rr or --crr: requests a second, counted from when they are due")
	fl.BoolVar(&f.udp.capacity, "capacity", false, "with --udp: find the highest rate that "+
		"arrives; fills the path for about 10 s")
	fl.Var(&f.udp.datagram, "datagram", "payload of one UDP datagram")
	history.AddFlags(cmd, true, func(hostID, far string) record.SeriesID {
		return f.path(hostID, far, fl.Changed("rate"))
	})
	return cmd, f
}

// Series returns the key of the series that measure of a far end, with the defaults of the configuration, makes.
func Series(ctx context.Context, file *config.File, hostID, name string) (string, error) {
	cmd, f := command()
	cmd.SetContext(ctx)
	args, err := settings.Apply(cmd, file, []string{name})
	if err != nil {
		return "", err
	}
	return f.path(hostID, args[0], false).Key(), nil
}

// unkeyedRate and unkeyedDatagram are the rate of UDP that keys leave out unless --rate was given, and the payload that
// they always leave out. They stay when the defaults change.
const (
	unkeyedRate     = 10e6
	unkeyedDatagram = 1448
)

// path returns the series that the options belong to; rateGiven says whether --rate was.
func (f *flags) path(hostID, far string, rateGiven bool) record.SeriesID {
	p := f.PeerFlags.Path("measure", hostID, far)
	if f.udp.on {
		p.Protocol = "udp"
	}
	p.Streams = f.parallel
	p.Congestion = f.congestion
	p.MSS = f.mss
	options := record.MeasureOptions{SendBuffer: int64(f.send), ReceiveBuffer: int64(f.receive),
		WriteSize: int64(f.write), PacingBps: float64(f.pacing), Bidir: f.bidir, Capacity: f.udp.capacity, Bind: f.Bind,
		Window: int64(f.window), DSCP: f.dscp, NoDelay: f.noDelay, Exchange: f.exchange, CopyData: f.copyData,
		WriteRateBps: float64(f.writeRate), ReadRateBps: float64(f.readRate)}
	if f.udp.datagram != unkeyedDatagram {
		options.Datagram = int64(f.udp.datagram)
	}
	isLoad := f.requests.wanted()
	if rate := float64(f.udp.rate); (rateGiven || rate != unkeyedRate) && !isLoad {
		options.RateBps = &rate
	}
	p.Others = options.String()
	if isLoad {
		p.Streams = f.requests.concurrency
		p.Others += f.requests.key()
	}
	return p
}

// byReference says whether the sender need not copy: nothing was asked for that depends on copies.
func (f *flags) byReference() bool {
	return !f.copyData && f.send == 0 && f.write == 0 && f.writeRate == 0 && !f.exchange
}

// check refuses options that contradict each other.
func (f *flags) check(cmd *cobra.Command) error {
	if err := f.bothAtOnce(cmd); err != nil {
		return err
	}
	if err := f.compareAlone(cmd); err != nil {
		return err
	}
	if f.requests.wanted() {
		return nil
	}
	if err := f.criteria.check(); err != nil {
		return err
	}
	if err := f.requests.badRate; err != nil {
		return exit.Usage("--rate", err.Error(), "20mbit")
	}
	return f.checkForms()
}

// checkForms refuses output forms that the result cannot have, before anything is measured.
func (f *flags) checkForms() error {
	ext := strings.ToLower(filepath.Ext(f.picture))
	return cmdflag.Check(
		cmdflag.If(f.maxBytes > 0 && f.udp.on, "--max-bytes", "bounds TCP", "--rate and --time bound UDP"),
		cmdflag.If(f.csv && (f.compare.on || f.udp.capacity), "--csv", "a comparison or a search is no table", "--json"),
		cmdflag.If(f.csv && f.stream, "--csv", "is another form than --json-stream", "one of them"),
		cmdflag.If(f.picture != "" && f.bidir, "--picture", "draws one transfer, not two at once", "--direction both"),
		cmdflag.If(f.picture == "-" && f.Direction == "both", "--picture", "standard output takes one picture",
			"a file's name, which both get"),
		cmdflag.If(f.picture != "" && f.udp.on, "--picture", "draws TCP", "leave it out with --udp"),
		cmdflag.If(slices.Contains([]string{".png", ".jpg", ".jpeg", ".gif", ".pdf", ".webp"}, ext), "--picture",
			"pictures are SVG, not "+strings.TrimPrefix(ext, "."), strings.TrimSuffix(f.picture,
				filepath.Ext(f.picture))+".svg"),
	)
}

// bothAtOnce makes --bidir ask for both directions.
func (f *flags) bothAtOnce(cmd *cobra.Command) error {
	if !f.bidir {
		return nil
	}
	if err := cmdflag.Check(
		cmdflag.If(cmd.Flags().Changed("direction") && f.Direction != "both", "--bidir", "means both directions, not "+
			f.Direction, "one of --bidir and --direction"),
		cmdflag.If(f.udp.capacity, "--bidir", "leaves neither direction its capacity",
			"--capacity --direction both, one after the other"),
	); err != nil {
		return err
	}
	f.Direction = "both"
	return nil
}

// specs are the transfers to carry out, one for each direction.
func (f *flags) specs() ([]transfer.Spec, error) {
	directions, err := f.Directions()
	if err != nil {
		return nil, err
	}
	if _, err := f.Route(); err != nil {
		return nil, err
	}
	if err := cmdflag.Check(
		cmdflag.If(f.parallel < 1, "--parallel", fmt.Sprintf("%d connections carry nothing", f.parallel), "1 or more"),
		cmdflag.If(f.time <= 0, "--time", fmt.Sprintf("%v is no time to measure in", f.time), "5s"),
		cmdflag.If(f.interval != 0 && f.interval < cmdflag.Duration(minInterval), "--interval",
			fmt.Sprintf("%v is too short for a result", time.Duration(f.interval)),
			"100ms or more, or 0 for none"),
	); err != nil {
		return nil, err
	}
	sender := transfer.Socket{SendBuffer: int(f.send), Congestion: f.congestion, MSS: f.mss, NoDelay: f.noDelay,
		TOS: f.dscp << 2, PacingBps: float64(f.pacing)}
	receiver := transfer.Socket{ReceiveBuffer: int(f.receive), Clamp: int(f.window), NoDelay: f.noDelay}
	var specs []transfer.Spec
	for _, d := range directions {
		s := transfer.Spec{Direction: d, Near: sender, Far: receiver, Streams: f.parallel, Time: f.time,
			Bytes:   int64(f.bytes),
			Latency: !f.bidir || d == transfer.Up, // of one of two that run at once: it is the same path
			Program: transfer.Program{WriteBytes: int(f.write), WriteBps: float64(f.writeRate), ReadBps: float64(f.readRate),
				RequestResponse: f.exchange, ByReference: f.byReference(), CopyReceived: f.copyData}}
		if d == transfer.Down {
			s.Near = receiver
			s.Far = sender
		}
		if s.Bytes > 0 {
			s.Time = 0
		}
		if most := int64(f.maxBytes); most > 0 && (s.Bytes == 0 || s.Bytes > most) {
			s.Bytes = most
		}
		specs = append(specs, s)
	}
	return specs, nil
}
