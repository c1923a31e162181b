package text

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/advice"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/rfc6349"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// TestRFC6349Sentences checks that each code of package rfc6349 has a sentence whose arguments fit its format, and
// the wording of those with arguments.
func TestRFC6349Sentences(t *testing.T) {
	source, err := os.ReadFile("../../rfc6349/notes.go")
	if err != nil {
		t.Fatal(err)
	}
	s := rfc6349.Statement{Direction: transfer.Up, Limiter: verdict.Congestion, Subtype: "loss", Cause: "no route",
		Names: []string{"MSS", "SACK"}, Because: &rfc6349.Statement{Code: rfc6349.NoUDP},
		Values: verdict.Values{"bps": 12_345_678, "bdp_ratio": 0.754, "retransmitted_ratio": 0.0123, "payload_bytes": 4,
			"needed_bytes": 16, "packet_bytes": 9000, "mtu_bytes": 1400, "first_bytes": 1500, "factor": 1.5, "per_s": 80,
			"due_per_s": 100, "failed_per_s": 90, "most_per_s": 200, "connections": 8, "run": 1, "runs": 3,
			"frame_bytes": 64}}
	want := map[rfc6349.Code]string{
		rfc6349.Refused:         "no route",
		rfc6349.UDPFailed:       "UDP cannot be had: no route",
		rfc6349.FrameTooSmall:   "its headers leave 4 bytes, a trial's counters need 16",
		rfc6349.FrameExceedsMTU: "a packet of 9000 bytes does not fit into the path's MTU of 1400",
		rfc6349.ByTCP:           "TCP, several connections: this far end carries no UDP",
		rfc6349.ByEcho:          "no route",
		rfc6349.EchoAbove:       "from TCP; all values by no route are higher",
		rfc6349.NotMeasured:     "not measured: this far end carries no UDP",
		rfc6349.UDPTreatedWorse: "UDP did not get more through, but TCP used 12.3 Mbit/s: something on the " +
			"path limits UDP, or an end was too slow for it",
		rfc6349.LowerBoundOnly: "only a lower bound is known: this far end carries no UDP",
		rfc6349.DidNotRun:      "it did not run: this far end carries no UDP",
		rfc6349.LimitedByEnd:   "congestion (loss) limited it, which is an end's and not the line's",
		rfc6349.AloneTooSlow:   "one connection alone did not reach the committed rate, up",
		rfc6349.AcksDelayed: "together the directions carry 1.50 times what one does alone: they share no medium, but " +
			"each delays the other's acknowledgements, an effect of TCP",
		rfc6349.SharedMedium: "together the directions carry 1.50 times what one does alone: they share one medium or " +
			"one device",
		rfc6349.SharingUndecided: "together the directions carry 1.50 times what one does alone: more or longer runs decide",
		rfc6349.Limited:          "limited by congestion (loss)",
		rfc6349.LineFull:         "limited by congestion (loss): TCP fills what the line carries, and that is too little",
		rfc6349.LossWithoutQueue: "limited by congestion (loss): 1.23 % of the bytes were retransmitted without a standing " +
			"queue: loss or policing",
		rfc6349.QueueWithoutLoss: "limited by congestion (loss): the round trip grew and nothing was lost: a queue before " +
			"a narrower link",
		rfc6349.QueueOverflow:         "limited by congestion (loss): a queue overflowed",
		rfc6349.FrameRateMet:          "80 of 100 frames/s due",
		rfc6349.FrameSenderLimit:      "80 of 100 frames/s due: the sending host could send no more, the line may carry it",
		rfc6349.FrameSearchUnfinished: "80 of 100 frames/s due: the search did not come to its end",
		rfc6349.FrameLoss: "80 of 100 frames/s due: lost from 90 frames/s on, while these hosts carried 200 of another " +
			"size",
		rfc6349.FrameLimitUnknown: "80 of 100 frames/s due: the two ends do not show if a host's packet rate or the line's " +
			"is the limit",
		rfc6349.UDPEndedEarly: "up: the search over UDP ended early: no route",
		rfc6349.HandshakeRewritten: "the two ends disagree on [MSS SACK]: something on the " +
			"path changes the handshake",
		rfc6349.SegmentsVanish: "TCP sends packets of 9000 bytes, and only 1400 get through: a router drops larger ones " +
			"without a word",
		rfc6349.NarrowerMTU:       "the path carries packets of 1400 bytes, less than its first link's 1500",
		rfc6349.OfferingUDP:       "bottleneck: UDP at 12.35 Mbit/s",
		rfc6349.OfferingUDPLonger: "bottleneck: UDP at 12.35 Mbit/s for longer",
		rfc6349.FillingByTCP:      "bottleneck: 8 connections",
		rfc6349.RunningWindow:     "a window of 75 % of the BDP",
		rfc6349.RunningSingle:     "one connection, run 1 of 3",
		rfc6349.RunningSeveral:    "8 connections, run 1 of 3",
		rfc6349.RunningBoth:       "both directions at once, run 1 of 3",
		rfc6349.OfferingFrames:    "frames of 64 bytes at 80 frames/s",
	}
	codes := regexp.MustCompile(`\bCode = "(.+)"`).FindAllSubmatch(source, -1)
	if len(codes) != len(rfc6349Sentences) {
		t.Errorf("%d codes, %d sentences", len(codes), len(rfc6349Sentences))
	}
	for _, m := range codes {
		s.Code = rfc6349.Code(m[1])
		row := rfc6349Sentences[s.Code]
		got := RFC6349Sentence(&s)
		switch {
		case got == "" || strings.Contains(got, "%!"):
			t.Errorf("%s: %q", s.Code, got)
		case len(row) > 1 && got != want[s.Code]:
			t.Errorf("%s: %q, want %q", s.Code, got, want[s.Code])
		}
	}
	unmeasured := rfc6349.Statement{Code: rfc6349.NotMeasured, Because: &rfc6349.Statement{}}
	for _, s := range []*rfc6349.Statement{&unmeasured, {Code: rfc6349.NotMeasured}} {
		if got := RFC6349Sentence(s); got != "not measured" {
			t.Errorf("not measured for no known reason: %q", got)
		}
	}
}

// TestRFC6349_UnknownAchievableRate checks that a stored test without an achievable rate has a dash there, not 0 bit/s.
func TestRFC6349_UnknownAchievableRate(t *testing.T) {
	goodput := 9e6
	var out strings.Builder
	RFC6349(&out, &record.RFC6349{Directions: []record.RFC6349Direction{{Tests: []record.RFC6349Test{{
		Kind: rfc6349.Full, GoodputBps: &goodput, Runs: []record.RFC6349Run{{SteadyBps: goodput}}}}}}})
	if !strings.Contains(out.String(), "9 Mbit/s of –") || strings.Contains(out.String(), "0 bit/s") {
		t.Error(out.String())
	}
}

// TestRFC6349Headline_FixesOfItsOwnLimiter checks that the first line has no remedy against what limited another test.
func TestRFC6349Headline_FixesOfItsOwnLimiter(t *testing.T) {
	goodput := 9e6
	d := &record.RFC6349Direction{Tests: []record.RFC6349Test{{Kind: rfc6349.Full, GoodputBps: &goodput,
		Limiter: verdict.Bottleneck, Confidence: verdict.High}},
		Fix: advice.Fixes(verdict.Verdict{Limiter: verdict.Congestion, Confidence: verdict.High}, advice.Facts{})}
	h := rfc6349Headline(d)
	if do := briefDo(h.fixes, &h.verdict); !strings.Contains(do, "nothing to tune") {
		t.Error(do)
	}
}

// TestRFC6349FrameCells_Rounds: a row and its sentence round their figures alike.
func TestRFC6349FrameCells_Rounds(t *testing.T) {
	cells := RFC6349FrameCells(&record.RFC6349Frame{FrameBytes: 1518, Due: 1499.8, FramesPerSec: 1498.4})
	if cells[1] != "1,498" || cells[2] != "1,500" {
		t.Errorf("1498.4 of 1499.8 are %s of %s", cells[1], cells[2])
	}
}
