package report

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/limiter"
)

// captured are recordings of a lab whose cause is known: see testdata. Of most only the
// first second is kept.
var captured = []struct {
	file string
	want limiter.Name
	// also is what may be said with less than high confidence instead.
	also []limiter.Name
}{
	{"app-10m-bbr.near", limiter.Application, []limiter.Name{limiter.Sender}},
	{"app-5m.far", limiter.Application, []limiter.Name{limiter.Sender}},
	{"bott-cubic-20m.near", limiter.Bottleneck, nil},
	{"bott-cubic-20m.far", limiter.Bottleneck, nil},
	{"bott-bbr-20m.near", limiter.Bottleneck, []limiter.Name{limiter.Congestion, limiter.Mixed}},
	{"rwnd-64k-100m-40.near", limiter.ReceiverWindow, nil},
	{"rwnd-64k-100m-40.far", limiter.ReceiverWindow, nil},
	{"rwnd-stuck.near", limiter.ReceiverWindow, nil},
	{"strip.near", limiter.ReceiverWindow, nil},
	{"snd-128k-50m-80.near", limiter.Sender, []limiter.Name{limiter.Mixed}},
	{"reader-5m.near", limiter.ReceiverApplication, nil},
	{"reader-5m.far", limiter.ReceiverApplication, nil},
	{"loss-1pc-cubic.near", limiter.Congestion, nil},
	{"loss-1pc-cubic.far", limiter.Congestion, nil},
	{"policed.near", limiter.Congestion, []limiter.Name{limiter.Mixed}},
	{"policed-rto.far", limiter.Congestion, nil},                                 // timeouts, and slow starts after them
	{"paced-bbr.near", limiter.Sender, nil},                                      // super-segments that queue behind themselves
	{"rwnd-jitter.far", limiter.ReceiverWindow, nil},                             // 203 Mbit/s, 11 ms with 3 of jitter: when acknowledgements arrive varies
	{"afd-8k.far", limiter.Sender, nil},                                          // 8 KB at 1.8 ms: retransmissions that were not needed, a few pauses
	{"bott-4-streams-1m.far", limiter.Bottleneck, []limiter.Name{limiter.Mixed}}, // one of four: the others keep the queue full
	{"ack-queue-64k.near", limiter.AckPath, []limiter.Name{limiter.Bottleneck}},  // 20 Mbit/s there, 64 kbit/s back
	{"policed-2ms.near", limiter.Congestion, nil},                                // its drops look like a link that gives no more
	{"nagle-ex.near", limiter.NagleDelayedAck, nil},
	{"exch-nodelay.near", limiter.Application, []limiter.Name{limiter.Sender}},
	{"short.near", limiter.SlowStart, nil},
	{"mtu.near", limiter.MTUBlackHole, nil},
}

func TestVerdictsOnCaptures(t *testing.T) {
	for _, c := range captured {
		t.Run(c.file, func(t *testing.T) {
			d := judged(t, load(t, filepath.Join("testdata", c.file+".pcap.zst")))
			if d.Limiter != c.want && !slices.Contains(c.also, d.Limiter) {
				t.Errorf("%s (%s): %s", d.Limiter, d.Confidence, SharesText(d.Shares))
			}
			if d.Limiter != c.want && d.Confidence == limiter.High {
				t.Errorf("%s with high confidence", d.Limiter)
			}
			if d.Limiter == limiter.Sender && !slices.Contains(d.Candidates, limiter.Application) {
				t.Errorf("candidates %v", d.Candidates)
			}
			if subtype := map[string]string{"rwnd-stuck.near": limiter.Stuck, "strip.near": limiter.Unscaled}[c.file]; subtype != "" && d.Subtype != subtype {
				t.Errorf("subtype %q, want %q", d.Subtype, subtype)
			}
			if d.flow.MSS != 1448 && d.flow.MSS != 1460 { // 12 bytes of timestamps, or none
				t.Errorf("MSS %d", d.flow.MSS)
			}
			at := limiter.Vantage(d.TapAt)
			if want := map[bool]limiter.Vantage{true: limiter.AtSender, false: limiter.AtReceiver}[strings.HasSuffix(c.file, ".near")]; at != want {
				t.Errorf("tap at the %s", at)
			}
		})
	}
}

// TestMutations: whatever happened to a capture, the verdict stays, or is no longer
// called sure.
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
			if d.Limiter != c.want && d.Confidence == limiter.High {
				t.Errorf("%s, %s: %s with high confidence; %s", c.file, m.name, d.Limiter, SharesText(d.Shares))
			}
			if d.Limiter != c.want && !slices.Contains(c.also, d.Limiter) {
				t.Logf("%s, %s: %s %s", c.file, m.name, d.Confidence, d.Limiter)
			}
		}
	}
}
