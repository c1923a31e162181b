// Package iperf3 is the command iperf3: it accepts iperf3's command line and prints its output.
package iperf3

import (
	"cmp"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fullpipe-net/fullpipe/internal/build"
	"github.com/fullpipe-net/fullpipe/internal/cli/cmdflag"
	"github.com/fullpipe-net/fullpipe/internal/cli/exit"
	"github.com/fullpipe-net/fullpipe/internal/iperf3"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// flags are iperf3's command-line options.
type flags struct {
	client          string
	port            uint16
	time            int
	bytes, blocks   units.Size
	bitrate         string
	fqRate          units.Rate
	streams         int
	reverse, both   bool
	udp             bool
	length, window  units.Size
	mss, omit, tos  int
	congestion      string
	interval        float64
	format          string
	title, extra    string
	serverOutput    bool
	bind, device    string
	clientPort      int
	only4, only6    bool
	noDelay         bool
	zeroCopy        bool
	repeating       bool
	dontFragment    bool
	counters64      bool
	verbose, stream bool
	timeout         int
	login           loginFlags

	dscp              cmdflag.DSCP
	version, skipCopy bool
	ignored           bool   // an option without effect
	ignoredText       string // the value of an option without effect
	pacingTimer       units.Size
	receiveTimeoutMs  int // ms
	pidFile, logFile  string
	timestamps        string
	server            serverFlags
}

// New returns the command iperf3.
func New() *cobra.Command {
	f := &flags{}
	cmd := &cobra.Command{
		Use:   "iperf3 {-c HOST | -s} [options]",
		Short: "iperf3's command line and output, plus the limiter of the test",
		Long: `iperf3 accepts iperf3's command line, works with any iperf3 server or client
and prints iperf3's output, so scripts and programs that parse it keep working. --json adds
one object, "fullpipe": the limiter of each direction, the evidence and what to change.
Without --json that goes to standard error. If the program's file is named iperf3, it always
runs this command. Each interval is printed as soon as it ends, into a pipe too. With -s it
runs as a server for one test at a time, like iperf3 -s. fullpipe serve --iperf3 serves many
at once, with limits, and fullpipe's own clients too.

Options of iperf3 that are refused, and why:
` + missingText(),
		Example: `  fullpipe iperf3 -c server.example.net -t 10 -P 4
  fullpipe iperf3 -c server.example.net -R -J
  fullpipe iperf3 -s -1 -J
  ln -s fullpipe /usr/local/bin/iperf3`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return exit.Usage(args[0], "iperf3 takes options only", "-c "+args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	cmd.SetFlagErrorFunc(flagError)
	fl := cmd.Flags()
	fl.SortFlags = false
	fl.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		return pflag.NormalizedName(cmp.Or(oldNames[name], name))
	})
	for _, group := range []struct {
		role string
		add  func(*pflag.FlagSet)
	}{{"", f.addCommon}, {"client", f.addClient}, {"server", f.server.add}, {"none", addMissing}} {
		some := pflag.NewFlagSet("", pflag.ContinueOnError)
		some.SortFlags = false
		group.add(some)
		some.VisitAll(func(flag *pflag.Flag) {
			flag.Annotations = map[string][]string{iperf3Role: {group.role}}
			fl.AddFlag(flag)
		})
	}
	return cmd
}

// iperf3Role is the annotation that says which role supports a flag: "client", "server", "none", or "" for both.
const iperf3Role = "iperf3-role"

// addCommon adds the flags of client and server.
func (f *flags) addCommon(fl *pflag.FlagSet) {
	fl.Uint16VarP(&f.port, "port", "p", transfer.DefaultPort, "the server's `port`")
	fl.StringVarP(&f.format, "format", "f", "", "unit of rates: k m g t for bits, K M G T for bytes")
	fl.Float64VarP(&f.interval, "interval", "i", 1, "seconds between two reports; 0 for none")
	fl.StringVarP(&f.pidFile, "pidfile", "I", "", "write the process id to this file")
	fl.StringVarP(&f.bind, "bind", "B", "", "address of this host; for a client an interface too, or ADDRESS%INTERFACE")
	fl.BoolVarP(&f.only4, "version4", "4", false, "IPv4 only")
	fl.BoolVarP(&f.only6, "version6", "6", false, "IPv6 only")
	fl.BoolVar(&f.stream, "json-stream", false, "one JSON object per line: start, intervals, end")
	fl.StringVar(&f.logFile, "logfile", "", "append the output to this file")
	fl.StringVar(&f.timestamps, "timestamps", "", "begin each line with the time, in strftime's format")
	fl.Lookup("timestamps").NoOptDefVal = "%c "
	fl.BoolVarP(&f.version, "version", "v", false, "print the version of iperf3 that this "+
		"command imitates, and exit")
	fl.IntVar(&f.receiveTimeoutMs, "rcv-timeout", 120000, "milliseconds without data after which the receiver ends a test")
	fl.BoolVar(&f.ignored, "forceflush", false, ignoredHelp+"each line is written immediately")
	fl.BoolVarP(&f.verbose, "verbose", "V", false, "print more details and the CPU time")
	fl.StringVar(&f.ignoredText, "cntl-ka", "", ignoredHelp+"control connections always use keepalive")
	fl.Lookup("cntl-ka").NoOptDefVal = " "
	f.login.pkcs1Flag(fl)
}

// oldNames are iperf3's earlier names of options, which it accepts too.
var oldNames = map[string]string{"bandwidth": "bitrate", "linux-congestion": "congestion"}

const ignoredHelp = "accepted for compatibility: "

// addClient adds the client's flags.
func (f *flags) addClient(fl *pflag.FlagSet) {
	fl.StringVarP(&f.client, "client", "c", "", "run as client, with the server at this host, or HOST%INTERFACE")
	fl.StringVar(&f.device, "bind-dev", "", "the interface to use")
	fl.IntVar(&f.clientPort, "cport", 0, "the first stream's port here; each further stream has the next one")
	fl.IntVarP(&f.time, "time", "t", 10, "seconds to transmit for")
	fl.VarP(&f.bytes, "bytes", "n", "bytes to transmit, instead of -t; K is 1024")
	fl.VarP(&f.blocks, "blockcount", "k", "blocks to transmit, instead of -t or -n")
	fl.StringVarP(&f.bitrate, "bitrate", "b", "", "target bitrate of each stream in bit/s, 0 for none; K is 1000; "+
		"/N: by bursts of N blocks (default 1048576 for UDP)")
	fl.Var(&f.fqRate, "fq-rate", "pacing of each stream in the kernel, in bit/s")
	fl.Bool("no-fq-socket-pacing", false, ignoredHelp+"without --fq-rate nothing is paced")
	fl.IntVarP(&f.streams, "parallel", "P", 1, "number of streams")
	fl.BoolVarP(&f.reverse, "reverse", "R", false, "the server sends")
	fl.BoolVar(&f.both, "bidir", false, "both send")
	fl.BoolVarP(&f.udp, "udp", "u", false, "UDP")
	fl.VarP(&f.length, "length", "l", "bytes of one write or datagram (default 128K, UDP: the MSS)")
	fl.VarP(&f.window, "window", "w", "size of both ends' socket buffers")
	fl.IntVarP(&f.mss, "set-mss", "M", 0, "TCP's maximum segment size")
	fl.BoolVarP(&f.noDelay, "no-delay", "N", false, "TCP_NODELAY")
	fl.StringVarP(&f.congestion, "congestion", "C", "", "TCP congestion control")
	fl.IntVarP(&f.omit, "omit", "O", 0, "leave out the first seconds from the result")
	fl.VarP((*cNumber)(&f.tos), "tos", "S", "traffic class byte of the IP header: decimal, 0x "+
		"for hexadecimal, 0 for octal")
	fl.Var(&f.dscp, "dscp", "DSCP, the upper six bits of that byte: a number or a name (af11, "+
		"cs1, ef)")
	fl.StringVarP(&f.title, "title", "T", "", "prefix of every line of text")
	fl.StringVar(&f.extra, "extra-data", "", "text to add to the server's JSON")
	fl.BoolVar(&f.serverOutput, "get-server-output", false, "print the server's output too")
	fl.IntVar(&f.timeout, "connect-timeout", 0, "milliseconds to wait for the control connection")
	fl.BoolVar(&f.dontFragment, "dont-fragment", false, "UDP: forbid fragments")
	fl.BoolVarP(&f.zeroCopy, "zerocopy", "Z", false, "the sender passes payload by reference")
	fl.BoolVar(&f.skipCopy, "skip-rx-copy", false, ignoredHelp+"this receiver never copies payload")
	fl.Var(&f.pacingTimer, "pacing-timer", ignoredHelp+"pacing has its own timer")
	fl.BoolVar(&f.repeating, "repeating-payload", false, "accepted for compatibility, sent to the server")
	fl.BoolVar(&f.counters64, "udp-counters-64bit", false, ignoredHelp+"counters always have 64 bits")
	f.login.add(fl)
}

// Name is iperf3's program name.
const Name = "iperf3"

// CalledAs inserts the command iperf3 if the program was called by that name.
func CalledAs(program string, args []string) []string {
	name := strings.TrimSuffix(program[strings.LastIndexAny(program, `/\`)+1:], ".exe")
	if name == Name {
		return append([]string{Name}, args...)
	}
	return args
}

// params returns the protocol's parameters of the command line.
func (f *flags) params(cmd *cobra.Command) (p iperf3.Params, err error) {
	given := cmd.Flags().Changed
	switch {
	case f.reverse && f.both:
		return p, usageError("cannot be both reverse and bidirectional", "-R or --bidir")
	case given("bytes") && given("blockcount") || given("time") && (given("bytes") || given("blockcount")):
		return p, usageError("only one test end condition (-t, -n, -k) may be specified", "one of them")
	case given("cport") && (f.clientPort < 1 || f.clientPort+f.needsPorts()-1 > 65535):
		return p, usageError(iperf3BadPort, "--cport such that the last stream's port is at most 65535")
	case f.tos < 0 || f.tos > 255:
		return p, usageError("bad TOS value (must be between 0 and 255 inclusive)", "-S 0x20")
	}
	if given("dscp") {
		f.tos = int(f.dscp) << 2 // the upper six bits
	}
	bandwidth, burst, err := f.rate()
	if err != nil {
		return p, err
	}
	p = iperf3.Params{UDP: f.udp, Omit: f.omit, Time: f.time, Num: int64(f.bytes), Blocks: int64(f.blocks), MSS: f.mss,
		NoDelay: f.noDelay,
		Streams: f.streams, Reverse: f.reverse, Both: f.both, Window: int(f.window), Len: int(f.length), Bandwidth: bandwidth,
		Burst: burst, FQRate: int64(f.fqRate), PacingTimer: 1000, TOS: f.tos, Title: f.title, Extra: f.extra,
		Congestion:   f.congestion,
		ServerOutput: f.serverOutput, Repeating: f.repeating, DontFragment: f.dontFragment, SkipRxCopy: f.skipCopy,
		ZeroCopy:      f.zeroCopy,
		ClientVersion: "3.12"}
	if p.Num > 0 || p.Blocks > 0 {
		p.Time = 0
	}
	switch {
	case p.UDP:
		p.Counters64 = true
	case p.Len == 0:
		p.Len = 128 << 10
	}
	if err := iperf3.CheckParams(p); err != nil {
		return p, usageError(exit.Plain(err), "fullpipe iperf3 --help")
	}
	p.Auth, err = f.login.token(cmd)
	return p, err
}

// needsPorts returns the number of local ports that the streams need.
func (f *flags) needsPorts() int {
	if f.both {
		return 2 * f.streams
	}
	return f.streams
}

// rate parses -b: bit/s and the number of blocks in a burst.
func (f *flags) rate() (bps int64, burst int, err error) {
	if f.bitrate == "" {
		if f.udp {
			return 1 << 20, 0, nil // iperf3's default
		}
		return 0, 0, nil
	}
	text, blocks, given := strings.Cut(f.bitrate, "/")
	if given {
		burst, err = strconv.Atoi(blocks)
		if err != nil || burst < 1 || burst > iperf3.MaxBurst {
			return 0, 0, usageError(fmt.Sprintf("invalid burst count (maximum = %d)", iperf3.MaxBurst), "-b 100M/10")
		}
	}
	if v, err := strconv.ParseFloat(text, 64); err == nil && v >= 0 && v < 1e15 {
		return int64(v), burst, nil
	}
	rate, err := units.ParseRate(text)
	if err != nil {
		return 0, 0, exit.Usage("-b", exit.Plain(err), "-b 100M")
	}
	return int64(rate), burst, nil
}

func (f *flags) reportInterval() time.Duration { return units.Seconds(f.interval) }

// systemInfo returns the text of uname -a where it exists.
func systemInfo() string {
	var parts []string
	for _, name := range []string{"ostype", "hostname", "osrelease", "version"} {
		if text, err := os.ReadFile("/proc/sys/kernel/" + name); err == nil {
			parts = append(parts, strings.TrimSpace(string(text)))
		}
	}
	if len(parts) == 0 {
		return build.This().System
	}
	return strings.Join(append(parts, machine()), " ")
}
