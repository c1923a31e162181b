package text

import (
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// TestCulprits checks that each limiter has a culprit and a sentence for a browser's user.
func TestCulprits(t *testing.T) {
	for name, want := range map[verdict.Name][2]Culprit{ // of a download, of an upload
		verdict.Bottleneck: {YourLine, YourLine}, verdict.Congestion: {Loss, Loss},
		verdict.ReceiverWindow: {YourWindow, OurServer}, verdict.ReceiverApplication: {YourDevice, OurServer},
		verdict.Application: {OurServer, YourDevice}, verdict.Sender: {OurServer, YourDevice},
		verdict.CPU: {OurServer, YourDevice}, verdict.SlowStart: {TooShort, TooShort},
		verdict.Unknown: {NotKnown, NotKnown}, verdict.Mixed: {NotKnown, NotKnown},
	} {
		for i, direction := range []transfer.Direction{transfer.Up, transfer.Down} {
			bps := 94e6
			d := &record.Direction{Direction: direction, GoodputBps: &bps, Verdict: verdict.Verdict{Limiter: name,
				Confidence: verdict.Low}}
			if got := CulpritOf(d); got != want[i] {
				t.Errorf("%s %s: %s, want %s", direction, name, got, want[i])
			}
			said := BrowserSentence(d)
			if !strings.Contains(said, "94 Mbit/s") || strings.Count(said, ".") != 1 || strings.Contains(said, " is ") &&
				!strings.Contains(said, "probably") && want[i] != NotKnown && want[i] != TooShort {
				t.Errorf("%s %s: %q", direction, name, said)
			}
		}
	}
}

func TestSeveralConnections(t *testing.T) {
	of := func(bps float64, limiter verdict.Name) *record.Direction {
		return &record.Direction{GoodputBps: &bps, Streams: make([]record.Stream, 4),
			Verdict: verdict.Verdict{Limiter: limiter}}
	}
	for want, several := range map[string]*record.Direction{
		"4 connections at once are no faster.":                                     of(11e6, verdict.Bottleneck),
		"4 connections at once reach 40 Mbit/s: one alone does not fill the line.": of(40e6, verdict.Bottleneck),
		"4 connections at once reach 40 Mbit/s.":                                   of(40e6, verdict.Congestion),
	} {
		if got := SeveralSentence(of(10e6, verdict.Congestion), several); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
