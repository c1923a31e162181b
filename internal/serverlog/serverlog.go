// Package serverlog prints a server's events. Callers never wait for the log's reader, and events have quotas, so that
// unauthenticated clients cannot fill a disk.
package serverlog

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"log"
	"slices"
	"strings"
	"sync"
	"time"
)

// Kind is a group of events that are counted together. Kinds are constants of the program.
type Kind struct {
	Event   string
	Trusted bool // only authenticated clients cause it: it has a quota of its own
}

// Config configures a Log. Only Out is required.
type Config struct {
	Out io.Writer
	// Other is another log of the same server, or nil: both have one quota for the kinds that are not trusted.
	Other *Log
	// Clean makes untrusted text one line without terminal controls; nil only joins lines.
	Clean func(string) string
	// Summary formats the number of suppressed events of a kind, and the last of them.
	Summary func(k Kind, count int64, last string) string
	// Now is the clock of the quotas; nil is time.Now.
	Now func() time.Time
	// Lost formats the number of lines lost because they were not read in time.
	Lost func(count int64) string
}

const (
	// closeTimeout is how long Close waits for the last lines.
	closeTimeout = time.Second
	// summaryInterval is the time until suppressed events are summarized.
	summaryInterval = time.Minute
	maxLine         = 500     // bytes of a line with untrusted text
	maxPanic        = 8 << 10 // bytes of a panic with its stack, as one line
)

// Log prints lines. Its methods may be called by many goroutines and do not block until Close.
type Log struct {
	config    Config
	lines     *lineQueue
	untrusted *bucket

	mu     sync.Mutex // guards the fields below
	quotas map[Kind]*quota
	timer  *time.Timer // for the next summaries; nil: none pending
	closed bool
}

// New returns a Log. The caller must close it.
func New(c Config) *Log {
	if c.Clean == nil {
		c.Clean = func(s string) string { return strings.Join(strings.Fields(s), " ") }
	}
	if c.Summary == nil {
		c.Summary = func(_ Kind, count int64, last string) string {
			return fmt.Sprintf("%d more of this kind, the last: %s", count, last)
		}
	}
	if c.Lost == nil {
		c.Lost = func(count int64) string { return fmt.Sprintf("%d lines were lost: nobody read them in time", count) }
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	untrusted := newUntrusted()
	if c.Other != nil {
		untrusted = c.Other.untrusted
	}
	return &Log{config: c, quotas: map[Kind]*quota{}, untrusted: untrusted,
		lines: newLineQueue(c.Out, func(n int64) []byte { return []byte(c.Lost(n) + "\n") })}
}

// Print prints a line of a kind if its quota allows. line is called only for printed events and for the last one
// of a summary.
func (l *Log) Print(k Kind, line func() string) { l.PrintLines(k, 1, line) }

// PrintLines prints an event that takes a number of lines of its kind's quota, and reports whether
// it was printed. The caller may write some of these lines elsewhere.
func (l *Log) PrintLines(k Kind, lines int, text func() string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed { // the server has ended
		_, _ = io.WriteString(l.config.Out, text()+"\n")
		return true
	}
	q := l.quotas[k]
	if q == nil {
		q = &quota{bucket: l.untrusted}
		if k.Trusted {
			q.bucket = newTrusted()
		}
		l.quotas[k] = q
	}
	cost := int64(lines)
	if q.suppressed > 0 {
		cost += q.lastLines
	}
	if !q.allows(q, l.config.Now(), cost) {
		q.suppressed++
		q.last = text
		q.lastLines = int64(lines)
		if l.timer == nil {
			l.timer = time.AfterFunc(summaryInterval, l.summarize)
		}
		return false
	}
	l.summary(k, q)
	l.lines.put([]byte(text() + "\n"))
	return true
}

// Note prints untrusted text as one line of limited length.
func (l *Log) Note(k Kind, text string) { l.note(k, text, maxLine) }

func (l *Log) note(k Kind, text string, limit int) {
	l.Print(k, func() string { return l.clean(text, limit) })
}

func (l *Log) clean(text string, limit int) string {
	text = l.config.Clean(strings.TrimSpace(text))
	if len(text) > limit {
		return strings.ToValidUTF8(text[:limit], "") + "..."
	}
	return text
}

// Write prints each line of a text as an event of the same kind. It replaces standard error for code without
// kinds.
func (l *Log) Write(text []byte) (int, error) {
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line != "" {
			l.Note(Kind{Event: "note"}, line)
		}
	}
	return len(text), nil
}

// Results returns the writer of a server's results, which have no quota.
func (l *Log) Results() io.Writer { return results{l} }

type results struct{ *Log }

func (l results) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return l.config.Out.Write(text)
	}
	l.lines.put(bytes.Clone(text))
	return len(text), nil
}

// ErrorLog returns the log of an http.Server. Any client can cause most of its messages.
func (l *Log) ErrorLog() *log.Logger { return log.New(errorLog{l}, "", 0) }

type errorLog struct{ *Log }

func (l errorLog) Write(line []byte) (int, error) {
	text := string(line)
	for _, event := range []string{"http: panic", "http: Accept error", "http: TLS handshake error"} {
		if strings.HasPrefix(text, event) {
			limit := maxLine
			if event == "http: panic" {
				limit = maxPanic
			}
			l.note(Kind{Event: event}, text, limit)
			return len(line), nil
		}
	}
	l.Note(Kind{Event: "http"}, text)
	return len(line), nil
}

// summarize prints events that were suppressed for longer than summaryInterval, as far as quotas allow.
func (l *Log) summarize() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.timer = nil
	if l.closed {
		return
	}
	for _, k := range l.kinds() {
		if q := l.quotas[k]; q.suppressed > 0 && q.allows(q, l.config.Now(), q.lastLines) {
			l.summary(k, q)
		}
		if l.quotas[k].suppressed > 0 && l.timer == nil {
			l.timer = time.AfterFunc(summaryInterval, l.summarize)
		}
	}
}

// summary prints the number of suppressed events of a kind. The caller has locked mu.
func (l *Log) summary(k Kind, q *quota) {
	if q.suppressed > 0 {
		l.lines.put([]byte(l.config.Summary(k, q.suppressed, q.last()) + "\n"))
	}
	q.suppressed = 0
	q.last = nil
	q.lastLines = 0
}

// kinds returns all kinds in a fixed order.
func (l *Log) kinds() (all []Kind) {
	for k := range l.quotas {
		all = append(all, k)
	}
	slices.SortFunc(all, func(a, b Kind) int { return cmp.Compare(a.Event, b.Event) })
	return all
}

// Close prints the last summaries and waits up to closeTimeout. Later lines are written directly.
func (l *Log) Close() {
	l.mu.Lock()
	if !l.closed {
		l.closed = true
		if l.timer != nil {
			l.timer.Stop()
		}
		for _, k := range l.kinds() {
			q := l.quotas[k]
			l.summary(k, q)
			q.mu.Lock()
			q.leave(q)
			q.mu.Unlock()
		}
	}
	l.mu.Unlock()
	l.lines.close(closeTimeout)
}
