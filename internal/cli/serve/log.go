package serve

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/cli/console"
	"github.com/fullpipe-net/fullpipe/internal/cli/present"
	"github.com/fullpipe-net/fullpipe/internal/peer"
	"github.com/fullpipe-net/fullpipe/internal/probe"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render"
	"github.com/fullpipe-net/fullpipe/internal/server"
	"github.com/fullpipe-net/fullpipe/internal/serverlog"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// serveLog prints what serve does: events as JSON lines on standard output, or as text on
// standard error.
type serveLog struct {
	cmd    *cobra.Command
	quiet  bool
	notes  *serverlog.Log // standard error
	events *serverlog.Log // notes, or with --json standard output
	end    func()
}

func newServeLog(cmd *cobra.Command, quiet bool) *serveLog {
	l := &serveLog{cmd: cmd, quiet: quiet, end: console.LogStderr(cmd)}
	l.notes = console.LogOf(cmd)
	l.events = l.notes
	if console.WantsJSON(cmd) {
		l.events = serverlog.New(serverlog.Config{Out: cmd.OutOrStdout(),
			Summary: func(k serverlog.Kind, count int64, _ string) string {
				return (&serveEvent{At: now(), Event: "suppressed", Of: k.Event, Count: count}).object()
			},
			Lost: func(count int64) string { return (&serveEvent{At: now(), Event: "lost", Count: count}).object() }})
	}
	return l
}

// close gives what is still to be printed a moment.
func (l *serveLog) close() {
	l.events.Close()
	l.end()
}

// readyEvent is the first line of serve --json.
type readyEvent struct {
	record.Header
	Event  string `json:"event"`
	Listen string `json:"listen"`
	Key    string `json:"key,omitempty"` // absent when it was given: then its owner has it
	// Addresses are where other hosts may reach it, the likeliest first.
	Addresses []string `json:"addresses"`
}

// ready tells where the server listens. It comes before any event and is no part of a
// log: who cannot read it cannot use the server. An end of ctx is no error.
func (l *serveLog) ready(ctx context.Context, address string, key probe.Key, made bool) error {
	if l.quiet {
		return nil
	}
	told := make(chan error, 1)
	go func() { told <- l.tellReady(address, key, made) }()
	select {
	case err := <-told:
		return err
	case <-ctx.Done():
		return nil
	}
}

func (l *serveLog) tellReady(address string, key probe.Key, made bool) error {
	out := l.cmd.OutOrStdout()
	if console.WantsJSON(l.cmd) {
		e := readyEvent{Header: present.Header(l.cmd), Event: "ready", Listen: address, Addresses: reachableAt(address)}
		if made {
			e.Key = key.String()
		}
		return json.NewEncoder(out).Encode(e)
	}
	text := fmt.Sprintf("fullpipe listens on %s\n", address)
	if !made {
		_, err := io.WriteString(out, text+"its clients need the key that was given\n")
		return err
	}
	if _, err := fmt.Fprintf(out, "%skey: %s\n", text, key); err != nil {
		return err
	}
	reachable := reachableAt(address)
	text = fmt.Sprintf("measure from another host with:\n  FULLPIPE_KEY=%s fullpipe measure %s", key, reachable[0])
	if len(reachable) > 1 {
		text += "\nthis host is also " + strings.Join(reachable[1:], ", ")
	}
	l.notes.Print(serverlog.Kind{Event: "ready", Trusted: true}, func() string { return text })
	return nil
}

// serveEvent is a line of serve --json.
type serveEvent struct {
	At         time.Time `json:"at"`
	Event      string    `json:"event"`
	Client     string    `json:"client,omitempty"`
	Direction  string    `json:"direction,omitempty"`
	Bytes      *int64    `json:"bytes,omitempty"`
	GoodputBps *float64  `json:"goodput_bps,omitempty"`
	Complete   *bool     `json:"complete,omitempty"`
	Holder     string    `json:"holder,omitempty"`  // whose key of --keys it proved
	TestID     string    `json:"test_id,omitempty"` // as in the client's record
	// BesideTests is how many other tests ran here meanwhile, BesideS for how long one did.
	BesideTests int64   `json:"beside_tests,omitempty"`
	BesideS     float64 `json:"beside_s,omitempty"`
	Error       string  `json:"error,omitempty"`
	// Of and Count are those of "suppressed": so many events of that kind were not printed.
	// The Count of "lost" is of lines that nobody read in time.
	Of    string `json:"of,omitempty"`
	Count int64  `json:"count,omitempty"`
}

func (l *serveLog) event(e server.Event) {
	if l.quiet {
		return
	}
	at := now()
	l.events.Print(serverlog.Kind{Event: e.What, Trusted: e.Keyed}, func() string {
		line := newServeEvent(at, &e)
		if console.WantsJSON(l.cmd) {
			return line.object()
		}
		return line.text()
	})
}

func newServeEvent(at time.Time, e *server.Event) *serveEvent {
	line := &serveEvent{At: at, Event: e.What, Client: e.Client.String(), Holder: e.Holder}
	if e.Err != nil {
		line.Error = oneLine(e.Err.Error())
	}
	if r := e.Result; r != nil {
		line.Direction = string(r.Spec.Direction)
		line.Complete = &r.Complete
		line.TestID = r.Spec.TestID
		if received, ok := r.Received(); ok {
			line.Bytes = &received.Bytes
			if bps := received.Bps(); received.HasRate() {
				line.GoodputBps = &bps
			}
		}
		if r.Far != nil && r.Far.Beside != nil {
			line.BesideTests = r.Far.Beside.Tests
			line.BesideS = r.Far.Beside.Time.Seconds()
		}
	}
	return line
}

func now() time.Time { return time.Now().UTC().Round(time.Millisecond) }

func (e *serveEvent) object() string {
	line, _ := json.Marshal(e) // texts, numbers and times always are JSON
	return string(line)
}

func (e *serveEvent) text() string {
	at := e.At.Format(time.TimeOnly)
	words := []string{at, e.Client, e.Event}
	if e.Error != "" {
		words = append(words, e.Error)
	}
	if e.Direction != "" {
		words = append(words, "from the client's side "+e.Direction)
	}
	if e.Bytes != nil {
		words = append(words, units.Size(*e.Bytes).String())
	}
	if e.GoodputBps != nil {
		words = append(words, units.Rate(*e.GoodputBps).String())
	}
	if e.BesideTests > 0 {
		words = append(words, fmt.Sprintf("%d other tests ran beside it, for %s", e.BesideTests,
			units.Time(units.Seconds(e.BesideS))))
	}
	return strings.Join(words, "  ")
}

// oneLine is a text of which parts may be a stranger's, as one bounded line that a
// terminal shows and does not obey.
func oneLine(text string) string {
	const most = 300
	text = render.Line(text)
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "..."
	}
	return text
}

// mostAddresses is how many of this host's addresses are told.
const mostAddresses = 8

// reachableAt are the PEERs by which others may reach a server that listens at ADDR:PORT:
// addresses of this host's interfaces, that of the way out first. A host's name need not
// mean anything elsewhere. Where there is no other address it is a loopback one.
func reachableAt(listen string) (all []string) {
	at, err := netip.ParseAddrPort(listen)
	if err != nil {
		return []string{listen}
	}
	addresses := []netip.Addr{at.Addr().Unmap()}
	if at.Addr().IsUnspecified() {
		addresses = hostAddresses(at.Addr().Is4())
	}
	for _, a := range addresses[:min(len(addresses), mostAddresses)] {
		if at.Port() == peer.DefaultPort {
			all = append(all, a.String())
		} else {
			all = append(all, net.JoinHostPort(a.String(), strconv.Itoa(int(at.Port()))))
		}
	}
	return all
}

// hostAddresses are those of the interfaces that are up; link-local ones need a zone and
// are left out.
func hostAddresses(only4 bool) (all []netip.Addr) {
	for _, far := range []string{"192.0.2.1:9", "[2001:db8::1]:9"} { // asks for a route, sends nothing
		if conn, err := net.Dial("udp", far); err == nil {
			all = append(all, conn.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Unmap().WithZone(""))
			conn.Close()
		}
	}
	interfaces, _ := net.Interfaces()
	for _, i := range interfaces {
		if i.Flags&net.FlagUp == 0 {
			continue
		}
		addresses, _ := i.Addrs()
		for _, a := range addresses {
			if network, ok := a.(*net.IPNet); ok {
				if one, ok := netip.AddrFromSlice(network.IP); ok {
					all = append(all, one.Unmap())
				}
			}
		}
	}
	var good []netip.Addr
	for _, a := range all {
		if !a.IsLoopback() && a.IsGlobalUnicast() && (a.Is4() || !only4) && !slices.Contains(good, a) {
			good = append(good, a)
		}
	}
	if len(good) == 0 {
		return []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1})}
	}
	return good
}
