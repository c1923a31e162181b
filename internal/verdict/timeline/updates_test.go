package timeline

import (
	"fmt"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/flow"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// probe is how a sender asks for a closed window.
type probe string

const (
	oldEmpty probe = "an empty segment below" // Linux
	oldByte  probe = "a byte below"
	newByte  probe = "the next byte" // BSD, Windows
)

// closing plays a window of some segments that closes each time. A probe makes the receiver announce that it is open,
// or the receiver does of its own accord after late nanoseconds, between two probes.
func closing(t *testing.T, segments int, rtt, loop, late int64, by probe) (Diagnosis, *flow.Direction) {
	t.Helper()
	const mss = 1460
	x := newTape(rtt, loop)
	x.all[0].Scale = 0
	x.all[1].Scale = 0
	x.all[1].Window = uint16(segments * mss)
	ack := func(at int64, pos, window int) {
		x.ack(at+rtt-loop, pos, 0)
		x.all[len(x.all)-1].Window = uint16(window)
	}
	asks := func(at int64, pos int) {
		x.data(at, pos-1, 1, 0)
		last := &x.all[len(x.all)-1]
		switch by {
		case oldEmpty:
			last.Payload = 0
		case newByte:
			last.Seq++
		}
	}
	at := 2*rtt + 10*ms
	pos := 0
	for round := range 12 {
		for range segments {
			x.data(at, pos, mss, 0)
			pos += mss
			at += 100_000
		}
		ack(at, pos, 0)
		after := (200 * ms) << (round % 4)
		if late > 0 {
			asks(at+after, pos)
			ack(at+after, pos, 0)
			at += after + late
			ack(at, pos, segments*mss)
		} else {
			at += after
			asks(at, pos)
			if by == newByte {
				pos++
			}
			ack(at, pos, segments*mss)
		}
		at += rtt
	}
	return x.judge(t)
}

// TestJudge_WindowThatOpensOnlyForProbes checks that a receiver whose TCP sends no window updates does not have a slow
// program, and that one that sends them has.
func TestJudge_WindowThatOpensOnlyForProbes(t *testing.T) {
	for _, segments := range []int{1, 2, 6, 40} {
		for _, percent := range []int64{1, 50, 99} { // the loop's part of the round trip
			for _, by := range []probe{oldEmpty, oldByte, newByte} {
				for _, rtt := range []int64{ms, 30 * ms} {
					t.Run(fmt.Sprintf("%d segments, tap at %d %%, %s, %d ms", segments, percent, by, rtt/ms), func(t *testing.T) {
						g, d := closing(t, segments, rtt, rtt*percent/100, 0, by)
						if g.Limiter != verdict.ReceiverWindow || g.Subtype != verdict.NoUpdates || g.Confidence == verdict.Low {
							t.Errorf("%s %s (%s) %v, %d of %d %v %v %v", g.Confidence, g.Limiter, g.Subtype, g.Shares, d.ProbedOpenings,
								d.Openings, g.Vantage, g.Evidence, g.RTT)
						}
						if e := evidenceOf(&g, verdict.CapturedNoUpdates); e["openings"] < 10 {
							t.Error(g.Evidence)
						}
						g, _ = closing(t, segments, rtt, rtt*percent/100, 3*rtt+70*ms, by)
						if g.Limiter != verdict.ReceiverApplication {
							t.Errorf("slow program: %s %s (%s) %v", g.Confidence, g.Limiter, g.Subtype, g.Shares)
						}
					})
				}
			}
		}
	}
}
