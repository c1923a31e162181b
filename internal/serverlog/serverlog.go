// Package serverlog prints what a server reports. No caller ever waits for who reads the log,
// and each kind of event has a quota, so that strangers fill no disk.
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

// Kind is what shares a quota. There may be few of them: they are constants of the program.
type Kind struct {
	Event   string
	Trusted bool // only clients that have proven a key cause it
}

// Config says where lines go and how they look. The zero value of all but Out works.
type Config struct {
	Out io.Writer
	// Clean makes text of strangers one line that a terminal does not obey; nil only joins
	// lines.
	Clean func(string) string
	// Summary formats how many events of a kind were not printed, and the last of them.
	Summary func(k Kind, count int64, last string) string
	// Lost formats how many lines were lost because nobody read them in time.
	Lost func(count int64) string
}

const (
	// closeTime is how long Close waits for the last lines to be written.
	closeTime = time.Second
	// summaryTime is how long events that were not printed wait for their summary.
	summaryTime = time.Minute
	maxLine     = 500     // bytes of a line with text of strangers
	maxPanic    = 8 << 10 // bytes of a panic with its stack, as one line
)

// Log prints lines. Its methods may be called by many goroutines, and until Close never block.
type Log struct {
	config Config
	lines  *lineQueue

	mu     sync.Mutex // guards what follows
	quotas map[Kind]*quota
	timer  *time.Timer // of the next summaries; nil: none wait
	closed bool
}

// New returns a log. Close it.
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
	return &Log{config: c, quotas: map[Kind]*quota{},
		lines: newLineQueue(c.Out, func(n int64) []byte { return []byte(c.Lost(n) + "\n") })}
}

// Print prints a line of a kind, if the kind's quota allows it; line is called only then, and
// for the last event of a summary.
func (l *Log) Print(k Kind, line func() string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed { // the server has ended
		_, _ = io.WriteString(l.config.Out, line()+"\n")
		return
	}
	q := l.quotas[k]
	if q == nil {
		q = newQuota(k.Trusted)
		l.quotas[k] = q
	}
	if !q.allows(time.Now(), 1+min(q.held, 1)) {
		q.held++
		q.last = line
		if l.timer == nil {
			l.timer = time.AfterFunc(summaryTime, l.summarize)
		}
		return
	}
	l.summary(k, q)
	l.lines.put([]byte(line() + "\n"))
}

// Note prints text that may be a stranger's as one bounded line of a kind.
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

// Write prints each line of a text as an event of the same kind: it stands in for standard
// error, for whatever knows of no kinds.
func (l *Log) Write(text []byte) (int, error) {
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line != "" {
			l.Note(Kind{Event: "note"}, line)
		}
	}
	return len(text), nil
}

// Results returns where a server prints its results: each write is printed as it is, without a quota.
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

// ErrorLog returns what a http.Server reports to. Any stranger can cause most of it.
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

// summarize prints what was held back longer than summaryTime, as far as quotas allow.
func (l *Log) summarize() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.timer = nil
	if l.closed {
		return
	}
	for _, k := range l.kinds() {
		if q := l.quotas[k]; q.held > 0 && q.allows(time.Now(), 1) {
			l.summary(k, q)
		}
		if l.quotas[k].held > 0 && l.timer == nil {
			l.timer = time.AfterFunc(summaryTime, l.summarize)
		}
	}
}

// summary prints how many events of a kind were held back. The lock is held.
func (l *Log) summary(k Kind, q *quota) {
	if q.held > 0 {
		l.lines.put([]byte(l.config.Summary(k, q.held, q.last()) + "\n"))
	}
	q.held = 0
	q.last = nil
}

// kinds returns all kinds in a fixed order.
func (l *Log) kinds() (all []Kind) {
	for k := range l.quotas {
		all = append(all, k)
	}
	slices.SortFunc(all, func(a, b Kind) int { return cmp.Compare(a.Event, b.Event) })
	return all
}

// Close prints the last summaries and waits a moment until all is written. What is printed after
// that is written at once.
func (l *Log) Close() {
	l.mu.Lock()
	if !l.closed {
		l.closed = true
		if l.timer != nil {
			l.timer.Stop()
		}
		for _, k := range l.kinds() {
			l.summary(k, l.quotas[k])
		}
	}
	l.mu.Unlock()
	l.lines.close(closeTime)
}
