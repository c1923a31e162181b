package serve

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/cli/console"
	"github.com/fullpipe-net/fullpipe/internal/cli/listener"
	"github.com/fullpipe-net/fullpipe/internal/cli/present"
	"github.com/fullpipe-net/fullpipe/internal/probe"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render"
	"github.com/fullpipe-net/fullpipe/internal/server"
	"github.com/fullpipe-net/fullpipe/internal/serverlog"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// eventLog prints serve's events: JSON lines on standard output, or text on standard error.
type eventLog struct {
	cmd    *cobra.Command
	quiet  bool
	notes  *serverlog.Log // standard error
	events *serverlog.Log // notes, or with --json standard output
	end    func()
}

func newServeLog(cmd *cobra.Command, quiet bool) *eventLog {
	l := &eventLog{cmd: cmd, quiet: quiet, end: console.LogStderr(cmd)}
	l.notes = console.LogOf(cmd)
	l.events = l.notes
	if console.WantsJSON(cmd) {
		l.events = console.NewLog(cmd, serverlog.Config{Out: cmd.OutOrStdout(),
			Summary: func(k serverlog.Kind, count int64, _ string) string {
				return (&event{At: now(), Event: "suppressed", Of: k.Event, Count: count}).object()
			},
			Lost: func(count int64) string { return (&event{At: now(), Event: "lost", Count: count}).object() }})
	}
	return l
}

// close waits for the last lines, with a timeout.
func (l *eventLog) close() {
	l.events.Close()
	l.end()
}

// readyEvent is the first line of serve --json.
type readyEvent struct {
	record.Header
	Event  string `json:"event"`
	Listen string `json:"listen"`
	Key    string `json:"key,omitempty"` // absent if the user gave the key
	// Addresses are the server's addresses for other hosts, the most likely first.
	Addresses []string `json:"addresses"`
}

// ready prints where the server listens, before all events and outside the log's quota. A failed write is an
// error, because the server is unusable without it. The end of ctx is none.
func (l *eventLog) ready(ctx context.Context, address string, key probe.Key, made bool) error {
	if l.quiet {
		return nil
	}
	printed := make(chan error, 1)
	go func() { printed <- l.printReady(address, key, made) }()
	select {
	case err := <-printed:
		return err
	case <-ctx.Done():
		return nil
	}
}

func (l *eventLog) printReady(address string, key probe.Key, made bool) error {
	out := l.cmd.OutOrStdout()
	if console.WantsJSON(l.cmd) {
		e := readyEvent{Header: present.Header(l.cmd), Event: "ready", Listen: address,
			Addresses: reachableAt(address, transfer.DefaultPort)}
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
	reachable := reachableAt(address, transfer.DefaultPort)
	text = fmt.Sprintf("measure from another host with:\n  FULLPIPE_KEY=%s fullpipe measure %s", key, reachable[0])
	if len(reachable) > 1 {
		text += "\nthis host is also " + strings.Join(reachable[1:], ", ")
	}
	l.notes.Print(serverlog.Kind{Event: "ready", Trusted: true}, func() string { return text })
	return nil
}

// event is a line of serve --json.
type event struct {
	At         time.Time `json:"at"`
	Event      string    `json:"event"`
	Client     string    `json:"client,omitempty"`
	Direction  string    `json:"direction,omitempty"`
	Bytes      *int64    `json:"bytes,omitempty"`
	GoodputBps *float64  `json:"goodput_bps,omitempty"`
	Complete   *bool     `json:"complete,omitempty"`
	Holder     string    `json:"holder,omitempty"`  // name of the key in --keys
	TestID     string    `json:"test_id,omitempty"` // as in the client's record
	// ConcurrentTests is the number of other tests that ran at the same time, ConcurrentS for how many seconds.
	ConcurrentTests int64   `json:"beside_tests,omitempty"`
	ConcurrentS     float64 `json:"beside_s,omitempty"`
	Error           string  `json:"error,omitempty"`
	// Limiter and Confidence are this host's verdict about a transfer with an iperf 2 client.
	Limiter    string `json:"limiter,omitempty"`
	Confidence string `json:"confidence,omitempty"`
	verdict    string // as text
	// Sent, Lost and JitterS belong to UDP: datagrams, and RFC 1889's jitter.
	Sent    *int64   `json:"sent,omitempty"`
	Lost    *int64   `json:"lost,omitempty"`
	JitterS *float64 `json:"jitter_s,omitempty"`
	// Listen and Addresses belong to "iperf2-ready", as in the first line.
	Listen    string   `json:"listen,omitempty"`
	Addresses []string `json:"addresses,omitempty"`
	// Of and Count belong to "suppressed": Count events of the kind Of were not printed. The Count of "lost" is
	// the number of lines that were not read in time.
	Of    string `json:"of,omitempty"`
	Count int64  `json:"count,omitempty"`
}

func (l *eventLog) event(e server.Event) {
	if l.quiet {
		return
	}
	at := now()
	l.events.Print(serverlog.Kind{Event: e.Kind, Trusted: e.Keyed}, func() string {
		line := newServeEvent(at, &e)
		if console.WantsJSON(l.cmd) {
			return line.object()
		}
		return line.text()
	})
}

func newServeEvent(at time.Time, e *server.Event) *event {
	line := &event{At: at, Event: e.Kind, Client: e.Client.String(), Holder: e.Holder}
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
		if r.Far != nil && r.Far.ConcurrentTests != nil {
			line.ConcurrentTests = r.Far.ConcurrentTests.Tests
			line.ConcurrentS = r.Far.ConcurrentTests.Time.Seconds()
		}
	}
	return line
}

func now() time.Time { return time.Now().UTC().Round(time.Millisecond) }

func (e *event) object() string {
	line, _ := json.Marshal(e) // cannot fail: texts, numbers and times
	return string(line)
}

func (e *event) text() string {
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
	if e.Lost != nil {
		words = append(words, fmt.Sprintf("%d of %d datagrams lost", *e.Lost, *e.Sent),
			"jitter "+units.Time(units.Seconds(*e.JitterS)))
	}
	if e.verdict != "" {
		words = append(words, "limited by "+e.verdict)
	}
	if e.ConcurrentTests > 0 {
		words = append(words, fmt.Sprintf("%d other tests ran concurrently, for %s", e.ConcurrentTests,
			units.Time(units.Seconds(e.ConcurrentS))))
	}
	return strings.Join(words, "  ")
}

// oneLine returns untrusted text as one line of limited length without terminal controls.
func oneLine(text string) string {
	const most = 300
	text = render.Line(text)
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "..."
	}
	return text
}

// reachableAt returns the addresses for a server that listens at ADDR:PORT, the most likely first. They have no port
// if it is standard.
func reachableAt(listen string, standard int) (all []string) {
	_, port, _ := net.SplitHostPort(listen)
	for _, host := range listener.Reachable(listen) {
		if port == strconv.Itoa(standard) {
			all = append(all, host)
		} else {
			all = append(all, net.JoinHostPort(host, port))
		}
	}
	return all
}
