//go:build linux

package harness

import (
	"fmt"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// causePoints are where Verify tries a cause: at the first that it fits.
var causePoints = []PathPoint{{10e6, 30 * time.Millisecond}, {15e6, 80 * time.Millisecond}, {18e6,
	120 * time.Millisecond},
	{20e6, 10 * time.Millisecond}}

// Causes returns the limiters that a lab can add and take away.
func Causes() []Cause {
	bbr := func(_ PathPoint, s *LabTransfer) { s.Spec.Near.Congestion = "bbr" }
	return []Cause{
		// The kernel takes whole super-packets of 64 KiB beyond SO_SNDBUF.
		{"small send buffer", verdict.SendBuffer, "", MinBDP(250e3), func(p PathPoint, s *LabTransfer) {
			s.Spec.Near.SendBuffer = int(p.BDP() / 6)
		}, nil},
		{"a sender's own rule (AFD, 8 KB)", verdict.SendBuffer, "", MinBDP(40e3), func(_ PathPoint, s *LabTransfer) {
			s.Path += ",near.stack=windows-xp,far.stack=linux-6.18"
			s.Near = ""
		}, func(_ PathPoint, s *LabTransfer) {
			s.Path += ",near.stack=windows-xp,far.stack=linux-6.18"
			s.Near = ""
			s.Spec.Near.SendBuffer = 16 << 20
		}},
		{"fixed SO_RCVBUF", verdict.ReceiverWindow, verdict.Fixed, MinBDP(15e3), func(p PathPoint, s *LabTransfer) {
			s.Spec.Far.ReceiveBuffer = int(p.BDP() / 3)
		}, nil},
		{"fixed SO_RCVBUF a little too small", verdict.ReceiverWindow, verdict.Fixed,
			func(p PathPoint) bool { return MinBDP(30e3)(p) && socketBuffersAllow(0.6)(p) }, func(p PathPoint, s *LabTransfer) {
				s.Spec.Far.ReceiveBuffer = int(0.6 * p.BDP())
			}, nil},
		{"fixed SO_RCVBUF on a path with jitter", verdict.ReceiverWindow, verdict.Fixed, MinBDP(30e3),
			func(p PathPoint, s *LabTransfer) {
				s.Path += fmt.Sprintf(",jitter=%v", p.RTT/4)
				s.Spec.Far.ReceiveBuffer = int(p.BDP() / 3)
			}, func(p PathPoint, s *LabTransfer) { s.Path += fmt.Sprintf(",jitter=%v", p.RTT/4) }},
		{"fixed SO_RCVBUF, four streams", verdict.ReceiverWindow, verdict.Fixed, MinBDP(60e3), func(p PathPoint,
			s *LabTransfer) {
			s.Spec.Far.ReceiveBuffer = int(p.BDP() / 12)
			s.Spec.Streams = 4
		}, func(_ PathPoint, s *LabTransfer) { s.Spec.Streams = 4 }},
		{"no window scaling", verdict.ReceiverWindow, verdict.Unscaled, MinBDP(110e3), func(_ PathPoint, s *LabTransfer) {
			s.Path += ",strip=wscale"
		}, nil},
		{"slow reader", verdict.ReceiverApplication, "", nil, func(p PathPoint, s *LabTransfer) {
			s.Spec.Program.ReadBps = p.RateBps / 3
		}, nil},
		{"writer with pauses", verdict.Application, "", nil, func(p PathPoint, s *LabTransfer) {
			s.Spec.Program.WriteBps = p.RateBps / 3
		}, nil},
		{"loss under cubic", verdict.Congestion, "", MinBDP(20e3), func(p PathPoint, s *LabTransfer) {
			s.Path += ",up.loss=2%"
		}, nil},
		{"loss under bbr", verdict.Congestion, "", MinBDP(20e3), func(p PathPoint, s *LabTransfer) {
			bbr(p, s)
			s.Path += ",up.loss=25%"
		}, bbr},
		{"full link, deep queue", verdict.Bottleneck, "", nil, func(p PathPoint, s *LabTransfer) {
			s.Path = p.LabPath(max(4*p.BDP(), 100e3), "")
		}, func(p PathPoint, s *LabTransfer) { *s = p.DoubleRate().UnlimitedTransfer() }},
		{"full link, queue of ten packets", verdict.Bottleneck, "", nil, func(p PathPoint, s *LabTransfer) {
			s.Path = p.LabPath(15000, "")
		}, func(p PathPoint, s *LabTransfer) { *s = p.DoubleRate().UnlimitedTransfer() }},
		{"full link, shallow queue", verdict.Bottleneck, "", nil, func(p PathPoint, s *LabTransfer) {
			s.Path = p.LabPath(max(15000, p.BDP()/3), "")
		}, func(p PathPoint, s *LabTransfer) { *s = p.DoubleRate().UnlimitedTransfer() }},
		{"full link under bbr", verdict.Bottleneck, "", nil, bbr,
			func(p PathPoint, s *LabTransfer) { *s = p.DoubleRate().UnlimitedTransfer(); bbr(p, s) }},
		{"full link, four streams", verdict.Bottleneck, "", nil, func(_ PathPoint, s *LabTransfer) { s.Spec.Streams = 4 },
			func(p PathPoint, s *LabTransfer) { *s = p.DoubleRate().UnlimitedTransfer(); s.Spec.Streams = 4 }},
		{"full link, down", verdict.Bottleneck, "", nil, func(_ PathPoint, s *LabTransfer) {
			s.Spec.Direction = transfer.Down
		}, func(p PathPoint, s *LabTransfer) {
			*s = p.DoubleRate().UnlimitedTransfer()
			s.Spec.Direction = transfer.Down
		}},
		{"full link, full send buffer as well", verdict.Bottleneck, "", socketBuffersAllow(1.5), func(p PathPoint,
			s *LabTransfer) {
			s.Path = p.LabPath(max(6*p.BDP(), 400e3), "")
			s.Spec.Near.SendBuffer = max(int(1.5*p.BDP()), 40000)
		}, func(p PathPoint, s *LabTransfer) {
			*s = p.DoubleRate().UnlimitedTransfer()
			s.Spec.Near.SendBuffer = max(int(1.5*p.BDP()), 40000)
		}},
		{"full link, full small window as well", verdict.Bottleneck, "", socketBuffersAllow(2.5), func(p PathPoint,
			s *LabTransfer) {
			s.Path = p.LabPath(max(6*p.BDP(), 300e3), "")
			s.Spec.Far.ReceiveBuffer = max(int(2.5*p.BDP()), 40000)
		}, func(p PathPoint, s *LabTransfer) {
			*s = p.DoubleRate().UnlimitedTransfer()
			s.Spec.Far.ReceiveBuffer = max(int(2.5*p.BDP()), 40000)
		}},
		{"policer", verdict.Congestion, verdict.Policer, nil, func(p PathPoint, s *LabTransfer) {
			s.Path += fmt.Sprintf(",up.police=%.0f/%.0f", p.RateBps/3, max(15000, p.BDP()/4))
		}, nil},
		{"MTU black hole", verdict.MTUBlackHole, "", nil, func(_ PathPoint, s *LabTransfer) {
			s.Path += ",up.mtu=1400,up.icmp=drop"
		}, nil},
		// An acknowledgement for every two segments takes a fiftieth of their bytes.
		{"starved acknowledgements", verdict.AckPath, "", MinBDP(20e3), func(p PathPoint, s *LabTransfer) {
			s.Path += fmt.Sprintf(",down.rate=%.0f,down.queue=%.0fB", p.RateBps/150, max(10000, p.RateBps/150/8*0.4))
		}, nil},
		{"short transfer", verdict.SlowStart, "", MinBDP(60e3), func(p PathPoint, s *LabTransfer) {
			s.Spec.Bytes = int64(p.BDP())
			s.Spec.Time = 0
		}, nil},
		{"Nagle with delayed ACK", verdict.NagleDelayedAck, "", nil, func(_ PathPoint, s *LabTransfer) {
			s.Spec.Program.RequestResponse = true
		}, func(_ PathPoint, s *LabTransfer) {
			s.Spec.Program.RequestResponse = true
			s.Spec.Near.NoDelay = true
		}},
		{"local shaper (tbf)", verdict.LocalQueue, "", nil, func(p PathPoint, s *LabTransfer) {
			s.Near += fmt.Sprintf("; tc qdisc add dev $DEVICE root tbf rate %.0f burst %.0f limit 4mb", p.RateBps/3,
				max(5000, p.RateBps/3/8*0.002))
		}, nil},
		{"local shaper (htb)", verdict.LocalQueue, "", nil, func(p PathPoint, s *LabTransfer) {
			s.Near += fmt.Sprintf("; tc qdisc add dev $DEVICE root handle 1: htb default 1; tc class add dev $DEVICE parent "+
				"1: classid 1:1 htb rate %.0f burst 5000", p.RateBps/3)
		}, nil},
		{"local shaper under bbr", verdict.LocalQueue, "", nil, func(p PathPoint, s *LabTransfer) {
			bbr(p, s)
			s.Near += fmt.Sprintf("; tc qdisc add dev $DEVICE root tbf rate %.0f burst %.0f limit 4mb", p.RateBps/3,
				max(5000, p.RateBps/3/8*0.002))
		}, bbr},
		{"paced socket", verdict.Pacing, "", nil, func(p PathPoint, s *LabTransfer) {
			s.Spec.Near.PacingBps = p.RateBps / 3
		}, nil},
		{"paced socket under bbr", verdict.Pacing, "", nil, func(p PathPoint, s *LabTransfer) {
			bbr(p, s)
			s.Spec.Near.PacingBps = p.RateBps / 3
		}, bbr},
		// A byte a write costs a system call each: a core gives some 10 Mbit/s.
		{"CPU-bound sender", verdict.CPU, "", func(p PathPoint) bool { return p.RateBps >= 20e6 }, func(_ PathPoint,
			s *LabTransfer) {
			s.Spec.Program.WriteBytes = 1
		}, nil},
	}
}
