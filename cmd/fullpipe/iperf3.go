package main

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

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
	bind            string
	only4, only6    bool
	noDelay         bool
	zeroCopy        bool
	repeating       bool
	dontFragment    bool
	counters64      bool
	verbose, stream bool
	timeout         int
	login           iperf3Login

	dscp              string
	version, skipCopy bool
	taken             bool   // what needs nothing here
	takenText         string // the same
	pacingTimer       units.Size
	quiet             int // ms
	pidFile, logFile  string
	timestamps        string
	server            iperf3Server
}

func newIperf3() *cobra.Command {
	f := &iperf3Flags{}
	cmd := &cobra.Command{
		Use:   "iperf3 {-c HOST | -s} [options]",
		Short: "iperf3's own command line and output, with what limited the test",
		Long: `iperf3 takes the command line of iperf3, talks to any iperf3 server or client and prints
what iperf3 prints, so that scripts and programs that read it go on. With --json there is
one object more, "fullpipe": what limited each direction, the evidence and what to change;
without, that is said on standard error. Called by the name iperf3, this program is this
command. The text of the intervals comes at the end of the test.
With -s it is the server and takes one test at a time, as iperf3 does; fullpipe serve
--iperf3 takes many, with bounds, and fullpipe's own clients too.`,
		Example: `  fullpipe iperf3 -c server.example.net -t 10 -P 4
  fullpipe iperf3 -c server.example.net -R -J
  fullpipe iperf3 -s -1 -J
  ln -s fullpipe /usr/local/bin/iperf3`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return &usageError{args[0], "iperf3 takes options only", "-c " + args[0]}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return f.begin(cmd) },
	}
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
	fl.Uint16VarP(&f.port, "port", "p", 5201, "the server's port")
	fl.StringVarP(&f.format, "format", "f", "", "unit of rates: k m g t for bits, K M G T for bytes")
	fl.Float64VarP(&f.interval, "interval", "i", 1, "seconds between two reports; 0 for none")
	fl.StringVarP(&f.pidFile, "pidfile", "I", "", "write the process's number to this file")
	fl.StringVarP(&f.bind, "bind", "B", "", "address of this host; for a client an interface too")
	fl.BoolVarP(&f.only4, "version4", "4", false, "IPv4 only")
	fl.BoolVarP(&f.only6, "version6", "6", false, "IPv6 only")
	fl.BoolVar(&f.stream, "json-stream", false, "one JSON object a line: start, intervals, end")
	fl.StringVar(&f.logFile, "logfile", "", "append to this file what is printed")
	fl.StringVar(&f.timestamps, "timestamps", "", "begin each line with the time, in strftime's words")
	fl.Lookup("timestamps").NoOptDefVal = "%c "
	fl.BoolVarP(&f.version, "version", "v", false, "say which iperf3 this keeps to, and end")
	fl.IntVar(&f.quiet, "rcv-timeout", 120000, "server: milliseconds without data that end a test")
	fl.BoolVar(&f.taken, "forceflush", false, takenText+"every line is written at once")
	fl.BoolVarP(&f.verbose, "verbose", "V", false, "taken for iperf3's sake")
	fl.StringVar(&f.takenText, "cntl-ka", "", takenText+"control connections are always watched")
	fl.Lookup("cntl-ka").NoOptDefVal = " "
	f.login.pkcs1Flag(fl)
}

const takenText = "taken for iperf3's sake: "

// addClient are the client's own.
func (f *iperf3Flags) addClient(fl *pflag.FlagSet) {
	fl.StringVarP(&f.client, "client", "c", "", "run as client, with the server at this host")
	fl.IntVarP(&f.time, "time", "t", 10, "seconds to transmit for")
	fl.VarP(&f.bytes, "bytes", "n", "bytes to transmit, instead of -t; K is 1024")
	fl.VarP(&f.blocks, "blockcount", "k", "blocks to transmit, instead of -t or -n")
	fl.StringVarP(&f.bitrate, "bitrate", "b", "", "target bitrate of each stream in bit/s, 0 for none; K is 1000 "+
		"(default 1048576 for UDP)")
	fl.Var(&f.fqRate, "fq-rate", "pacing of each stream in the kernel, in bit/s")
	fl.IntVarP(&f.streams, "parallel", "P", 1, "number of streams")
	fl.BoolVarP(&f.reverse, "reverse", "R", false, "the server sends")
	fl.BoolVar(&f.both, "bidir", false, "both send")
	fl.BoolVarP(&f.udp, "udp", "u", false, "UDP")
	fl.VarP(&f.length, "length", "l", "bytes of one write or datagram (default 128K, 1448 for UDP)")
	fl.VarP(&f.window, "window", "w", "size of both ends' socket buffers")
	fl.IntVarP(&f.mss, "set-mss", "M", 0, "TCP's maximum segment size")
	fl.BoolVarP(&f.noDelay, "no-delay", "N", false, "TCP_NODELAY")
	fl.StringVarP(&f.congestion, "congestion", "C", "", "TCP congestion control")
	fl.IntVarP(&f.omit, "omit", "O", 0, "seconds at the start that do not count")
	fl.VarP((*iperf3Number)(&f.tos), "tos", "S", "the IP header's traffic class byte; 0x and 0 before it as in C")
	fl.StringVar(&f.dscp, "dscp", "", "the upper six bits of that byte, a number or a name (af11, cs1, ef)")
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

// iperf3Name is the name by which this program is iperf3.
const iperf3Name = "iperf3"

// calledAs puts the command first where this program was called by iperf3's name.
func calledAs(program string, args []string) []string {
	name := strings.TrimSuffix(program[strings.LastIndexAny(program, `/\`)+1:], ".exe")
	if name == iperf3Name {
		return append([]string{iperf3Name}, args...)
	}
	return args
}

// params are the test in the protocol's words.
func (f *iperf3Flags) params(cmd *cobra.Command) (p iperf3.Params, err error) {
	given := cmd.Flags().Changed
	switch {
	case f.reverse && f.both:
		return p, &usageError{"-R", "--bidir sends both ways already", "one of them"}
	case given("bytes") && given("blockcount") || given("time") && (given("bytes") || given("blockcount")):
		return p, &usageError{"-n", "-t, -n and -k exclude each other", "one of them"}
	case f.tos < 0 || f.tos > 255:
		return p, &usageError{"-S", fmt.Sprintf("%d is no byte", f.tos), "0 to 255"}
	}
	if f.dscp != "" {
		if f.tos, err = trafficClass(f.dscp); err != nil {
			return p, err
		}
	}
	bandwidth, err := f.rate()
	if err != nil {
		return p, err
	}
	p = iperf3.Params{UDP: f.udp, Omit: f.omit, Time: f.time, Num: int64(f.bytes), Blocks: int64(f.blocks), MSS: f.mss,
		NoDelay: f.noDelay,
		Streams: f.streams, Reverse: f.reverse, Both: f.both, Window: int(f.window), Len: int(f.length), Bandwidth: bandwidth,
		FQRate: int64(f.fqRate), PacingTimer: 1000, TOS: f.tos, Title: f.title, Extra: f.extra, Congestion: f.congestion,
		ServerOutput: f.serverOutput, Repeating: f.repeating, DontFragment: f.dontFragment, SkipRxCopy: f.skipCopy,
		ClientVersion: "3.12"}
	if p.Num > 0 || p.Blocks > 0 {
		p.Time = 0
	}
	if p.Len == 0 {
		p.Len = 128 << 10
		if p.UDP {
			p.Len = 1448
		}
	}
	if p.UDP {
		p.Counters64 = true
	}
	if err := iperf3.CheckParams(p); err != nil {
		return p, &usageError{"iperf3", plain(err), "fullpipe iperf3 --help"}
	}
	p.Auth, err = f.login.token(cmd)
	return p, err
}

// rate is -b in bit/s.
func (f *iperf3Flags) rate() (int64, error) {
	if f.bitrate == "" {
		if f.udp {
			return 1 << 20, nil // iperf3's own default
		}
		return 0, nil
	}
	text, burst, _ := strings.Cut(f.bitrate, "/")
	if burst != "" {
		return 0, &usageError{"-b", "bursts are not paced here", "-b " + text}
	}
	if v, err := strconv.ParseFloat(text, 64); err == nil && v >= 0 && v < 1e15 {
		return int64(v), nil
	}
	rate, err := units.ParseRate(text)
	if err != nil {
		return 0, &usageError{"-b", plain(err), "-b 100M"}
	}
	return int64(rate), nil
}

func (f *iperf3Flags) address() string {
	return net.JoinHostPort(strings.Trim(f.client, "[]"), strconv.Itoa(int(f.port)))
}

func (f *iperf3Flags) every() time.Duration { return time.Duration(f.interval * float64(time.Second)) }

// systemInfo is what uname -a says where there is one.
func systemInfo() string {
	var parts []string
	for _, name := range []string{"ostype", "hostname", "osrelease", "version"} {
		if text, err := os.ReadFile("/proc/sys/kernel/" + name); err == nil {
			parts = append(parts, strings.TrimSpace(string(text)))
		}
	}
	if len(parts) == 0 {
		return thisBuild().System
	}
	return strings.Join(append(parts, machine()), " ")
}
