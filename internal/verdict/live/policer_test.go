package live

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// TestJudge_Policers checks recordings of kernel TCP in the lab: loss at random or in bursts and queues of 10 to 64
// packets are no policer, also where the rate that they leave is steady. Of the policers, of 2.6 to 207 Mbit/s with
// buckets of 60 kB to 1 MB, one is missed: it lost once in its time.
func TestJudge_Policers(t *testing.T) {
	files, err := filepath.Glob("testdata/congestion_*.json.gz")
	if err != nil || len(files) < 25 {
		t.Fatalf("%d recorded transfers, %v", len(files), err)
	}
	policers := 0
	for _, name := range files {
		v := Judge(recorded(t, name))
		policer := v.Limiter == verdict.Congestion && v.Subtype == verdict.Policer
		if policer && !strings.Contains(name, "policer") {
			t.Errorf("%s: a policer, %v", filepath.Base(name), v.Evidence)
		}
		if policer {
			policers++
		}
	}
	if policers < 8 {
		t.Errorf("%d of 9 policers found", policers)
	}
}

// TestJudge_PolicerByQueueAtLoss checks losses of many segments at once behind a round trip that grows by various times
// before them. At 3 Mbit/s their 40 segments take 160 ms.
func TestJudge_PolicerByQueueAtLoss(t *testing.T) {
	for _, c := range []struct {
		name  string
		grown time.Duration // the round trip when losses begin
		want  string
	}{
		{"no queue", 0, verdict.Policer},
		{"a queue of four packets", 15 * ms, verdict.Policer},
		{"a queue of twelve packets", 45 * ms, ""},
		{"a queue of all that is lost", 160 * ms, ""},
	} {
		lost := int64(0)
		v := Judge(steady(3e6, 20*ms, func(i int, s, _ *transfer.Sample) {
			if i%50 == 27 {
				lost += 40
			}
			s.RTT = 20*ms + time.Duration(i%50)*10*ms/25
			if i%50 == 26 || i%50 == 27 {
				s.RTT = 20*ms + c.grown
			}
			s.RTTVar = 0
			s.Retransmitted, s.RetransmittedBytes = lost, lost*1448
			s.NotSent, s.Cwnd, s.Ssthresh = 1<<20, s.InFlight, s.InFlight
		}))
		if v.Subtype != c.want {
			t.Errorf("%s: %s (%s), want %q; %v", c.name, v.Limiter, v.Subtype, c.want, v.Evidence)
		}
	}
}

// TestJudge_PolicerByLossDispersion checks cases with equal rate and equal loss that differ in how many segments are
// lost at once.
func TestJudge_PolicerByLossDispersion(t *testing.T) {
	losing := func(lost func(i int) int64) *transfer.Result {
		var sum int64
		return steady(3e6, 60*ms, func(i int, s, _ *transfer.Sample) {
			sum += lost(i)
			s.Retransmitted, s.RetransmittedBytes = sum, sum*1448
			s.NotSent, s.Cwnd = 1<<20, s.InFlight
		})
	}
	for _, c := range []struct {
		name string
		lost func(i int) int64
		want string
	}{
		{"one at a time, irregularly", func(i int) int64 { return int64(i * 7919 % 101 / 50) }, ""},
		{"one at a time, regularly", func(i int) int64 { return int64(i % 2) }, ""},
		{"ten at once", func(i int) int64 {
			if i%20 == 7 {
				return 10
			}
			return 0
		}, verdict.Policer},
	} {
		v := Judge(losing(c.lost))
		if v.Limiter != verdict.Congestion || v.Subtype != c.want {
			t.Errorf("%s: %s (%s), want congestion (%s); %v", c.name, v.Limiter, v.Subtype, c.want, v.Evidence)
		}
	}
}

// TestJudge_ShortQueueBelowLinkRate checks a sender below a link's rate that loses 24 segments at once. A short queue
// lengthens the round trip only then. A policer never does, and drops at one rate. Five packets take 16 ms at 3.75
// Mbit/s.
func TestJudge_ShortQueueBelowLinkRate(t *testing.T) {
	for _, c := range []struct {
		name    string
		grown   time.Duration // the round trip when losses begin
		shrinks int64         // percent of the window at which losses begin, each second time
		want    verdict.Confidence
	}{
		{"no queue, one rate", 0, 0, verdict.Medium},
		{"no queue, rates of 92 and 100 %", 0, 8, verdict.Medium},
		{"no queue, rates of 80 and 100 %", 0, 20, verdict.Low},
		{"a queue of a packet and a half", 5 * ms, 0, verdict.Medium},
		{"a queue of 30 packets on 45 Mbit/s", 8 * ms, 0, ""},
		{"a queue of 30 packets on 24 Mbit/s", 15 * ms, 0, ""},
	} {
		lost := int64(0)
		v := Judge(steady(3.75e6, 70*ms, func(i int, s, _ *transfer.Sample) {
			s.Cwnd, s.Ssthresh = s.InFlight, s.InFlight*7/10
			if i%50 == 27 {
				lost += 24
				s.RTT += c.grown
			}
			if i%100 == 26 {
				s.Cwnd -= s.Cwnd * c.shrinks / 100
			}
			s.RTTVar = 0
			s.Retransmitted, s.RetransmittedBytes = lost, lost*1448
			s.NotSent = 1 << 20
		}))
		sure := verdict.Confidence("")
		if v.Subtype == verdict.Policer {
			sure = v.Confidence
		}
		if sure != c.want || v.Limiter == verdict.Bottleneck {
			t.Errorf("%s: %s, a policer %q; want %q; %v", c.name, v.Limiter, sure, c.want, v.Evidence)
		}
	}
}

// TestJudge_BurstBeforeSmallLosses checks a transfer that delivers a burst, loses 300 segments of it, then 5 at a time
// behind a queue of 3 ms. At 20 Mbit/s the mean loss takes 62 ms. A policer's losses begin at one rate.
func TestJudge_BurstBeforeSmallLosses(t *testing.T) {
	for shrinks, want := range map[int64]string{0: verdict.Policer, 30: ""} {
		lost := int64(0)
		v := Judge(steady(20e6, 50*ms, func(i int, s, _ *transfer.Sample) {
			s.Cwnd, s.Ssthresh, s.RTTVar = s.InFlight, s.InFlight*6/10, 0
			switch {
			case i <= 10:
				s.DeliveryBps, s.Ssthresh = 2*s.DeliveryBps, 4*s.InFlight
			case i == 11:
				lost += 300
				s.DeliveryBps *= 2
			case i == 71 || i == 131:
				lost += 5
				s.RTT += 3 * ms
			}
			if i == 70 {
				s.Cwnd -= s.Cwnd * shrinks / 100
			}
			s.Retransmitted, s.RetransmittedBytes = lost, lost*1448
		}))
		if v.Subtype != want {
			t.Errorf("%d %% between: %s (%s), want %q; %v", shrinks, v.Limiter, v.Subtype, want, v.Evidence)
		}
	}
}

// TestJudge_QueueAtLaterLosses checks losses of slow start, without a queue, and fewer later ones with a queue or none.
func TestJudge_QueueAtLaterLosses(t *testing.T) {
	for grown, want := range map[time.Duration]verdict.Confidence{0: verdict.Medium, 8 * ms: verdict.Low} {
		lost := int64(0)
		v := Judge(steady(3.75e6, 70*ms, func(i int, s, _ *transfer.Sample) {
			s.Cwnd, s.Ssthresh, s.RTTVar = s.InFlight, s.InFlight*7/10, 0
			if i <= 110 {
				s.Ssthresh = 2 * s.InFlight
			}
			if i%20 == 7 {
				lost += 24
			}
			if i%20 == 7 && i > 120 {
				s.RTT += grown
			}
			s.Retransmitted, s.RetransmittedBytes = lost, lost*1448
		}))
		if v.Subtype != verdict.Policer || v.Confidence != want {
			t.Errorf("%v: %s (%s), %s; want a policer, %s; %v", grown, v.Limiter, v.Subtype, v.Confidence, want, v.Evidence)
		}
	}
}
