package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/probe"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render"
	"github.com/fullpipe-net/fullpipe/internal/server"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// serveLog prints what a server does: events as JSON lines on standard output, or as text
// on standard error. Nobody who logs ever waits for who reads.
type serveLog struct {
	cmd    *cobra.Command
	quiet  bool
	lines  *lineQueue
	mu     sync.Mutex // guards quotas
	quotas map[quotaKind]*quota
}

// quotaKind is what shares a quota.
type quotaKind struct {
	event string
	keyed bool // by a holder of the key
}

func newServeLog(cmd *cobra.Command, quiet bool) *serveLog {
	// Without this a reader that has gone ends the process (os/signal, SIGPIPE).
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	out := cmd.ErrOrStderr()
	if wantsJSON(cmd) {
		out = cmd.OutOrStdout()
	}
	l := &serveLog{cmd: cmd, quiet: quiet, quotas: map[quotaKind]*quota{}}
	l.lines = newLineQueue(out, func(n int64) []byte { return l.format(&serveEvent{At: now(), Event: "lost", Count: n}) })
	return l
}

// close gives what is still to be printed a moment.
func (l *serveLog) close() {
	if l.quiet {
		return
	}
	l.mu.Lock()
	for kind, q := range l.quotas {
		l.print(l.suppressed(kind.event, q))
	}
	l.mu.Unlock()
	l.lines.close(flushTime)
}

// flushTime is how long a log's last lines may take.
const flushTime = time.Second

// readyEvent is the first line of serve --json.
type readyEvent struct {
	record.Header
	Event  string `json:"event"`
	Listen string `json:"listen"`
	Key    string `json:"key,omitempty"` // absent when it was given: then its owner has it
	// Addresses are where other hosts may reach it, the likeliest first.
	Addresses []string `json:"addresses"`
}

// ready tells where the server listens. It comes before any event and is no part of the
// queue: who cannot read it cannot use the server. An end of ctx is no error.
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
	if wantsJSON(l.cmd) {
		e := readyEvent{Header: newHeader(l.cmd), Event: "ready", Listen: address, Addresses: reachableAt(address)}
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
	text = fmt.Sprintf("measure from another host with:\n  FULLPIPE_KEY=%s fullpipe measure %s\n", key, reachable[0])
	if len(reachable) > 1 {
		text += "this host is also " + strings.Join(reachable[1:], ", ") + "\n"
	}
	l.lines.put([]byte(text))
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
	l.mu.Lock()
	defer l.mu.Unlock()
	kind := quotaKind{e.What, e.Keyed}
	q := l.quotas[kind]
	if q == nil {
		q = newQuota(e.Keyed)
		l.quotas[kind] = q
	}
	if !q.allows(time.Now()) {
		return
	}
	l.print(l.suppressed(e.What, q))
	line := &serveEvent{At: now(), Event: e.What, Client: e.Client.String(), Holder: e.Holder}
	if e.Err != nil {
		line.Error = oneLine(e.Err.Error())
	}
	if r := e.Result; r != nil {
		line.Direction, line.Complete, line.TestID = string(r.Spec.Direction), &r.Complete, r.Spec.TestID
		if received, ok := r.Received(); ok {
			line.Bytes = &received.Bytes
			if bps := received.Bps(); received.HasRate() {
				line.GoodputBps = &bps
			}
		}
		if r.Far != nil && r.Far.Beside != nil {
			line.BesideTests, line.BesideS = r.Far.Beside.Tests, r.Far.Beside.Time.Seconds()
		}
	}
	l.print(line)
}

func now() time.Time { return time.Now().UTC().Round(time.Millisecond) }

// suppressed is the line that tells of what a quota held back since the last one; nil: of
// nothing.
func (l *serveLog) suppressed(kind string, q *quota) *serveEvent {
	n := q.held
	if q.held = 0; n == 0 {
		return nil
	}
	return &serveEvent{At: now(), Event: "suppressed", Of: kind, Count: n}
}

func (l *serveLog) print(e *serveEvent) {
	if e != nil {
		l.lines.put(l.format(e))
	}
}

func (l *serveLog) format(e *serveEvent) []byte {
	text := []byte(e.text())
	if wantsJSON(l.cmd) {
		text, _ = json.Marshal(e)
	}
	return append(text, '\n')
}

func (e *serveEvent) text() string {
	at := e.At.Format(time.TimeOnly)
	words := []string{at, e.Client, e.Event}
	switch e.Event {
	case "suppressed":
		words = []string{at, fmt.Sprintf("%d more events %q were not printed", e.Count, e.Of)}
	case "lost":
		words = []string{at, fmt.Sprintf("%d lines were lost: nobody read them in time", e.Count)}
	}
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

// quota bounds how many lines of one kind are printed: a burst, and then so many a minute.
type quota struct {
	burst, perMinute float64
	left             float64
	since            time.Time
	held             int64 // not printed since the last that was
}

// newQuota gives events that any stranger can cause little room, so that none can fill a
// disk: six lines a minute are some 1 MB a day.
func newQuota(keyed bool) *quota {
	if keyed {
		return &quota{burst: 1000, perMinute: 600, left: 1000}
	}
	return &quota{burst: 30, perMinute: 6, left: 30}
}

func (q *quota) allows(at time.Time) bool {
	if !q.since.IsZero() {
		q.left = min(q.burst, q.left+q.perMinute*at.Sub(q.since).Minutes())
	}
	q.since = at
	if q.left < 1 {
		q.held++
		return false
	}
	q.left--
	return true
}

// lineQueue writes lines one after the other and never makes who puts them wait: what
// does not fit is lost and counted.
type lineQueue struct {
	lines   chan []byte
	lost    atomic.Int64
	telling func(lost int64) []byte
	over    chan struct{} // closed by close
	written chan struct{} // closed when all is written
	once    sync.Once
}

const mostLines = 1024

func newLineQueue(out io.Writer, lost func(int64) []byte) *lineQueue {
	q := &lineQueue{telling: lost, lines: make(chan []byte, mostLines), over: make(chan struct{}),
		written: make(chan struct{})}
	go func() {
		defer close(q.written)
		for {
			select {
			case line := <-q.lines:
				q.write(out, line)
			case <-q.over:
				for {
					select {
					case line := <-q.lines:
						q.write(out, line)
					default:
						return
					}
				}
			}
		}
	}()
	return q
}

// write prints a line. One that cannot be written is lost: there is nobody to tell.
func (q *lineQueue) write(out io.Writer, line []byte) {
	if n := q.lost.Swap(0); n > 0 {
		out.Write(q.telling(n))
	}
	out.Write(line)
}

func (q *lineQueue) put(line []byte) {
	select {
	case q.lines <- line:
	default:
		q.lost.Add(1)
	}
}

// close waits until all is written, at most for a time.
func (q *lineQueue) close(within time.Duration) {
	q.once.Do(func() { close(q.over) })
	late := time.NewTimer(within)
	defer late.Stop()
	select {
	case <-q.written:
	case <-late.C:
	}
}
