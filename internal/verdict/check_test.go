package verdict

import (
	"math/rand/v2"
	"testing"
)

func TestCheck(t *testing.T) {
	only := func(n Name) Verdict { return Verdict{Limiter: n, Shares: Shares{n: 1}} }
	for _, c := range []struct {
		name    string
		verdict Verdict
		figures Figures
		want    Figure // "": none
	}{
		{"a full link that carried what it says", only(Bottleneck), Figures{LengthS: 10, CarriedBytes: 12e6,
			FullLinkBps: 10e6}, ""},
		{"a full link that was idle most of the time", only(Bottleneck), Figures{LengthS: 86, CarriedBytes: 1.24e6,
			FullLinkBps: 40e6}, FullLinkFigure},
		{"half of the time full", Verdict{Limiter: Bottleneck, Shares: Shares{Bottleneck: 0.5, Application: 0.5}},
			Figures{LengthS: 10, CarriedBytes: 6e6, FullLinkBps: 10e6}, ""},
		{"a window that explains the rate", only(ReceiverWindow),
			Figures{WindowBytes: 65535, MinRTTS: 0.04, RTTLoadedS: 0.041, WindowRateBps: 13e6}, ""},
		{"a window that fills a queue", only(ReceiverWindow),
			Figures{WindowBytes: 1e6, MinRTTS: 0.024, RTTLoadedS: 1, WindowRateBps: 7.7e6, Queue: true}, WindowFigure},
		{"jitter is no queue", only(ReceiverWindow),
			Figures{WindowBytes: 37648, MinRTTS: 0.037, RTTLoadedS: 0.0494, WindowRateBps: 4.36e6}, ""},
		{"more than the window came", only(ReceiverWindow),
			Figures{WindowBytes: 65535, MinRTTS: 0.04, RTTLoadedS: 0.04, WindowRateBps: 30e6}, WindowFigure},
		{"a loaded round trip below the least", only(Congestion), Figures{MinRTTS: 21.5e-6, RTTLoadedS: 16.7e-6},
			RTTFigure},
		{"rounding", only(Congestion), Figures{MinRTTS: 0.11, RTTLoadedS: 0.1099}, ""},
		{"idle time given to the network", only(Congestion), Figures{IdleRatio: 0.6}, IdleFigure},
		{"and to the program", Verdict{Limiter: Application, Shares: Shares{Application: 0.6, Bottleneck: 0.4}},
			Figures{IdleRatio: 0.6}, ""},
		{"slow start of 152 million round trips", only(SlowStart), Figures{LengthS: 152, MinRTTS: 1e-6}, SlowStartFigure},
		{"an ordinary one", only(SlowStart), Figures{LengthS: 0.5, MinRTTS: 0.04}, ""},
		{"many, one after each pause", only(SlowStart), Figures{LengthS: 20, MinRTTS: 0.04, SlowStarts: 10}, ""},
		{"no loss in spite of retransmissions", Verdict{Limiter: Sender, Shares: Shares{Sender: 1},
			Evidence: []Evidence{{Limiter: Sender, Code: CapturedSenderWaits}}}, Figures{Retransmitted: 41965}, LossFigure},
		{"so few losses would leave a window that gives far more", only(Congestion),
			Figures{LossAllowsBps: 90e6, GoodputBps: 9e6}, LossRateFigure},
		{"losses that explain the rate", only(Congestion), Figures{LossAllowsBps: 12e6, GoodputBps: 9e6}, ""},
		{"a window over the round trips in which it was full", only(ReceiverWindow),
			Figures{WindowBytes: 65535, MinRTTS: 0.02, RTTLoadedS: 0.02, WindowTripS: 0.04, WindowRateBps: 13e6}, ""},
		{"nothing known", only(Bottleneck), Figures{}, ""},
	} {
		got := Figure("")
		if all := Check(c.verdict, c.figures); len(all) > 0 {
			got = all[0].Figure
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// TestContradicted checks that a contradicted verdict is unknown with low confidence, also by its shares, and keeps its
// candidates.
func TestContradicted(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		v := Verdict{Limiter: Names()[r.IntN(len(Names()))], Confidence: High}
		v.Shares = Shares{v.Limiter: 0.9, NagleDelayedAck: 0.1}
		v.Candidates = []Name{Names()[r.IntN(len(Names()))]}
		d := Contradicted(v, Contradiction{Figure: WindowFigure, Said: r.Float64(), Allowed: r.Float64()})
		if d.Limiter != Unknown || d.Confidence != Low || len(d.Evidence) == 0 || len(d.Candidates) == 0 ||
			v.Limiter != Mixed && v.Limiter != NagleDelayedAck && d.Shares[Unknown] < 0.89 {
			t.Fatalf("%+v of %+v", d, v)
		}
	}
}
