package advice

import (
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

func TestForWait(t *testing.T) {
	program := verdict.Verdict{Limiter: verdict.Application, Confidence: verdict.Medium}
	reader := verdict.Verdict{Limiter: verdict.ReceiverApplication, Confidence: verdict.High}
	requests := program
	requests.Subtype = verdict.RequestResponse
	guess := program
	guess.Confidence = verdict.Low
	link := verdict.Verdict{Limiter: verdict.Bottleneck, Confidence: verdict.High}
	for name, c := range map[string]struct {
		v     verdict.Verdict
		kind  string
		share float64
		want  Action
		end   End
		most  float64
	}{
		"disk":              {program, "disk", 0.75, FasterDisk, Sender, 40e6},
		"reader's disk":     {reader, "disk", 0.6, FasterDisk, Receiver, 25e6},
		"disk all the time": {program, "disk", 0.98, FasterDisk, Sender, 0},
		"another end":       {program, "peer", 0.75, FollowPeer, Sender, 0},
		"half":              {program, "disk", 0.5, "", "", 0},
		"not known":         {program, "unknown", 0.9, "", "", 0},
		"TCP":               {program, "network", 0.9, "", "", 0},
		"requests":          {requests, "peer", 0.9, "", "", 0},
		"a guess":           {guess, "disk", 0.9, "", "", 0},
		"a full link":       {link, "disk", 0.9, "", "", 0},
	} {
		got := ForWait(&c.v, c.kind, c.share, 10e6)
		switch {
		case c.want == "":
			if got != nil {
				t.Errorf("%s: %+v", name, got)
			}
		case got == nil || got.Action != c.want || got.End != c.end || got.Source == "":
			t.Errorf("%s: %+v", name, got)
		case (got.Expected != nil) != (c.most > 0) || c.most > 0 && got.Expected.HighBps != c.most:
			t.Errorf("%s: expects %+v, at most %v", name, got.Expected, c.most)
		}
	}
}
