package serve

import (
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/fullpipe-net/fullpipe/internal/cli/cmdflag"
	"github.com/fullpipe-net/fullpipe/internal/cli/exit"
	"github.com/fullpipe-net/fullpipe/internal/iperf2"
	"github.com/fullpipe-net/fullpipe/internal/iperf3"
	"github.com/fullpipe-net/fullpipe/internal/probe"
	"github.com/fullpipe-net/fullpipe/internal/server"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// limits are a server's limits for clients.
type limits struct {
	clients, tests, perHost, streams int
	time                             time.Duration
	bytes, buffers                   units.Size
	rate                             units.Rate // 0: unlimited
}

func (l *limits) add(fl *pflag.FlagSet) {
	*l = limits{clients: 64, tests: 64, streams: 512, time: time.Hour, bytes: 1 << 42, buffers: 1 << 30}
	fl.IntVar(&l.clients, "max-clients", l.clients, "maximum number of clients with the key at "+
		"a time; each runs one test at a time")
	fl.IntVar(&l.tests, "max-tests", l.tests, "maximum number of iperf3 tests at a time; UDP "+
		"tests of clients with the key are counted separately")
	fl.IntVar(&l.perHost, "max-tests-per-host", 0, "concurrent tests of one host without the key (an IPv4 address or "+
		"IPv6 /64); 0: a quarter of --max-tests")
	fl.IntVar(&l.streams, "max-streams", l.streams, "maximum number of data connections at a "+
		"time, each with a thread (fullpipe and iperf3 tests are counted separately)")
	fl.Var((*cmdflag.Period)(&l.time), "max-time", "maximum duration of one test")
	fl.Var(&l.bytes, "max-bytes", "maximum payload of one test in each direction")
	fl.Var(&l.rate, "max-rate", "maximum rate of one test in each direction; tests without a "+
		"rate are refused; 0: unlimited")
	fl.Var(&l.buffers, "max-buffers", "maximum sum of the socket buffers that all tests "+
		"request (fullpipe and iperf3 tests are counted separately); automatic buffers are "+
		"limited by the system")
}

func (l *limits) check() error {
	for _, n := range []struct {
		flag  string
		value int
	}{{"--max-clients", l.clients}, {"--max-tests", l.tests}, {"--max-streams", l.streams}} {
		if n.value < 1 {
			return exit.Usage(n.flag, "no client could run a test", "1 or more")
		}
	}
	return cmdflag.Check(
		cmdflag.If(l.perHost < 0, "--max-tests-per-host", "no client could run a test",
			"1 or more, or 0 for a quarter of --max-tests"),
		cmdflag.If(l.time < time.Second, "--max-time", "iperf3's protocol counts in seconds", "1s or more"),
		cmdflag.If(l.bytes < 1, "--max-bytes", "no test could transfer data", "a size, as in 10GB"),
		cmdflag.If(l.buffers < 1, "--max-buffers", "no window could be tried", "a size, as in 1GiB"),
		cmdflag.If(l.rate < 0, "--max-rate", "is negative", "a rate, as in 1gbit"),
	)
}

// fitFileLimit reduces the limits to the process's open-file limit. A data connection needs a socket and a file
// for its thread. There are three kinds of tests: of unauthenticated clients, and two of key holders.
func (l *limits) fitFileLimit(files int) (note string) {
	most := max(files/10, 1)
	if files == 0 || l.streams <= most {
		return ""
	}
	note = fmt.Sprintf("this process may open %d files, so each protocol carries %d data connections at a time and not "+
		"%d (--max-streams); "+
		"ulimit -n or systemd's LimitNOFILE allows more", files, most, l.streams)
	l.streams = most
	return note
}

// apply sets the limits of both protocols' servers.
func (l *limits) apply(native *server.Config, iperf3Server *iperf3.Server) {
	native.Clients = l.clients
	native.Streams = l.streams
	native.Buffers = int64(l.buffers)
	native.Limits = probe.DefaultLimits()
	native.Limits.Time = l.time
	native.Limits.Bytes = int64(l.bytes)
	native.Limits.Bps = float64(l.rate)
	native.Limits.Streams = min(native.Limits.Streams, l.streams)
	iperf3Server.MaxTests = l.tests
	iperf3Server.MaxTestsPerHost = l.perHost
	iperf3Server.MaxStreams = l.streams
	iperf3Server.MaxBuffers = int64(l.buffers)
	iperf3Server.MaxTime = l.time
	iperf3Server.MaxBytes = int64(l.bytes)
	iperf3Server.MaxBps = float64(l.rate)
}

// applyIperf2 sets the limits of the iperf 2 server.
func (l *limits) applyIperf2(s *iperf2.Server) {
	s.MaxTests = l.tests
	s.MaxStreams = l.streams
	s.MaxTime = l.time
	s.MaxBytes = int64(l.bytes)
	s.MaxBps = float64(l.rate)
}
