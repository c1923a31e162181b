package diagnose

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/timeline"
)

// captured are recordings of a lab whose cause is known: see testdata. Of most only the
// first second is kept.
var captured = []struct {
	file string
	want verdict.Name
	// also is what may be said with less than high confidence instead.
	also []verdict.Name
}{
	{"app-10m-bbr.near", verdict.Application, []verdict.Name{verdict.Sender}},
	{"app-5m.far", verdict.Application, []verdict.Name{verdict.Sender}},
	{"bott-cubic-20m.near", verdict.Bottleneck, nil},
	{"bott-cubic-20m.far", verdict.Bottleneck, nil},
	{"bott-bbr-20m.near", verdict.Bottleneck, []verdict.Name{verdict.Congestion, verdict.Mixed}},
	{"rwnd-64k-100m-40.near", verdict.ReceiverWindow, nil},
	{"rwnd-64k-100m-40.far", verdict.ReceiverWindow, nil},
	{"rwnd-stuck.near", verdict.ReceiverWindow, nil},
	{"strip.near", verdict.ReceiverWindow, nil},
	{"snd-128k-50m-80.near", verdict.Sender, []verdict.Name{verdict.Mixed}},
	{"reader-5m.near", verdict.ReceiverApplication, nil},
	{"reader-5m.far", verdict.ReceiverApplication, nil},
	{"loss-1pc-cubic.near", verdict.Congestion, nil},
	{"loss-1pc-cubic.far", verdict.Congestion, nil},
	{"policed.near", verdict.Congestion, []verdict.Name{verdict.Mixed}},
	{"policed-rto.far", verdict.Congestion, nil}, // timeouts, and slow starts after them
	// super-segments that queue behind themselves
	{"paced-bbr.near", verdict.Sender, nil},
	// 203 Mbit/s, 11 ms with 3 of jitter: when acknowledgements arrive varies
	{"rwnd-jitter.far", verdict.ReceiverWindow, nil},
	// 8 KB at 1.8 ms: retransmissions that were not needed, a few pauses
	{"afd-8k.far", verdict.Sender, []verdict.Name{verdict.Mixed}}, // without timestamps a queue would not be seen there
	// one of four: the others keep the queue full
	{"bott-4-streams-1m.far", verdict.Bottleneck, []verdict.Name{verdict.Mixed}},
	{"ack-queue-64k.near", verdict.AckPath, []verdict.Name{verdict.Bottleneck}}, // 20 Mbit/s there, 64 kbit/s back
	// its drops look like a link that gives no more
	{"policed-2ms.near", verdict.Congestion, nil},
	{"nagle-ex.near", verdict.NagleDelayedAck, nil},
	{"exch-nodelay.near", verdict.Application, []verdict.Name{verdict.Sender}},
	{"short.near", verdict.SlowStart, nil},
	{"mtu.near", verdict.MTUBlackHole, nil},
}

func TestVerdictsOnCaptures(t *testing.T) {
	for _, c := range captured {
		t.Run(c.file, func(t *testing.T) {
			d := judged(t, load(t, filepath.Join("testdata", c.file+".pcap.zst")))
			if d.Limiter != c.want && !slices.Contains(c.also, d.Limiter) {
				t.Errorf("%s (%s): %v", d.Limiter, d.Confidence, d.Shares)
			}
			if d.Limiter != c.want && d.Confidence == verdict.High {
				t.Errorf("%s with high confidence", d.Limiter)
			}
			if d.Limiter == verdict.Sender && !slices.Contains(d.Candidates, verdict.Application) {
				t.Errorf("candidates %v", d.Candidates)
			}
			if subtype := map[string]string{"rwnd-stuck.near": verdict.AutotuneCeiling,
				"strip.near": verdict.Unscaled, "policed.near": verdict.Policer,
				"policed-2ms.near": verdict.Policer}[c.file]; subtype != "" && d.Subtype != subtype {
				t.Errorf("subtype %q, want %q", d.Subtype, subtype)
			}
			if d.MSSBytes == nil || *d.MSSBytes != 1448 && *d.MSSBytes != 1460 { // 12 bytes of timestamps, or none
				t.Errorf("MSS %v", d.MSSBytes)
			}
			at := timeline.Vantage(d.TapAt)
			if want := map[bool]timeline.Vantage{true: timeline.AtSender, false: timeline.AtReceiver}[strings.HasSuffix(c.file,
				".near")]; at != want {
				t.Errorf("tap at the %s", at)
			}
		})
	}
}

// TestMutations changes captures: the verdict stays, or loses its high confidence.
func TestMutations(t *testing.T) {
	for _, c := range captured {
		for _, m := range mutations {
			if m.name == "in the middle" && strings.HasSuffix(c.file, ".far") {
				continue // it shifts times as seen by the sender
			}
			d := judged(t, m.of(load(t, filepath.Join("testdata", c.file+".pcap.zst"))))
			if d == nil {
				continue
			}
			if d.Limiter != c.want && d.Confidence == verdict.High {
				t.Errorf("%s, %s: %s with high confidence; %v", c.file, m.name, d.Limiter, d.Shares)
			}
			if d.Limiter != c.want && !slices.Contains(c.also, d.Limiter) {
				t.Logf("%s, %s: %s %s", c.file, m.name, d.Confidence, d.Limiter)
			}
		}
	}
}
