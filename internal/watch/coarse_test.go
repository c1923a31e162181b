package watch

import (
	"slices"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// What the readings between two dumps showed of the moment divides what the clocks leave to
// the network.
func TestCoarseByReadings(t *testing.T) {
	ms := time.Millisecond
	sending := func(s *Told) {}
	for _, c := range []struct {
		name    string
		reading Told        // all are alike
		with    func(*Told) // the last one
		want    verdict.Name
		also    []verdict.Name // candidates, at least
	}{
		{"a full buffer, all on its way", Told{SendBuffer: 32000, SendQueued: 40000}, sending, verdict.SendBuffer, nil},
		{"the same, and a link that may be full", Told{SendBuffer: 32000, SendQueued: 40000},
			func(t *Told) { t.Sample.RTT, t.Sample.MinRTT = 90*ms, 40*ms }, verdict.Unknown,
			[]verdict.Name{verdict.SendBuffer, verdict.Bottleneck, verdict.AckPath}},
		{"the same, and something came", Told{SendBuffer: 32000, SendQueued: 40000},
			func(t *Told) { t.Sample.Received = 1 }, verdict.Sender, []verdict.Name{verdict.Application, verdict.SendBuffer}},
		{"a buffer with room", Told{SendBuffer: 100_000, SendQueued: 20_000}, sending, verdict.Application, nil},
		{"one that was never full", Told{SendBuffer: 100_000, SendQueued: 60_000}, sending, verdict.Application, nil},
		{"less than a segment waits", Told{SendBuffer: 100_000, SendQueued: 4000,
			Sample: transfer.Sample{NotSent: 1000, InFlight: 1000}}, sending, verdict.Unknown,
			[]verdict.Name{verdict.NagleDelayedAck}},
		{"a full window behind a queue", Told{SendBuffer: 100_000, SendQueued: 100_000,
			Sample: transfer.Sample{NotSent: 50_000, SendWnd: 50_000}},
			func(t *Told) {
				t.Sample.RTT, t.Sample.MinRTT, t.Sample.ReceiveLimited = 500*ms, 40*ms, t.Sample.At
			}, verdict.Unknown, []verdict.Name{verdict.ReceiverWindow, verdict.Bottleneck}},
		{"a buffer that the kernel's clock says is full, behind a queue", Told{SendBuffer: 100_000, SendQueued: 100_000,
			Sample: transfer.Sample{NotSent: 50_000}},
			func(t *Told) {
				t.Sample.RTT, t.Sample.MinRTT, t.Sample.SendLimited = 500*ms, 40*ms, t.Sample.At
			}, verdict.Unknown, []verdict.Name{verdict.SendBuffer, verdict.Bottleneck}},
		{"data waits", Told{SendBuffer: 100_000, SendQueued: 100_000, Sample: transfer.Sample{NotSent: 50_000}}, sending,
			verdict.Unknown, network},
	} {
		from := counters{Have: clocks}
		var seen tally
		for i := range 4 {
			c.reading.Sample.Have, c.reading.Sample.Cwnd = clocks, 100_000
			c.reading.Sample.At = time.Duration(i+1) * 500 * ms
			c.reading.Sample.Busy, c.reading.Sample.Acked = c.reading.Sample.At, int64(i+1)*50_000
			c.reading.Sample.RTT, c.reading.Sample.MinRTT = 40*ms, 40*ms
			seen.add(&c.reading, 1448)
		}
		c.with(&c.reading)
		v := coarse(&from, &c.reading.Sample, seen)
		if v.Limiter != c.want || v.Confidence == verdict.High {
			t.Errorf("%s: %s, %s, %v", c.name, v.Limiter, v.Confidence, v.Shares)
		}
		for _, n := range c.also {
			if !slices.Contains(v.Candidates, n) {
				t.Errorf("%s: %s is not a candidate of %v", c.name, n, v.Candidates)
			}
		}
		if told := v.Evidence[0].Values["receiver_ratio"]; (told > 0) != (c.reading.Sample.ReceiveLimited > 0) {
			t.Errorf("%s: the clocks are told to say that the window held %v of the time", c.name, told)
		}
		sums(t, c.name, v)
	}
}

// A connection on which nothing gets through is shown as long as something is to.
func TestStuck(t *testing.T) {
	second := time.Second
	told := func(at time.Duration) Told {
		return Told{Cookie: 1, Established: true, SendBuffer: 100_000, ReceiveBuffer: 100_000,
			Sample: transfer.Sample{At: at, Have: clocks | transfer.HaveReceiveWnd | transfer.HaveAcked, Busy: at}}
	}
	look := func(change func(*Told)) []Seen {
		a := NewAccount()
		for i := range 6 {
			one := told(time.Duration(i) * second / 2)
			change(&one)
			a.Read(one)
			if i == 0 {
				a.Period(func(*Connection) {})
			}
		}
		v := View{Length: 2 * second}
		a.look(&v, v.Length, &Config{}, func(*Connection) Owner { return Owner{} })
		return v.Seen
	}
	if seen := look(func(t *Told) { t.Sample.Busy = 0 }); len(seen) != 0 {
		t.Errorf("an idle one: %+v", seen)
	}
	shut := look(func(t *Told) { t.Unacked, t.Sample.NotSent, t.Sample.ReceiveLimited = 5000, 5000, t.Sample.At })
	if len(shut) != 1 || shut[0].Flows[0].Verdict.Limiter != verdict.ReceiverApplication {
		t.Errorf("a window that is shut: %+v", shut)
	}
	unread := look(func(t *Told) { t.Unread, t.Sample.Busy = 90_000, 0 })
	if len(unread) != 1 || unread[0].Flows[0].Direction != transfer.Down ||
		unread[0].Flows[0].Verdict.Limiter != verdict.ReceiverApplication {
		t.Errorf("unread data: %+v", unread)
	}
}

// The clocks of a connection that began in the period began at 0.
func TestOneThatBeganIsJudged(t *testing.T) {
	a := NewAccount()
	a.Dumped(0)
	told := func(at, busy time.Duration, acked int64) Told {
		return Told{Cookie: 1, Established: true, Sample: transfer.Sample{At: at, Have: clocks | transfer.HaveAcked,
			Busy: busy, Acked: acked, Sent: acked}}
	}
	a.Read(told(time.Second, 0, 0))
	c := a.Read(told(3*time.Second, 200*time.Millisecond, 100_000))
	if v := c.flow(transfer.Up).Verdict; v.Limiter != verdict.Application {
		t.Errorf("%s of %v: %v", v.Limiter, v.Shares, v.Evidence)
	}
}

// Where a small segment waits for an acknowledgement in some readings, what the others show of an idle
// dialogue does not make it the program's.
func TestCoarseNagle(t *testing.T) {
	ms := time.Millisecond
	from := counters{Have: clocks}
	var seen tally
	one := Told{SendBuffer: 100_000, SendQueued: 2000}
	for i := range 5 {
		at := time.Duration(i+1) * 500 * ms
		one.Sample = transfer.Sample{At: at, Busy: at, Have: clocks, Cwnd: 15_000, InFlight: 1000, RTT: 100 * ms,
			MinRTT: 100 * ms, Acked: int64(i+1) * 5000, Received: int64(i)}
		if i == 2 {
			one.Sample.NotSent = 1000
		}
		seen.add(&one, 1448)
	}
	v := coarse(&from, &one.Sample, seen)
	if v.Limiter != verdict.Unknown || !slices.Contains(v.Candidates, verdict.NagleDelayedAck) ||
		!slices.Contains(v.Candidates, verdict.Application) {
		t.Errorf("%s of %v, %v", v.Limiter, v.Shares, v.Candidates)
	}
	sums(t, "Nagle", v)
}
