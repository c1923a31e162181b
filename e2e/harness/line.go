//go:build linux

package harness

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/lab"
	"github.com/fullpipe-net/fullpipe/internal/link"
)

// LineCase is a link that has to carry its full rate.
type LineCase struct {
	RateBps float64 // bit/s
	RTT     time.Duration
	IPv6    bool // over IPv6
	// Priority has the programs that load the link come before what else the machine does. One that
	// does not read lets its kernel acknowledge 40 ms late, and no link is full then.
	Priority bool
}

func (c LineCase) String() string {
	return fmt.Sprintf("rate=%.0fbit,rtt=%v", c.RateBps, c.RTT)
}

// Line is a lab with a sink at its far end.
type Line struct {
	Lab      *lab.Lab
	path     link.Path
	env      []string
	priority bool
}

// StartLine starts a lab for a case with a queue in bytes, and a sink at its far end.
func StartLine(t *testing.T, c LineCase, queue int64) *Line {
	t.Helper()
	l, path := StartLab(t, fmt.Sprintf("%v,queue=%dB", c, queue))
	env := []string{LineAddressVariable + "=" + l.Far.Addr.String(), fmt.Sprintf("%s=%.0f", lineRateVariable, c.RateBps)}
	s := &Line{l, path, env, c.Priority}
	if c.IPv6 {
		s.env[0] = LineAddressVariable + "=" + l.Far.Addr6.String()
	}
	// Windows of any size: 900 Mbit/s at 120 ms has 41 MB in flight with its queue. The window never shrinks where a
	// busy machine delays the sink's reads: only the line is under test.
	const windows = "echo '4096 262144 268435456' >/proc/sys/net/ipv4/tcp_wmem; " +
		"echo '4096 268435456 268435456' >/proc/sys/net/ipv4/tcp_rmem"
	for _, end := range []*lab.End{l.Near, l.Far} {
		if _, err := end.Output("sh", "-ec", windows); err != nil {
			t.Fatal(err)
		}
	}
	sink := s.Start(t, l.Far, "sink")
	l.Far.AwaitListener(t.Context(), sink)
	return s
}

// self returns the command line of this program, in a session of the largest weight if it has priority.
func (s *Line) self(t *testing.T) []string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if !s.priority {
		return []string{self}
	}
	return []string{"setsid", "-w", "sh", "-c", `echo -20 >/proc/self/autogroup; exec nice -n -20 "$0"`, self}
}

// Start starts a helper program at one end.
func (s *Line) Start(t *testing.T, end *lab.End, program string) *lab.Process {
	t.Helper()
	p, err := end.Start(lab.Command{Args: s.self(t), Env: append(s.env, ProgramVariable+"="+program),
		Stderr: t.Output()})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// up returns the link's counters towards the far end and their time by the link's own clock.
func (s *Line) up(t *testing.T) (up link.Counters, at time.Duration) {
	t.Helper()
	up, _, a, err := s.Lab.Counted()
	if err != nil {
		t.Fatal(err)
	}
	return up, a.At
}

// lineMTU is the MTU of the links in bytes.
const lineMTU = 1500

// MeasureFullLine returns the share of its rate that a link carries for one cubic connection once its queue of two
// BDPs has been full.
func MeasureFullLine(t *testing.T, c LineCase, span time.Duration) (share float64, late lab.Lateness) {
	t.Helper()
	queue := max(int64(2*c.RateBps/8*c.RTT.Seconds()), 10*lineMTU)
	s := StartLine(t, c, queue)
	defer s.Lab.Close()
	s.Start(t, s.Lab.Near, "source")
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
	span = max(span, 20*c.RTT)
	last := first
	to := from
	for to-from < span {
		<-tick.C
		before := last
		since := to
		last, to = s.up(t)
		if got := float64(last.CarriedBytes-before.CarriedBytes) * 8 / (to - since).Seconds() / c.RateBps; got < 0.9 {
			t.Logf("%v: %.1f %% between %v and %v", c, 100*got, since-from, to-from)
		}
	}
	late, err := s.Lab.Lateness()
	if err != nil {
		t.Fatal(err)
	}
	return float64(last.CarriedBytes-first.CarriedBytes) * 8 / (to - from).Seconds() / c.RateBps, late
}

// PacedQueue is the queue of the links that MeasurePacedLine loads, as time.
const PacedQueue = 5 * time.Millisecond

// MeasurePacedLine returns the packets that a link with a queue of PacedQueue carries and drops of datagrams at 95 %
// of its rate. If the sender was delayed, the account marks the run as not believable; if the case has priority, that
// also fails the test.
func MeasurePacedLine(t *testing.T, c LineCase, span time.Duration) (up link.Counters, late lab.Lateness) {
	t.Helper()
	s := StartLine(t, c, max(int64(c.RateBps/8*PacedQueue.Seconds()), 10*lineMTU))
	defer s.Lab.Close()
	s.Start(t, s.Lab.Near, "steady")
	<-time.After(span)
	up, _ = s.up(t)
	late, err := s.Lab.Lateness()
	if err != nil {
		t.Fatal(err)
	}
	if want := 0.5 * c.RateBps / 8 * span.Seconds(); float64(up.DeliveredBytes) < want {
		if !c.Priority {
			t.Errorf("%v: %d bytes came of %.0f at least: the sender was delayed", c, up.DeliveredBytes, want)
		}
		late.Up.Stalled = span // not to be believed
	}
	return up, late
}

// MeasureExchanges returns the rate of request-response exchanges as a share of what the RTT, the serialization
// time and the machine's own floor allow.
func MeasureExchanges(t *testing.T, c LineCase) (share float64, late lab.Lateness) {
	t.Helper()
	s := StartLine(t, c, max(int64(2*c.RateBps/8*c.RTT.Seconds()), 10*lineMTU))
	defer s.Lab.Close()
	var out bytes.Buffer
	status, err := s.Lab.Near.Run(lab.Command{Args: s.self(t), Env: append(s.env, ProgramVariable+"=exchanges"),
		Stdout: &out, Stderr: t.Output()})
	if err != nil || status != 0 {
		t.Fatalf("status %d, %v", status, err)
	}
	got, err := strconv.ParseFloat(strings.TrimSpace(out.String()), 64)
	if err != nil {
		t.Fatal(err)
	}
	late, err = s.Lab.Lateness()
	if err != nil {
		t.Fatal(err)
	}
	headers := 20 + 32
	if c.IPv6 {
		headers += 20
	}
	mss := lineMTU - headers
	segments := (lineRequest + mss - 1) / mss
	bits := 8 * float64(lineRequest+segments*headers+1+headers)
	possible := 1 / (c.RTT.Seconds() + bits/c.RateBps + late.Floor.Seconds())
	return got / possible, late
}
