package serverlog

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// output is a buffer that a test may read while a log writes.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

// lines returns what was written since the last call.
func (o *output) lines() (all []string) {
	synctest.Wait()
	o.mu.Lock()
	defer o.mu.Unlock()
	for line := range strings.Lines(o.text.String()) {
		all = append(all, strings.TrimSuffix(line, "\n"))
	}
	o.text.Reset()
	return all
}

// TestLog_Quota logs 10 events a second for 10 minutes: 24 lines at once, 6 a minute, and a summary one minute
// after the flood.
func TestLog_Quota(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out output
		l := New(Config{Out: &out})
		defer l.Close()
		n := 0
		event := func() {
			n++
			number := n // the log formats the last event of a flood later
			l.Print(Kind{Event: "refused"}, func() string { return fmt.Sprint("event ", number) })
		}
		for range 10_000 {
			event()
		}
		if lines := out.lines(); len(lines) != 24 || lines[23] != "event 24" {
			t.Errorf("%d lines at once: %q", len(lines), lines)
		}
		for minute := range 10 {
			for range 600 {
				time.Sleep(100 * time.Millisecond)
				event()
			}
			if lines := out.lines(); len(lines) != 6 {
				t.Errorf("minute %d: %d lines: %q", minute, len(lines), lines)
			}
		}
		for range 5 {
			event()
		}
		time.Sleep(2 * time.Minute)
		if lines := out.lines(); len(lines) != 1 || lines[0] != "5 more of this kind, the last: event 16005" {
			t.Errorf("after the flood: %q", lines)
		}
		time.Sleep(time.Hour)
		if lines := out.lines(); len(lines) != 0 {
			t.Errorf("without events: %q", lines)
		}
	})
}

// TestLog_EventsOfSeveralLines floods a log for a minute with events of 4 lines. The caller writes one of the 4
// elsewhere. At most 36 lines are printed, with the summary's.
func TestLog_EventsOfSeveralLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out output
		l := New(Config{Out: &out})
		elsewhere := 0
		for range 6000 {
			if l.PrintLines(Kind{Event: "failed"}, 4, func() string { return "a\nb\nc" }) {
				elsewhere++
			}
			time.Sleep(10 * time.Millisecond)
		}
		l.Close()
		text := strings.Join(out.lines(), "\n") + "\n"
		if n := strings.Count(text, "\n") + elsewhere; n > 36 || n < 24 || !strings.Contains(text, "more of this kind") {
			t.Errorf("%d lines, %d elsewhere: %q", n, elsewhere, text)
		}
	})
}

// TestLog_CountsSuppressedEvents adds up the lines and the counts of all summaries.
func TestLog_CountsSuppressedEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out output
		l := New(Config{Out: &out, Summary: func(_ Kind, count int64, _ string) string { return fmt.Sprint(count) }})
		const events = 5000
		for range events {
			time.Sleep(70 * time.Millisecond)
			l.Print(Kind{Event: "refused"}, func() string { return "event" })
		}
		l.Close()
		sum := 0
		for _, line := range out.lines() {
			n := 1
			fmt.Sscan(line, &n)
			sum += n
		}
		if sum != events {
			t.Errorf("%d events are accounted for, want %d", sum, events)
		}
	})
}

// TestLog_OneQuotaForStrangers floods two logs of a server with five kinds for a minute. With the last summary of each
// kind they print at most 36 lines.
func TestLog_OneQuotaForStrangers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out, errs output
		l := New(Config{Out: &out})
		other := New(Config{Out: &errs, Other: l})
		for range 6000 {
			for _, event := range []string{"refused", "http", "note"} {
				l.Print(Kind{Event: event}, func() string { return event })
			}
			for _, event := range []string{"error", "client"} {
				other.Print(Kind{Event: event}, func() string { return event })
			}
			time.Sleep(10 * time.Millisecond)
		}
		l.Close()
		other.Close()
		all := append(out.lines(), errs.lines()...)
		if len(all) > 36 || len(all) < 30 {
			t.Errorf("%d lines: %q", len(all), all)
		}
	})
}

// TestLog_TrustedKinds floods a trusted kind and one of strangers. After Close lines are written at once.
func TestLog_TrustedKinds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out output
		l := New(Config{Out: &out})
		for range 2000 {
			l.Print(Kind{Event: "refused"}, func() string { return "refused" })
			l.Print(Kind{Event: "client", Trusted: true}, func() string { return "client" })
			synctest.Wait()
		}
		l.Close()
		lines := out.lines()
		if len(lines) != 1026 || lines[1024] != "1000 more of this kind, the last: client" ||
			lines[1025] != "1976 more of this kind, the last: refused" {
			t.Errorf("%d lines, the last %q", len(lines), lines[max(len(lines)-3, 0):])
		}
		l.Note(Kind{Event: "refused"}, "late")
		if lines := out.lines(); len(lines) != 1 || lines[0] != "late" {
			t.Errorf("after Close: %q", lines)
		}
	})
}

// TestLog_UntrustedText checks that untrusted text becomes one line of limited length on every path into the log.
func TestLog_UntrustedText(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out output
		l := New(Config{Out: &out, Clean: func(s string) string { return strings.ReplaceAll(s, "\n", "|") }})
		defer l.Close()
		l.Note(Kind{Event: "a"}, "one\ntwo "+strings.Repeat("x", 1000))
		l.ErrorLog().Printf("http: TLS handshake error from 192.0.2.7:4000: \nforged")
		l.ErrorLog().Printf("http: panic serving 192.0.2.7:4000: oops\n%s", strings.Repeat("frame\n", 100))
		fmt.Fprint(l, "first\nsecond\n\n")
		lines := out.lines()
		want := []string{"one|two " + strings.Repeat("x", 492) + "...",
			"http: TLS handshake error from 192.0.2.7:4000: |forged",
			"http: panic serving 192.0.2.7:4000: oops" + strings.Repeat("|frame", 100), "first", "second"}
		if strings.Join(lines, "\n") != strings.Join(want, "\n") {
			t.Errorf("%q", lines)
		}
	})
}

// TestLog_ErrorLog floods the log with failed handshakes. A panic meanwhile is printed within a minute.
func TestLog_ErrorLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out output
		l := New(Config{Out: &out})
		defer l.Close()
		for n := range 17_111 {
			l.ErrorLog().Printf("http: TLS handshake error from 192.0.2.7:%d: EOF", n)
		}
		l.ErrorLog().Print("http: panic serving 192.0.2.7:4000: oops")
		time.Sleep(time.Minute)
		lines := out.lines()
		if len(lines) != 26 || !strings.HasSuffix(lines[25], "http: panic serving 192.0.2.7:4000: oops") {
			t.Errorf("%d lines, the last %q", len(lines), lines[len(lines)-2:])
		}
	})
}

// TestLog_UnreadOutput checks that a stalled reader blocks no caller, not even Close, and later gets the number of
// lost lines.
func TestLog_UnreadOutput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		unread, out := io.Pipe()
		l := New(Config{Out: out})
		began := time.Now()
		for n := range 5000 {
			l.Print(Kind{Event: fmt.Sprint(n % 100), Trusted: true}, func() string { return "event" })
			if n == 0 {
				synctest.Wait() // until its write has begun
			}
		}
		if waited := time.Since(began); waited != 0 {
			t.Errorf("callers waited %v", waited)
		}
		lines := make(chan string)
		go func() {
			text, _ := io.ReadAll(unread)
			lines <- string(text)
		}()
		l.Close()
		out.Close()
		text := <-lines
		if want := fmt.Sprintf("%d lines were lost", 5000-maxLines-1); !strings.Contains(text, want) {
			t.Errorf("not said: %s: %.300s", want, text)
		}
	})
}

// TestLog_UnreadResults checks that results have no quota, and that the unread bytes are limited.
func TestLog_UnreadResults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		unread, out := io.Pipe()
		l := New(Config{Out: out})
		results, big := l.Results(), bytes.Repeat([]byte("x"), maxBytes/4)
		for n := range 10 {
			if written, err := results.Write(big); written != len(big) || err != nil {
				t.Fatal(written, err)
			}
			if n == 0 {
				synctest.Wait() // until its write has begun
			}
		}
		text := make(chan string)
		go func() {
			all, _ := io.ReadAll(unread)
			text <- string(all)
		}()
		l.Close()
		must.Get(results.Write([]byte("late")))(t)
		out.Close()
		if got := <-text; strings.Count(got, "x") != maxBytes || !strings.Contains(got, "6 lines were lost") ||
			!strings.HasSuffix(got, "late") {
			t.Errorf("%d bytes, the end %q", len(got), got[max(len(got)-60, 0):])
		}
	})
}

// TestLog_CloseHasTimeout never reads the log.
func TestLog_CloseHasTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		unread, out := io.Pipe()
		l := New(Config{Out: out})
		l.Note(Kind{Event: "a"}, "one")
		began := time.Now()
		if l.Close(); time.Since(began) != closeTimeout {
			t.Errorf("Close took %v", time.Since(began))
		}
		unread.Close() // ends the write
	})
}
