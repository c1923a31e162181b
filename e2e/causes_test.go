//go:build linux

package e2e

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// pathPoint is a rate and a round trip for causes to act on.
type pathPoint struct {
	bps float64
	rtt time.Duration
}

func (p pathPoint) bdp() float64 { return p.bps / 8 * p.rtt.Seconds() }

func (p pathPoint) String() string {
	return fmt.Sprintf("%.3g Mbit/s × %.3g ms", p.bps/1e6, p.rtt.Seconds()*1e3)
}

// randomPoint draws from a span, evenly in the logarithm.
func randomPoint(r *rand.Rand, s span) pathPoint {
	between := func(a, b float64) float64 { return a * math.Pow(b/a, r.Float64()) }
	return pathPoint{math.Round(between(s.least, s.most)/1e4) * 1e4,
		time.Duration(between(s.shortest.Seconds(), s.widest.Seconds())*1e6) * time.Microsecond}
}

// free is a transfer that only its link limits: the lab's stack with cubic, buffers that grow as far as they
// need to, and a queue of two BDPs.
func (p pathPoint) free() setup {
	const grow = "cd /proc/sys/net/ipv4; echo 4096 16384 67108864 >tcp_wmem; echo 4096 131072 67108864 >tcp_rmem"
	return setup{
		path: p.path(max(2*p.bdp(), 60e3), ""),
		near: grow, far: grow,
		spec: transfer.Spec{Direction: transfer.Up, Time: min(max(4*time.Second, 60*p.rtt), 12*time.Second)},
	}
}

func (p pathPoint) path(queue float64, more string) string {
	return fmt.Sprintf("rate=%.0f,rtt=%v,queue=%.0fB%s", p.bps, p.rtt, queue, more)
}

func (p pathPoint) faster() pathPoint { p.bps *= 2; return p }

// cause is one thing that limits, put into a free transfer.
type cause struct {
	name    string
	limiter verdict.Name
	subtype string
	fits    func(p pathPoint) bool // whether it can limit at all here; nil: always
	with    func(p pathPoint, s *setup)
	// without takes the cause away again; nil is the free transfer.
	without func(p pathPoint, s *setup)
}

// big says that the path holds so many bytes.
func big(bytes float64) func(pathPoint) bool {
	return func(p pathPoint) bool { return p.bdp() >= bytes }
}

// unclipped says that a socket may ask for so many BDPs (net.core.rmem_max and wmem_max
// cannot be raised in a lab).
func unclipped(bdps float64) func(pathPoint) bool {
	return func(p pathPoint) bool { return bdps*p.bdp() <= 4<<20 }
}

// causes are those of the closed vocabulary that can be made and taken away in a lab.
func causes() []cause {
	bbr := func(_ pathPoint, s *setup) { s.spec.Near.Congestion = "bbr" }
	return []cause{
		// The kernel takes whole super-packets of 64 KiB beyond SO_SNDBUF.
		{"small send buffer", verdict.SendBuffer, "", big(250e3), func(p pathPoint, s *setup) {
			s.spec.Near.SendBuffer = int(p.bdp() / 6)
		}, nil},
		{"a sender's own rule (AFD, 8 KB)", verdict.SendBuffer, "", big(40e3), func(_ pathPoint, s *setup) {
			s.path += ",near.stack=windows-xp,far.stack=linux-6.18"
			s.near = ""
		}, func(_ pathPoint, s *setup) {
			s.path += ",near.stack=windows-xp,far.stack=linux-6.18"
			s.near = ""
			s.spec.Near.SendBuffer = 16 << 20
		}},
		{"fixed SO_RCVBUF", verdict.ReceiverWindow, verdict.Fixed, big(15e3), func(p pathPoint, s *setup) {
			s.spec.Far.ReceiveBuffer = int(p.bdp() / 3)
		}, nil},
		{"fixed SO_RCVBUF a little too small", verdict.ReceiverWindow, verdict.Fixed,
			func(p pathPoint) bool { return big(30e3)(p) && unclipped(0.6)(p) }, func(p pathPoint, s *setup) {
				s.spec.Far.ReceiveBuffer = int(0.6 * p.bdp())
			}, nil},
		{"fixed SO_RCVBUF on a path with jitter", verdict.ReceiverWindow, verdict.Fixed, big(30e3),
			func(p pathPoint, s *setup) {
				s.path += fmt.Sprintf(",jitter=%v", p.rtt/4)
				s.spec.Far.ReceiveBuffer = int(p.bdp() / 3)
			}, func(p pathPoint, s *setup) { s.path += fmt.Sprintf(",jitter=%v", p.rtt/4) }},
		{"fixed SO_RCVBUF, four streams", verdict.ReceiverWindow, verdict.Fixed, big(60e3), func(p pathPoint, s *setup) {
			s.spec.Streams, s.spec.Far.ReceiveBuffer = 4, int(p.bdp()/12)
		}, func(_ pathPoint, s *setup) { s.spec.Streams = 4 }},
		{"no window scaling", verdict.ReceiverWindow, verdict.Unscaled, big(110e3), func(_ pathPoint, s *setup) {
			s.path += ",strip=wscale"
		}, nil},
		{"slow reader", verdict.ReceiverApplication, "", nil, func(p pathPoint, s *setup) {
			s.spec.Program.ReadBps = p.bps / 3
		}, nil},
		{"writer with pauses", verdict.Application, "", nil, func(p pathPoint, s *setup) {
			s.spec.Program.WriteBps = p.bps / 3
		}, nil},
		{"loss under cubic", verdict.Congestion, "", big(20e3), func(p pathPoint, s *setup) {
			s.path += ",up.loss=2%"
		}, nil},
		{"loss under bbr", verdict.Congestion, "", big(20e3), func(p pathPoint, s *setup) {
			bbr(p, s)
			s.path += ",up.loss=25%"
		}, bbr},
		{"full link, deep queue", verdict.Bottleneck, "", nil, func(p pathPoint, s *setup) {
			s.path = p.path(max(4*p.bdp(), 100e3), "")
		}, func(p pathPoint, s *setup) { *s = p.faster().free() }},
		{"full link, queue of ten packets", verdict.Bottleneck, "", nil, func(p pathPoint, s *setup) {
			s.path = p.path(15000, "")
		}, func(p pathPoint, s *setup) { *s = p.faster().free() }},
		{"full link, shallow queue", verdict.Bottleneck, "", nil, func(p pathPoint, s *setup) {
			s.path = p.path(max(15000, p.bdp()/3), "")
		}, func(p pathPoint, s *setup) { *s = p.faster().free() }},
		{"full link under bbr", verdict.Bottleneck, "", nil, bbr,
			func(p pathPoint, s *setup) { *s = p.faster().free(); bbr(p, s) }},
		{"full link, four streams", verdict.Bottleneck, "", nil, func(_ pathPoint, s *setup) { s.spec.Streams = 4 },
			func(p pathPoint, s *setup) { *s = p.faster().free(); s.spec.Streams = 4 }},
		{"full link, down", verdict.Bottleneck, "", nil, func(_ pathPoint, s *setup) {
			s.spec.Direction = transfer.Down
		}, func(p pathPoint, s *setup) {
			*s = p.faster().free()
			s.spec.Direction = transfer.Down
		}},
		{"full link, full send buffer as well", verdict.Bottleneck, "", unclipped(1.5), func(p pathPoint, s *setup) {
			s.path = p.path(max(6*p.bdp(), 400e3), "")
			s.spec.Near.SendBuffer = max(int(1.5*p.bdp()), 40000)
		}, func(p pathPoint, s *setup) {
			*s = p.faster().free()
			s.spec.Near.SendBuffer = max(int(1.5*p.bdp()), 40000)
		}},
		{"full link, full small window as well", verdict.Bottleneck, "", unclipped(2.5), func(p pathPoint, s *setup) {
			s.path = p.path(max(6*p.bdp(), 300e3), "")
			s.spec.Far.ReceiveBuffer = max(int(2.5*p.bdp()), 40000)
		}, func(p pathPoint, s *setup) {
			*s = p.faster().free()
			s.spec.Far.ReceiveBuffer = max(int(2.5*p.bdp()), 40000)
		}},
		{"policer", verdict.Congestion, verdict.Policer, nil, func(p pathPoint, s *setup) {
			s.path += fmt.Sprintf(",up.police=%.0f/%.0f", p.bps/3, max(15000, p.bdp()/4))
		}, nil},
		{"MTU black hole", verdict.MTUBlackHole, "", nil, func(_ pathPoint, s *setup) {
			s.path += ",up.mtu=1400,up.icmp=drop"
		}, nil},
		// An acknowledgement for every two segments takes a fiftieth of their bytes.
		{"starved acknowledgements", verdict.AckPath, "", big(20e3), func(p pathPoint, s *setup) {
			s.path += fmt.Sprintf(",down.rate=%.0f,down.queue=%.0fB", p.bps/150, max(10000, p.bps/150/8*0.4))
		}, nil},
		{"short transfer", verdict.SlowStart, "", big(60e3), func(p pathPoint, s *setup) {
			s.spec.Bytes, s.spec.Time = int64(p.bdp()), 0
		}, nil},
		{"Nagle with delayed ACK", verdict.NagleDelayedAck, "", nil, func(_ pathPoint, s *setup) {
			s.spec.Program.RequestResponse = true
		}, func(_ pathPoint, s *setup) {
			s.spec.Program.RequestResponse, s.spec.Near.NoDelay = true, true
		}},
		{"local shaper (tbf)", verdict.LocalQueue, "", nil, func(p pathPoint, s *setup) {
			s.near += fmt.Sprintf("; tc qdisc add dev $DEVICE root tbf rate %.0f burst %.0f limit 4mb", p.bps/3,
				max(5000, p.bps/3/8*0.002))
		}, nil},
		{"local shaper (htb)", verdict.LocalQueue, "", nil, func(p pathPoint, s *setup) {
			s.near += fmt.Sprintf("; tc qdisc add dev $DEVICE root handle 1: htb default 1; tc class add dev $DEVICE parent "+
				"1: classid 1:1 htb rate %.0f burst 5000", p.bps/3)
		}, nil},
		{"local shaper under bbr", verdict.LocalQueue, "", nil, func(p pathPoint, s *setup) {
			bbr(p, s)
			s.near += fmt.Sprintf("; tc qdisc add dev $DEVICE root tbf rate %.0f burst %.0f limit 4mb", p.bps/3,
				max(5000, p.bps/3/8*0.002))
		}, bbr},
		{"paced socket", verdict.Pacing, "", nil, func(p pathPoint, s *setup) {
			s.spec.Near.PacingBps = p.bps / 3
		}, nil},
		{"paced socket under bbr", verdict.Pacing, "", nil, func(p pathPoint, s *setup) {
			bbr(p, s)
			s.spec.Near.PacingBps = p.bps / 3
		}, bbr},
		// A byte a write costs a system call each: a core gives some 10 Mbit/s.
		{"CPU-bound sender", verdict.CPU, "", func(p pathPoint) bool { return p.bps >= 20e6 }, func(_ pathPoint, s *setup) {
			s.spec.Program.WriteBytes = 1
		}, nil},
	}
}
