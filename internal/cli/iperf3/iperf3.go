// Package iperf3 takes iperf3's command line and prints what iperf3 prints.
package iperf3

import (
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
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// iperf3Flags are iperf3's own command line.
type iperf3Flags struct {
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
	login           iperf3Login

	dscp              cmdflag.DSCP
	version, skipCopy bool
	taken             bool   // an option that needs nothing here
	takenText         string // the value of such an option
	pacingTimer       units.Size
	quiet             int // ms
	pidFile, logFile  string
	timestamps        string
	server            iperf3Server
}

// New returns the command iperf3.
func New() *cobra.Command {
	f := &iperf3Flags{}
	cmd := &cobra.Command{
		Use:   "iperf3 {-c HOST | -s} [options]",
		Short: "iperf3's own command line and output, with what limited the test",
		Long: `iperf3 takes the command line of iperf3, talks to any iperf3 server or client and prints
what iperf3 prints, so that scripts and programs that read it go on. With --json there is
one object more, "fullpipe": what limited each direction, the evidence and what to change;
without, that is said on standard error. Called by the name iperf3, this program is this
command. Each interval is printed when it is over, also into a pipe.
With -s it is the server and takes one test at a time, as iperf3 does; fullpipe serve
--iperf3 takes many, with bounds, and fullpipe's own clients too.`,
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
		RunE: func(cmd *cobra.Command, _ []string) error { return f.begin(cmd) },
	}
	cmd.SetFlagErrorFunc(iperf3FlagError)
	fl := cmd.Flags()
	fl.SortFlags = false
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

// iperf3Role annotates a flag with whose it is: "client", "server", "none" that is here, or
// "" of both.
const iperf3Role = "iperf3-role"

// addCommon are the flags of client and server.
func (f *iperf3Flags) addCommon(fl *pflag.FlagSet) {
	fl.Uint16VarP(&f.port, "port", "p", 5201, "the server's `port`")
	fl.StringVarP(&f.format, "format", "f", "", "unit of rates: k m g t for bits, K M G T for bytes")
	fl.Float64VarP(&f.interval, "interval", "i", 1, "seconds between two reports; 0 for none")
	fl.StringVarP(&f.pidFile, "pidfile", "I", "", "write the process's number to this file")
	fl.StringVarP(&f.bind, "bind", "B", "", "address of this host; for a client an interface too, or ADDRESS%INTERFACE")
	fl.BoolVarP(&f.only4, "version4", "4", false, "IPv4 only")
	fl.BoolVarP(&f.only6, "version6", "6", false, "IPv6 only")
	fl.BoolVar(&f.stream, "json-stream", false, "one JSON object a line: start, intervals, end")
	fl.StringVar(&f.logFile, "logfile", "", "append to this file what is printed")
	fl.StringVar(&f.timestamps, "timestamps", "", "begin each line with the time, in strftime's words")
	fl.Lookup("timestamps").NoOptDefVal = "%c "
	fl.BoolVarP(&f.version, "version", "v", false, "say which iperf3 this keeps to, and end")
	fl.IntVar(&f.quiet, "rcv-timeout", 120000, "milliseconds without data that end a test, at the end that receives")
	fl.BoolVar(&f.taken, "forceflush", false, takenText+"each line is written at once")
	fl.BoolVarP(&f.verbose, "verbose", "V", false, "say more of the test, and what it spent")
	fl.StringVar(&f.takenText, "cntl-ka", "", takenText+"control connections are always watched")
	fl.Lookup("cntl-ka").NoOptDefVal = " "
	f.login.pkcs1Flag(fl)
}

const takenText = "taken for iperf3's sake: "

// addClient are the client's own.
func (f *iperf3Flags) addClient(fl *pflag.FlagSet) {
	fl.StringVarP(&f.client, "client", "c", "", "run as client, with the server at this host, or HOST%INTERFACE")
	fl.StringVar(&f.device, "bind-dev", "", "the interface to use")
	fl.IntVar(&f.clientPort, "cport", 0, "the first stream's port here; each further stream has the next one")
	fl.IntVarP(&f.time, "time", "t", 10, "seconds to transmit for")
	fl.VarP(&f.bytes, "bytes", "n", "bytes to transmit, instead of -t; K is 1024")
	fl.VarP(&f.blocks, "blockcount", "k", "blocks to transmit, instead of -t or -n")
	fl.StringVarP(&f.bitrate, "bitrate", "b", "", "target bitrate of each stream in bit/s, 0 for none; K is 1000; "+
		"/N: by bursts of N blocks (default 1048576 for UDP)")
	fl.Var(&f.fqRate, "fq-rate", "pacing of each stream in the kernel, in bit/s")
	fl.IntVarP(&f.streams, "parallel", "P", 1, "number of streams")
	fl.BoolVarP(&f.reverse, "reverse", "R", false, "the server sends")
	fl.BoolVar(&f.both, "bidir", false, "both send")
	fl.BoolVarP(&f.udp, "udp", "u", false, "UDP")
	fl.VarP(&f.length, "length", "l", "bytes of one write or datagram (default 128K, for UDP as segments are)")
	fl.VarP(&f.window, "window", "w", "size of both ends' socket buffers")
	fl.IntVarP(&f.mss, "set-mss", "M", 0, "TCP's maximum segment size")
	fl.BoolVarP(&f.noDelay, "no-delay", "N", false, "TCP_NODELAY")
	fl.StringVarP(&f.congestion, "congestion", "C", "", "TCP congestion control")
	fl.IntVarP(&f.omit, "omit", "O", 0, "seconds at the start that do not count")
	fl.VarP((*iperf3Number)(&f.tos), "tos", "S", "the IP header's traffic class byte; 0x and 0 before it as in C")
	fl.Var(&f.dscp, "dscp", "the upper six bits of that byte, a number or a name (af11, cs1, ef)")
	fl.StringVarP(&f.title, "title", "T", "", "prefix of every line of text")
	fl.StringVar(&f.extra, "extra-data", "", "text for the server's JSON")
	fl.BoolVar(&f.serverOutput, "get-server-output", false, "print the server's output too")
	fl.IntVar(&f.timeout, "connect-timeout", 0, "milliseconds to wait for the control connection")
	fl.BoolVar(&f.dontFragment, "dont-fragment", false, "UDP: forbid fragments")
	fl.BoolVarP(&f.zeroCopy, "zerocopy", "Z", false, takenText+"this sender needs no copy anyway")
	fl.BoolVar(&f.skipCopy, "skip-rx-copy", false, takenText+"this receiver copies nothing anyway")
	fl.Var(&f.pacingTimer, "pacing-timer", takenText+"pacing keeps its own clock")
	fl.BoolVar(&f.repeating, "repeating-payload", false, "taken for iperf3's sake, and told the server")
	fl.BoolVar(&f.counters64, "udp-counters-64bit", false, takenText+"counters always have 64 bits")
	f.login.add(fl)
}

// Name is the name by which this program is iperf3.
const Name = "iperf3"

// CalledAs puts the command first where this program was called by iperf3's name.
func CalledAs(program string, args []string) []string {
	name := strings.TrimSuffix(program[strings.LastIndexAny(program, `/\`)+1:], ".exe")
	if name == Name {
		return append([]string{Name}, args...)
	}
	return args
}

// params are the test in the protocol's words.
func (f *iperf3Flags) params(cmd *cobra.Command) (p iperf3.Params, err error) {
	given := cmd.Flags().Changed
	switch {
	case f.reverse && f.both:
		return p, iperf3Usage("cannot be both reverse and bidirectional", "-R or --bidir")
	case given("bytes") && given("blockcount") || given("time") && (given("bytes") || given("blockcount")):
		return p, iperf3Usage("only one test end condition (-t, -n, -k) may be specified", "one of them")
	case given("cport") && (f.clientPort < 1 || f.clientPort+f.needsPorts()-1 > 65535):
		return p, iperf3Usage(iperf3BadPort, "--cport of which the last stream's port is 65535 or less")
	case f.tos < 0 || f.tos > 255:
		return p, iperf3Usage("bad TOS value (must be between 0 and 255 inclusive)", "-S 0x20")
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
		return p, iperf3Usage(exit.Plain(err), "fullpipe iperf3 --help")
	}
	p.Auth, err = f.login.token(cmd)
	return p, err
}

// needsPorts is how many ports the streams have here.
func (f *iperf3Flags) needsPorts() int {
	if f.both {
		return 2 * f.streams
	}
	return f.streams
}

// rate is -b: bit/s, and how many blocks are sent at once.
func (f *iperf3Flags) rate() (bps int64, burst int, err error) {
	if f.bitrate == "" {
		if f.udp {
			return 1 << 20, 0, nil // iperf3's own default
		}
		return 0, 0, nil
	}
	text, blocks, given := strings.Cut(f.bitrate, "/")
	if given {
		if burst, err = strconv.Atoi(blocks); err != nil || burst < 1 || burst > iperf3.MaxBurst {
			return 0, 0, iperf3Usage(fmt.Sprintf("invalid burst count (maximum = %d)", iperf3.MaxBurst), "-b 100M/10")
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

func (f *iperf3Flags) every() time.Duration { return units.Seconds(f.interval) }

// systemInfo is what uname -a says where there is one.
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
