package diagnose

import (
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// TestVerdictsOnCases reads small captures made after public cases, and of the lab's links.
func TestVerdictsOnCases(t *testing.T) {
	tests := []struct {
		file    string
		want    verdict.Name
		subtype string
		most    verdict.Confidence
	}{
		{"tiny-response", verdict.Unknown, "", verdict.Low},
		{"acks-only", verdict.Unknown, "", verdict.Low},
		{"isn-firewall", verdict.Sender, "", verdict.Medium}, // four segments at a time
		{"syn-lost", verdict.Congestion, verdict.LostSYNs, verdict.High},
		{"gso-leak", verdict.MTUBlackHole, verdict.Oversized, verdict.High},
		{"kb823764", verdict.NagleDelayedAck, verdict.AckTimer, verdict.High},
		{"afd-uplink", verdict.Bottleneck, "", verdict.Medium},
		{"any-dups", verdict.Sender, "", verdict.Medium}, // every packet twice
		{"sack-unmapped", verdict.Congestion, "", verdict.Medium},
		{"linear-growth", verdict.Congestion, verdict.LowSsthresh, verdict.Medium},
		{"rto-silences-receiver", verdict.Congestion, "", verdict.Medium},
		{"ack-timer-5seg-receiver", verdict.NagleDelayedAck, verdict.AckTimer, verdict.Medium},
		{"ack-timer-2seg-middle", verdict.NagleDelayedAck, verdict.AckTimer, verdict.Medium},
		{"no-window-update", verdict.ReceiverWindow, verdict.NoUpdates, verdict.High},
		{"policer-20m", verdict.Congestion, verdict.Policer, verdict.Medium}, // 30 ms, SACK cut off in 3 %
		{"queue-20-packets", verdict.Congestion, "", verdict.High},           // 100 Mbit/s at 4 ms
		{"requests-loss", verdict.Application, "", verdict.Medium},
		{"sender-stops-resending", verdict.Sender, "", verdict.High},
		{"wscale-mismatch", verdict.ReceiverWindow, verdict.ScaleMismatch, verdict.High},
	}
	for _, test := range tests {
		t.Run(test.file, func(t *testing.T) {
			d := judged(t, load(t, "testdata/cases/"+test.file+".pcap.zst"))
			if d.Limiter != test.want || d.Subtype != test.subtype || d.Confidence != test.most {
				t.Errorf("%s (%s), %s: %v", d.Limiter, d.Subtype, d.Confidence, d.Shares)
			}
			if d.Subtype == verdict.ScaleMismatch && len(d.Settings) > 0 {
				t.Errorf("larger buffers do not help: %v", d.Settings)
			}
		})
	}
}
