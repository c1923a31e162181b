package iperf3

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fullpipe-net/fullpipe/internal/build"
	"github.com/fullpipe-net/fullpipe/internal/cli/console"
	"github.com/fullpipe-net/fullpipe/internal/cli/exit"
	"github.com/fullpipe-net/fullpipe/internal/cli/input"
	"github.com/fullpipe-net/fullpipe/internal/cli/listener"
	"github.com/fullpipe-net/fullpipe/internal/iperf3"
	"github.com/fullpipe-net/fullpipe/internal/probe"
	"github.com/fullpipe-net/fullpipe/internal/render"
	face "github.com/fullpipe-net/fullpipe/internal/render/iperf3"
	"github.com/fullpipe-net/fullpipe/internal/server"
	"github.com/fullpipe-net/fullpipe/internal/serverlog"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// serverFlags are the options of iperf3's server.
type serverFlags struct {
	on, oneOff, daemon bool
	rateLimit          string
	maxTime, idle      int // s
	privateKey, users  string
	skew               int // s
}

func (s *serverFlags) add(fl *pflag.FlagSet) {
	fl.BoolVarP(&s.on, "server", "s", false, "run as server")
	fl.BoolVarP(&s.oneOff, "one-off", "1", false, "end after one test")
	fl.BoolVarP(&s.daemon, "daemon", "D", false, "run in the background, once the port is open")
	fl.StringVar(&s.rateLimit, "server-bitrate-limit", "", "maximum rate of one test, requested or averaged over 5 s; "+
		"/N: over N s")
	fl.IntVar(&s.maxTime, "server-max-duration", 0, "maximum seconds of one test; 0: one day")
	fl.IntVar(&s.idle, "idle-timeout", 0, "with -1, seconds without a client after which the server exits")
	fl.StringVar(&s.privateKey, "rsa-private-key-path", "", "the private key that decrypts users' tokens")
	fl.StringVar(&s.users, "authorized-users-path", "", "a file of users, a line each: NAME,SHA-256 of {NAME}PASSWORD")
	fl.IntVar(&s.skew, "time-skew-threshold", 10, "maximum difference of a user's clock, seconds")
}

// maxTestTime is iperf3's limit of a test with its omitted time.
const maxTestTime = (iperf3.MaxTime + iperf3.MaxOmit) * time.Second

// serve runs iperf3's server: one test at a time.
func (f *flags) serve(cmd *cobra.Command) error {
	if f.server.daemon && !isDetached() {
		return f.detach(cmd)
	}
	gate, err := f.gate(cmd)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(cmd.Context())
	defer cancel()
	h := &serverPrinter{f: f, cmd: cmd, end: cancel}
	clients := &iperf3.Server{MaxTests: 1, MaxTestsPerHost: 1, MaxTime: maxTestTime, Auth: gate,
		IdleTimeout: time.Duration(f.receiveTimeoutMs) * time.Millisecond,
		Interval:    f.reportInterval(), OnStart: h.onStart, Report: h.report, Output: h.output}
	if f.server.maxTime > 0 {
		clients.MaxTime = time.Duration(f.server.maxTime) * time.Second
	}
	clients.MaxBps, clients.AveragePeriod, err = f.server.maxRate()
	if err != nil {
		return err
	}
	s, err := server.New(ctx, server.Config{Address: f.listens(), Key: probe.NewKey(), Software: build.Version(),
		AllowUnauthenticated: true, ShareWindows: true,
		Iperf3: func(ctx context.Context, conn *net.TCPConn, preface probe.Preface, order int64, keyed bool) {
			clients.Handle(ctx, conn, iperf3.Cookie(preface), order, keyed)
		}})
	if err != nil {
		return listener.Failure("--port", f.listens(), err)
	}
	clients.Window = s.Window
	clients.UDP = true
	wait, err := listener.ServeFlows(ctx, s.Addr().String(), clients)
	if err != nil {
		s.Close()
		return listener.Failure("--port", f.listens()+" (UDP)", err)
	}
	defer wait()
	pid, err := f.writePID(cmd)
	if err != nil {
		s.Close()
		return err
	}
	defer pid.Remove()
	if f.server.daemon {
		if err := f.signalReady(cmd); err != nil {
			s.Close()
			return err
		}
	}
	defer console.LogStderr(cmd)()
	defer h.logOutput()()
	h.port = int(s.Addr().Port())
	h.listening()
	if f.server.oneOff && f.server.idle > 0 {
		h.mu.Lock()
		h.idle = time.AfterFunc(time.Duration(f.server.idle)*time.Second, cancel)
		h.mu.Unlock()
	}
	err = s.Serve(ctx)
	if err == nil && cmd.Context().Err() != nil {
		return errServerStopped
	}
	return err
}

// errServerStopped has iperf3's text.
var errServerStopped = errors.New("interrupt - the server has terminated")

// address returns the address to listen at.
func (f *flags) listens() string {
	host := strings.Trim(f.bind, "[]")
	switch {
	case host == "" && f.only4:
		host = "0.0.0.0"
	case host == "" && f.only6:
		host = "::"
	}
	return net.JoinHostPort(host, strconv.Itoa(int(f.port)))
}

// maxRate parses --server-bitrate-limit: bit/s, 0 for none, and the averaging time.
func (s *serverFlags) maxRate() (float64, time.Duration, error) {
	const flag, usual, longest = "--server-bitrate-limit", 5, 60 // s
	text, over, given := strings.Cut(s.rateLimit, "/")
	seconds := float64(usual)
	if given {
		var err error
		seconds, err = strconv.ParseFloat(over, 64)
		if err != nil || !(seconds >= 0.1 && seconds <= longest) {
			return 0, 0, exit.Usage(flag, "invalid time interval for calculating average data rate", flag+" 100M/5")
		}
	}
	average := units.Seconds(seconds)
	if text == "" && !given {
		return 0, average, nil
	}
	if v, err := strconv.ParseFloat(text, 64); err == nil && v >= 0 && v < 1e15 {
		return v, average, nil
	}
	rate, err := units.ParseRate(text)
	if err != nil {
		return 0, 0, exit.Usage(flag, exit.Plain(err), flag+" 100M")
	}
	return float64(rate), average, nil
}

// auth returns the authentication of users, nil for none.
func (f *flags) gate(cmd *cobra.Command) (*iperf3.Authenticator, error) {
	s := &f.server
	switch {
	case s.privateKey == "" && s.users == "":
		return nil, nil
	case s.privateKey == "":
		return nil, exit.Usage("--rsa-private-key-path", "users need a key", "--rsa-private-key-path FILE")
	case s.users == "":
		return nil, exit.Usage("--authorized-users-path", "a key needs users", "--authorized-users-path FILE")
	}
	text, err := input.Read(cmd, s.privateKey, 64<<10)
	if err != nil {
		return nil, exit.Usage("--rsa-private-key-path", exit.Plain(err), "an RSA key in PEM")
	}
	key, err := iperf3.PrivateKey(text)
	if err != nil {
		return nil, exit.Usage("--rsa-private-key-path", exit.Plain(err), "an RSA key in PEM")
	}
	users := func() ([]byte, error) { return input.Read(cmd, s.users, 2<<20) }
	text, err = users()
	if err == nil {
		_, err = iperf3.ParseUsers(text)
	}
	if err != nil {
		return nil, exit.Usage("--authorized-users-path", exit.Plain(err), "lines of NAME,SHA-256 of {NAME}PASSWORD")
	}
	return &iperf3.Authenticator{Key: key, PKCS1: f.login.pkcs1, MaxSkew: time.Duration(s.skew) * time.Second,
		Users: users}, nil
}

// serverPrinter prints an iperf3 server's output.
type serverPrinter struct {
	f    *flags
	cmd  *cobra.Command
	port int
	end  context.CancelFunc

	out *serverlog.Log // standard output; nil before the server listens

	mu    sync.Mutex // guards the fields below and the output
	idle  *time.Timer
	tests int
	doc   *face.Document // the running test's printed beginning; nil: not printed
	cuts  *face.Intervals
}

// listening prints the line about the next test.
func (h *serverPrinter) listening() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.wait()
}

// wait prints the line about the next test. The caller has locked mu.
func (h *serverPrinter) wait() {
	h.tests++
	if h.f.stream || console.WantsJSON(h.cmd) {
		return
	}
	line := strings.Repeat("-", 59)
	h.f.write(h.cmd, func(t face.Text) {
		if t.Verbose {
			fmt.Fprintf(t.W, "%s\n%s\n", face.Version, systemInfo())
		}
		fmt.Fprintf(t.W, "%s\nServer listening on %d (test #%d)\n%s\n", line, h.port, h.tests, line)
	})
}

func (h *serverPrinter) asked(from netip.AddrPort) face.Options {
	return face.Options{Interval: h.f.reportInterval(), System: systemInfo(), AcceptedFrom: from}
}

// onStart prints a test's beginning and collects its intervals.
func (h *serverPrinter) onStart(from netip.AddrPort, a iperf3.TestResult) func(transfer.Interval) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.idle != nil {
		h.idle.Stop()
	}
	h.doc = face.Begin(&a, h.asked(from))
	h.cuts = face.NewIntervals(&a, h.f.reportInterval(), true)
	h.f.open(h.cmd, h.doc)
	return func(i transfer.Interval) {
		h.mu.Lock()
		defer h.mu.Unlock()
		first := h.cuts.Completed()
		h.f.printIntervals(h.cmd, h.doc, first, h.cuts.Add(i))
	}
}

// report prints a test's end. With -1 it stops the server.
func (h *serverPrinter) report(r iperf3.Report) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if r.Result == nil && (h.doc != nil || errors.Is(r.Err, iperf3.ErrTurnedAway)) {
		return // another test runs
	}
	asked := h.asked(r.From)
	doc := face.Begin(r.Result, asked)
	printed := 0
	if h.doc != nil {
		printed = h.cuts.Completed()
	}
	doc.Finish(r.Result, asked, h.cuts)
	if r.Result != nil && !r.Params.UDP && r.Result.Legs != nil {
		doc.Fullpipe = verdicts(r.Result)
	}
	if r.Err != nil {
		doc.Error = iperf3Message(h.cmd.Context(), r.Err)
	}
	begun := h.doc != nil
	h.doc = nil
	h.cuts = nil
	last := h.f.server.oneOff && r.Authenticated
	h.printed(r.Result != nil, func() {
		if !begun && !h.f.stream && !console.WantsJSON(h.cmd) {
			h.f.write(h.cmd, func(t face.Text) { t.Opening(doc) })
		}
		h.f.print(h.cmd, doc, printed)
		if !last {
			h.wait()
		}
	})
	if last {
		h.end()
	}
}

// output returns this server's output for --get-server-output: text, or with --json an object.
func (h *serverPrinter) output(from netip.AddrPort, a iperf3.TestResult) (text string, object json.RawMessage) {
	h.mu.Lock()
	defer h.mu.Unlock()
	asked := h.asked(from)
	doc := face.Begin(&a, asked)
	doc.Finish(&a, asked, h.cuts)
	if !a.Params.UDP {
		doc.Fullpipe = verdicts(&a)
	}
	if console.WantsJSON(h.cmd) {
		object, _ = json.Marshal(doc)
		return "", object
	}
	var b strings.Builder
	t := face.Text{W: &b}
	t.Opening(doc)
	t.Body(render.Document(doc))
	return b.String(), nil
}
