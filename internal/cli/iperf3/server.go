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

// iperf3Server are the options of iperf3's server.
type iperf3Server struct {
	on, oneOff, daemon bool
	rateLimit          string
	mostTime, idle     int // s
	privateKey, users  string
	skew               int // s
}

func (s *iperf3Server) add(fl *pflag.FlagSet) {
	fl.BoolVarP(&s.on, "server", "s", false, "run as server")
	fl.BoolVarP(&s.oneOff, "one-off", "1", false, "end after one test")
	fl.BoolVarP(&s.daemon, "daemon", "D", false, "run in the background, once the port is open")
	fl.StringVar(&s.rateLimit, "server-bitrate-limit", "", "rate that one test may ask for or, on the average of 5 s, "+
		"take; /N: of N s")
	fl.IntVar(&s.mostTime, "server-max-duration", 0, "seconds that one test may last; 0 is a day")
	fl.IntVar(&s.idle, "idle-timeout", 0, "with -1, seconds after which a server that nobody came to ends")
	fl.StringVar(&s.privateKey, "rsa-private-key-path", "", "the key that opens users' tokens")
	fl.StringVar(&s.users, "authorized-users-path", "", "a file of users, a line each: NAME,SHA-256 of {NAME}PASSWORD")
	fl.IntVar(&s.skew, "time-skew-threshold", 10, "seconds that a user's clock may be off")
}

// longestTest is iperf3's own bound on a test and what it omits before.
const longestTest = (iperf3.MaxTime + iperf3.MaxOmit) * time.Second

// serve is iperf3's server: one test at a time.
func (f *iperf3Flags) serve(cmd *cobra.Command) error {
	if f.server.daemon && !isDetached() {
		return f.detach(cmd)
	}
	gate, err := f.gate(cmd)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(cmd.Context())
	defer cancel()
	h := &iperf3Host{f: f, cmd: cmd, end: cancel}
	clients := &iperf3.Server{MaxTests: 1, MaxTestsPerHost: 1, MaxTime: longestTest, Gate: gate,
		Quiet: time.Duration(f.quiet) * time.Millisecond, Every: f.every(), Begun: h.begun, Report: h.report,
		Output: h.output}
	if f.server.mostTime > 0 {
		clients.MaxTime = time.Duration(f.server.mostTime) * time.Second
	}
	if clients.MaxBps, clients.Average, err = f.server.mostRate(); err != nil {
		return err
	}
	s, err := server.New(ctx, server.Config{Address: f.listens(), Key: probe.NewKey(), Software: build.Version(),
		Strangers: true, ShareWindows: true,
		Legacy: func(ctx context.Context, conn *net.TCPConn, preface probe.Preface, order int64, keyed bool) {
			clients.Handle(ctx, conn, iperf3.Cookie(preface), order, keyed)
		}})
	if err != nil {
		return listener.Failure(f.listens(), err)
	}
	clients.Window = s.Window
	clients.UDP = true
	wait, err := listener.ServeFlows(ctx, s.Addr().String(), clients)
	if err != nil {
		s.Close()
		return listener.Failure(f.listens()+" (UDP)", err)
	}
	defer wait()
	pid, err := f.writePID(cmd)
	if err != nil {
		s.Close()
		return err
	}
	defer pid.Remove()
	if f.server.daemon {
		if err := f.standAlone(cmd); err != nil {
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

// errServerStopped is in iperf3's words.
var errServerStopped = errors.New("interrupt - the server has terminated")

// listens is where the server waits.
func (f *iperf3Flags) listens() string {
	host := strings.Trim(f.bind, "[]")
	switch {
	case host == "" && f.only4:
		host = "0.0.0.0"
	case host == "" && f.only6:
		host = "::"
	}
	return net.JoinHostPort(host, strconv.Itoa(int(f.port)))
}

// mostRate is --server-bitrate-limit in bit/s, 0 being no bound, and the time over which it
// is averaged.
func (s *iperf3Server) mostRate() (float64, time.Duration, error) {
	const flag, usual, longest = "--server-bitrate-limit", 5, 60 // s
	text, over, given := strings.Cut(s.rateLimit, "/")
	seconds := float64(usual)
	if given {
		var err error
		if seconds, err = strconv.ParseFloat(over, 64); err != nil || !(seconds >= 0.1 && seconds <= longest) {
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

// gate is who may test; nil: everybody.
func (f *iperf3Flags) gate(cmd *cobra.Command) (*iperf3.Gate, error) {
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
	return &iperf3.Gate{Key: key, PKCS1: f.login.pkcs1, Skew: time.Duration(s.skew) * time.Second, Users: users}, nil
}

// iperf3Host prints what an iperf3 server prints.
type iperf3Host struct {
	f    *iperf3Flags
	cmd  *cobra.Command
	port int
	end  context.CancelFunc

	out *serverlog.Log // standard output; nil before the server listens

	mu    sync.Mutex // guards what follows, and what is printed
	idle  *time.Timer
	tests int
	doc   *face.Document // the running test's beginning, which was printed; nil: it was not
	cuts  *face.Cuts
}

// logOutput makes standard output a log until end: no reader of it holds the server up, and clients that fail have a
// quota.
func (h *iperf3Host) logOutput() (end func()) {
	object := h.f.stream || console.WantsJSON(h.cmd)
	h.out = serverlog.New(serverlog.Config{Out: h.cmd.OutOrStdout(),
		Summary: func(_ serverlog.Kind, count int64, last string) string {
			if object { // standard error has the count
				return last
			}
			return fmt.Sprintf("%d more clients failed, the last:\n%s", count, last)
		},
		Lost: func(count int64) string {
			text := fmt.Sprintf("%d parts of the output were lost: nobody read them in time", count)
			if object {
				console.Note(h.cmd, "%s", text)
				return ""
			}
			return text
		}})
	h.cmd.SetOut(h.out.Results())
	return h.out.Close
}

// printed prints what came of a client, in which a test ran or not. The caller holds mu.
func (h *iperf3Host) printed(ran bool, print func()) {
	if ran || h.out == nil {
		print()
		return
	}
	var b strings.Builder
	out := h.cmd.OutOrStdout()
	h.cmd.SetOut(&b)
	print()
	h.cmd.SetOut(out)
	h.out.Print(serverlog.Kind{Event: "failed"}, func() string { return strings.TrimSuffix(b.String(), "\n") })
}

// listening says that the next test is waited for.
func (h *iperf3Host) listening() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.wait()
}

// wait prints that the next test is waited for. The caller holds mu.
func (h *iperf3Host) wait() {
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

func (h *iperf3Host) asked(from netip.AddrPort) face.Asked {
	return face.Asked{Interval: h.f.every(), System: systemInfo(), From: from}
}

// begun prints a test's beginning and collects what moves.
func (h *iperf3Host) begun(from netip.AddrPort, a iperf3.Account) func(transfer.Interval) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.idle != nil {
		h.idle.Stop()
	}
	h.doc = face.Begin(&a, h.asked(from))
	h.cuts = face.NewCuts(&a, h.f.every(), true)
	h.f.open(h.cmd, h.doc)
	return func(i transfer.Interval) {
		h.mu.Lock()
		defer h.mu.Unlock()
		first := h.cuts.Told()
		h.f.pass(h.cmd, h.doc, first, h.cuts.Add(i))
	}
}

// report prints a test's end, and ends the server if it was to take one.
func (h *iperf3Host) report(r iperf3.Report) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if r.Account == nil && (h.doc != nil || errors.Is(r.Err, iperf3.ErrTurnedAway)) {
		return // another test runs
	}
	asked := h.asked(r.From)
	doc := face.Begin(r.Account, asked)
	told := 0
	if h.doc != nil {
		told = h.cuts.Told()
	}
	doc.Finish(r.Account, asked, h.cuts)
	if r.Account != nil && !r.Params.UDP && r.Account.Legs != nil {
		doc.Fullpipe = limits(r.Account)
	}
	if r.Err != nil {
		doc.Error = iperf3Error(h.cmd.Context(), r.Err)
	}
	begun := h.doc != nil
	h.doc = nil
	h.cuts = nil
	last := h.f.server.oneOff && r.Proven
	h.printed(r.Account != nil, func() {
		if !begun && !h.f.stream && !console.WantsJSON(h.cmd) {
			h.f.write(h.cmd, func(t face.Text) { t.Opening(doc) })
		}
		h.f.print(h.cmd, doc, told)
		if !last {
			h.wait()
		}
	})
	if last {
		h.end()
	}
}

// output is what a client with --get-server-output is told: this server's text, or with
// --json its object.
func (h *iperf3Host) output(from netip.AddrPort, a iperf3.Account) (text string, object json.RawMessage) {
	h.mu.Lock()
	defer h.mu.Unlock()
	asked := h.asked(from)
	doc := face.Begin(&a, asked)
	doc.Finish(&a, asked, h.cuts)
	if !a.Params.UDP {
		doc.Fullpipe = limits(&a)
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
