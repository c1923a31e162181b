//go:build linux

package e2e

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/lab"
	"github.com/fullpipe-net/fullpipe/internal/link"
)

// lineCell is a link that has to carry all that it can.
type lineCell struct {
	rate float64 // bit/s
	rtt  time.Duration
	six  bool // over IPv6
	// first has the programs that load the link come before what else the machine does. One that
	// does not read lets its kernel acknowledge 40 ms late, and no link is full then.
	first bool
}

func (c lineCell) String() string {
	return fmt.Sprintf("rate=%.0fbit,rtt=%v", c.rate, c.rtt)
}

// lineCells are all rates at all round trips, a third of them over IPv6.
func lineCells() (all []lineCell) {
	for _, mbit := range []float64{1, 2, 5, 10, 20, 37, 50, 100, 150, 200, 400, 900} {
		for _, ms := range []time.Duration{5, 11, 40, 120} {
			all = append(all, lineCell{mbit * 1e6, ms * time.Millisecond, len(all)%3 == 2, false})
		}
	}
	return all
}

// line is a lab with a sink at its far end.
type line struct {
	lab   *lab.Lab
	path  link.Path
	env   []string
	first bool
}

func startLine(t *testing.T, c lineCell, queue int64) *line {
	t.Helper()
	l, path := bench(t, fmt.Sprintf("%v,queue=%dB", c, queue))
	env := []string{lineAddress + "=" + l.Far.Addr.String(), fmt.Sprintf("%s=%.0f", lineRate, c.rate)}
	s := &line{l, path, env, c.first}
	if c.six {
		s.env[0] = lineAddress + "=" + l.Far.Addr6.String()
	}
	// Windows of any size: 900 Mbit/s at 120 ms has 41 MB under way with its queue. And no window
	// that shrinks where a busy machine keeps the sink from reading: the line is what is judged.
	const windows = "echo '4096 262144 268435456' >/proc/sys/net/ipv4/tcp_wmem; " +
		"echo '4096 268435456 268435456' >/proc/sys/net/ipv4/tcp_rmem"
	for _, end := range []*lab.End{l.Near, l.Far} {
		if _, err := end.Output("sh", "-ec", windows); err != nil {
			t.Fatal(err)
		}
	}
	sink := s.start(t, l.Far, "sink")
	l.Far.AwaitListener(t.Context(), sink)
	return s
}

// self is the command line of this program, in a session of the largest weight where it is to
// come first.
func (s *line) self(t *testing.T) []string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if !s.first {
		return []string{self}
	}
	return []string{"setsid", "-w", "sh", "-c", `echo -20 >/proc/self/autogroup; exec nice -n -20 "$0"`, self}
}

func (s *line) start(t *testing.T, end *lab.End, program string) *lab.Process {
	t.Helper()
	p, err := end.Start(lab.Command{Args: s.self(t), Env: append(s.env, programVariable+"="+program),
		Stderr: t.Output()})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// up answers what the link has carried and when, by its own clock, which no busy machine
// comes between.
func (s *line) up(t *testing.T) (up link.Counters, at time.Duration) {
	t.Helper()
	up, _, a, err := s.lab.Counted()
	if err != nil {
		t.Fatal(err)
	}
	return up, a.At
}

const lineMTU = 1500

// fullLine answers what share of its rate a link carries for one cubic connection once its
// queue, of 2 BDP, has been full.
func fullLine(t *testing.T, c lineCell, span time.Duration) (share float64, late lab.Account) {
	t.Helper()
	queue := max(int64(2*c.rate/8*c.rtt.Seconds()), 10*lineMTU)
	s := startLine(t, c, queue)
	defer s.lab.Close()
	s.start(t, s.lab.Near, "source")
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	limit := time.Now().Add(90 * time.Second)
	first, from := s.up(t)
	for first.QueuePeakBytes < queue-lineMTU {
		if time.Now().After(limit) {
			t.Errorf("%v: its queue was never full", c)
			return 0, late
		}
		<-tick.C
		first, from = s.up(t)
	}
	span = max(span, 20*c.rtt)
	last, to := first, from
	for to-from < span {
		<-tick.C
		before, since := last, to
		last, to = s.up(t)
		if got := float64(last.CarriedBytes-before.CarriedBytes) * 8 / (to - since).Seconds() / c.rate; got < 0.9 {
			t.Logf("%v: %.1f %% between %v and %v", c, 100*got, since-from, to-from)
		}
	}
	late, err := s.lab.Account()
	if err != nil {
		t.Fatal(err)
	}
	return float64(last.CarriedBytes-first.CarriedBytes) * 8 / (to - from).Seconds() / c.rate, late
}

const steadyQueue = 5 * time.Millisecond

// steadyLine answers what a link with a queue of 5 ms carries and drops of datagrams at 95 %
// of its rate, and how late it was with one at most. A sender that the machine held up has shown
// nothing, which is an error where the machine has nothing else to do.
func steadyLine(t *testing.T, c lineCell, span time.Duration) (up link.Counters, late lab.Account) {
	t.Helper()
	s := startLine(t, c, max(int64(c.rate/8*steadyQueue.Seconds()), 10*lineMTU))
	defer s.lab.Close()
	s.start(t, s.lab.Near, "steady")
	<-time.After(span)
	up, _ = s.up(t)
	late, err := s.lab.Account()
	if err != nil {
		t.Fatal(err)
	}
	if want := 0.5 * c.rate / 8 * span.Seconds(); float64(up.DeliveredBytes) < want {
		if !c.first {
			t.Errorf("%v: %d bytes came of %.0f at least: the sender was held up", c, up.DeliveredBytes, want)
		}
		late.Up.Stalled = span // not to be believed
	}
	return up, late
}

// exchangesOn answers how many requests a second are answered, as a share of what the
// round trip, the bits on the line and the machine's own floor allow.
func exchangesOn(t *testing.T, c lineCell) (share float64, late lab.Account) {
	t.Helper()
	s := startLine(t, c, max(int64(2*c.rate/8*c.rtt.Seconds()), 10*lineMTU))
	defer s.lab.Close()
	var out bytes.Buffer
	status, err := s.lab.Near.Run(lab.Command{Args: s.self(t), Env: append(s.env, programVariable+"=exchanges"),
		Stdout: &out, Stderr: t.Output()})
	if err != nil || status != 0 {
		t.Fatalf("status %d, %v", status, err)
	}
	got, err := strconv.ParseFloat(strings.TrimSpace(out.String()), 64)
	if err != nil {
		t.Fatal(err)
	}
	if late, err = s.lab.Account(); err != nil {
		t.Fatal(err)
	}
	headers := 20 + 32
	if c.six {
		headers += 20
	}
	mss := lineMTU - headers
	segments := (lineRequest + mss - 1) / mss
	bits := 8 * float64(lineRequest+segments*headers+1+headers)
	possible := 1 / (c.rtt.Seconds() + bits/c.rate + late.Floor.Seconds())
	return got / possible, late
}

// crowd makes the machine busy with two loops and a second lab until the test ends.
func crowd(t *testing.T) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		spin := exec.Command(self)
		spin.Env = append(os.Environ(), programVariable+"=spin")
		spin.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
		if err := spin.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { spin.Process.Kill(); spin.Wait() })
	}
	other := startLine(t, lineCell{100e6, 20 * time.Millisecond, false, false}, 500_000)
	other.start(t, other.lab.Near, "source")
}

// TestLinesAreFull holds links to what they are asked for, by their own counters.
func TestLinesAreFull(t *testing.T) {
	const span = 2 * time.Second
	full := func(t *testing.T, c lineCell) (late lab.Account, wrong error) {
		share, late := fullLine(t, c, span)
		return late, unless(share >= 0.995, "carried %.2f %% of its rate", 100*share)
	}
	steady := func(t *testing.T, c lineCell) (late lab.Account, wrong error) {
		up, late := steadyLine(t, c, span)
		return late, unless(up.DroppedQueue == 0, "dropped %d", up.DroppedQueue)
	}
	exchanges := func(t *testing.T, c lineCell) (late lab.Account, wrong error) {
		share, late := exchangesOn(t, c)
		return late, unless(share >= 0.98, "%.2f %% of the exchanges that are possible", 100*share)
	}
	for _, c := range []struct {
		name    string
		cell    lineCell
		measure func(*testing.T, lineCell) (lab.Account, error)
	}{
		// Their queues last longer than a busy machine keeps a program waiting.
		{"full", lineCell{20e6, 40 * time.Millisecond, false, false}, full},
		{"full", lineCell{50e6, 40 * time.Millisecond, true, false}, full},
		{"steady", lineCell{20e6, 11 * time.Millisecond, false, false}, steady},
		{"steady", lineCell{50e6, 40 * time.Millisecond, true, false}, steady},
		{"exchanges", lineCell{20e6, 40 * time.Millisecond, false, false}, exchanges},
	} {
		t.Run(c.name+" "+c.cell.String(), func(t *testing.T) {
			undisturbed(t, func() error {
				late, wrong := c.measure(t, c.cell)
				// A machine stands still for longer than a queue lasts once, a lab that stalls each time.
				for range 2 {
					if wrong == nil || late.Worse().Max < steadyQueue {
						break
					}
					late, wrong = c.measure(t, c.cell)
				}
				if wrong != nil {
					wrong = fmt.Errorf("%w, and the lab says that it was late by %+v at most", wrong, late.Worse())
				}
				return wrong
			})
		})
	}
}

// unless is an error where something does not hold.
func unless(holds bool, format string, args ...any) error {
	if holds {
		return nil
	}
	return fmt.Errorf(format, args...)
}
