package text_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/fullpipe-net/fullpipe/internal/plan"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
	"github.com/fullpipe-net/fullpipe/internal/report"
	"github.com/fullpipe-net/fullpipe/internal/search/simpath"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/tune"
	"github.com/fullpipe-net/fullpipe/internal/tune/simpeer"
)

// tuned runs the loop on a simulated 100 Mbit/s and 40 ms between hosts that stop at
// 64 KiB by themselves.
func tuned(t *testing.T, change func(*simpath.Path, *simpeer.Peer)) *record.Tune {
	t.Helper()
	path := &simpath.Path{RateBps: 100e6, RTT: 40 * time.Millisecond, MSS: 1448, Queue: 1e6, Harm: 1, AutoWindow: 65535,
		Noise: simpath.Noise{Dev: 0.004}}
	peer := simpeer.New(path, 1)
	if change != nil {
		change(path, peer)
	}
	result, err := tune.Run(context.Background(), tune.Config{Peer: peer, Directions: []transfer.Direction{transfer.Up,
		transfer.Down}, FileSize: 1e10})
	if len(result.Directions) == 0 {
		t.Fatal(err)
	}
	near, errNear := plan.ParseTarget("linux-6.1")
	far, errFar := plan.ParseTarget("windows-2000")
	if err := errors.Join(errNear, errFar); err != nil {
		t.Fatal(err)
	}
	return report.Tune(record.Header{Schema: "fullpipe/tune/v1"}, "host", result, &report.System{Target: near},
		&report.System{Target: far})
}

// TestTune_ChosenSetupIsNotWorthTrying checks that the chosen setup is not listed as worth trying, though its trials
// gave more than its verification.
func TestTune_ChosenSetupIsNotWorthTrying(t *testing.T) {
	const pacing, streams = "pacing at 95 Mbit/s", "4 streams"
	ci := &[2]float64{1.5, 9}
	d := record.TuneDirection{Chosen: &record.TuneChosen{Name: pacing}, After: &record.TuneMeasured{MedianBps: 70e6},
		Remedies: []record.TuneRemedy{{Name: pacing, GoodputBps: 91e6, TuneGain: record.TuneGain{Factor: 5, CI95: ci}},
			{Name: streams, GoodputBps: 90e6, TuneGain: record.TuneGain{Factor: 4.9, CI95: ci}}}}
	var out strings.Builder
	if err := text.Write(&out, &record.Tune{Directions: []record.TuneDirection{d}}); err != nil {
		t.Fatal(err)
	}
	got := out.String()
	if strings.Contains(got, pacing+", which gave") || !strings.Contains(got, streams+", which gave") {
		t.Error(got)
	}
}

// TestTune_RowsAgreeWithTheVerdicts gives each run of the baseline and of the chosen window another limiter than the
// verdict on all of them: the table names the verdict's.
func TestTune_RowsAgreeWithTheVerdicts(t *testing.T) {
	doc := tuned(t, nil)
	d := &doc.Directions[0]
	if d.After == nil || d.Chosen == nil {
		t.Fatalf("%+v", d)
	}
	for i := range d.Trials {
		d.Trials[i].Limiter = "unknown"
	}
	d.Before.Limiter = "send-buffer"
	d.After.Limiter = "bottleneck"
	var out strings.Builder
	if err := text.Write(&out, doc); err != nil {
		t.Fatal(err)
	}
	for row, limiter := range map[string]string{"today's setting: automatic": "send-buffer", "  chosen ": "bottleneck"} {
		lines := slices.DeleteFunc(strings.Split(out.String(), "\n"),
			func(line string) bool { return !strings.Contains(line, row) })
		if len(lines) == 0 || !strings.Contains(lines[0], limiter) {
			t.Errorf("%s: %q", row, lines)
		}
	}
}

func TestTuneKeepsTheContract(t *testing.T) {
	encoded, err := json.Marshal(tuned(t, nil))
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Peer       string
		Near, Far  map[string]any
		Directions []map[string]any
		Applied    *bool
		ElapsedS   *float64 `json:"elapsed_s"`
		BytesSent  *int64   `json:"bytes_sent"`
	}
	if err := json.Unmarshal(encoded, &doc); err != nil || doc.Near == nil || doc.Far == nil || doc.Applied == nil ||
		doc.ElapsedS == nil || doc.BytesSent == nil {
		t.Fatalf("%v: %s", err, encoded)
	}
	for _, d := range doc.Directions {
		for object, keys := range map[string]string{
			"path":   "rtt_min_s rtt_loaded_s jitter_s mss_bytes path_mtu_bytes window_scale bottleneck_bps bdp_bytes",
			"before": "direction goodput_bps limiter confidence shares evidence windows streams ci95_bps",
			"after":  "goodput_bps limiter ci95_bps",
			"chosen": "send_buffer_bytes receive_buffer_bytes window_bytes automatic",
			"gain":   "factor ci95",
			"file":   "bytes before_s after_s",
		} {
			has, _ := d[object].(map[string]any)
			for _, key := range strings.Fields(keys) {
				if _, ok := has[key]; !ok {
					t.Errorf("%v: %s lacks %s, it has %v", d["direction"], object, key, slices.Sorted(maps.Keys(has)))
				}
			}
		}
		if trials, _ := d["trials"].([]any); len(trials) < 6 {
			t.Errorf("trials: %v", d["trials"])
		}
	}
}

func TestTuneText(t *testing.T) {
	var out strings.Builder
	text.Tune(&out, tuned(t, nil))
	for _, want := range []string{"UP (this host sends)", "DOWN (this host receives)", "round trip 40 ms",
		"today's setting: automatic", "chosen", "gain ",
		"× 7.", "with 95 % confidence", "9.31 GiB take", "TcpWindowSize = ", "SO_RCVBUF = ", "after a restart",
		"to set, as it was measured: in the programs", "or instead: on the hosts, for every new connection",
		"this host (sender, linux-6.1)", "the far host (receiver, windows-2000)",
		"nothing was changed on either host"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in:\n%s", want, out.String())
		}
	}
	checkColumns(t, out.String())
}

// checkColumns checks that a text without a terminal has no line of more than 100 columns.
func checkColumns(t *testing.T, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 100 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}

// TestTuneOfALossyPath checks that the report has the trials, the gain and the settings of a remedy that is no window.
func TestTuneOfALossyPath(t *testing.T) {
	var out strings.Builder
	text.Tune(&out, tuned(t, func(path *simpath.Path, _ *simpeer.Peer) { path.AutoWindow, path.Loss = 4e6, 0.01 }))
	for _, want := range []string{"also tried", "congestion control bbr: shown to be better", "TCP_CONGESTION = bbr",
		"congctl = bbr", "net.ipv4.tcp_congestion_control = bbr", "before, "} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in:\n%s", want, out.String())
		}
	}
	checkColumns(t, out.String())
}

// TestTuneOfLittle checks that an interrupted or undecided search gives a complete document.
func TestTuneOfLittle(t *testing.T) {
	for name, change := range map[string]func(*simpath.Path, *simpeer.Peer){
		"one transfer": func(_ *simpath.Path, p *simpeer.Peer) {
			p.Fail = func(transfer.Spec) error {
				if len(p.Ran) > 2 {
					return errors.New("gone")
				}
				return nil
			}
		},
		"nothing to change": func(path *simpath.Path, _ *simpeer.Peer) { path.AutoWindow = 4e6 },
		"loss that nothing helps against": func(path *simpath.Path, p *simpeer.Peer) {
			path.AutoWindow, path.Loss, p.Policed = 4e6, 0.01, true
		},
	} {
		t.Run(name, func(t *testing.T) {
			doc := tuned(t, change)
			if _, err := json.Marshal(doc); err != nil {
				t.Error(err)
			}
			var out strings.Builder
			text.Tune(&out, doc)
			if said := out.String(); !strings.Contains(said, "verdict") || strings.Contains(said, "NaN") ||
				strings.Contains(said, "to set on") {
				t.Error(said)
			}
		})
	}
}

// TestTune_WindowNotKnown checks that a window that no counter shows is not called 0.
func TestTune_WindowNotKnown(t *testing.T) {
	d := record.TuneDirection{Direction: transfer.Up, Trials: []record.TuneTrial{{Automatic: true, GoodputBps: 463e6,
		Limiter: "unknown"}, {WindowBytes: 66_608, EffectiveBytes: 66_608, GoodputBps: 386e6, Limiter: "unknown"}}}
	var out strings.Builder
	text.Tune(&out, &record.Tune{Directions: []record.TuneDirection{d}})
	if said := out.String(); !strings.Contains(said, "not known  463 Mbit/s") {
		t.Errorf("%s", said)
	}
}

// TestTune_ChosenRow has the rows of a window that is chosen alone, and with streams besides.
func TestTune_ChosenRow(t *testing.T) {
	window, streams, resent := 65_536, 4, 0.02
	for _, c := range []struct {
		chosen     record.TuneChosen
		want, none string
	}{
		{record.TuneChosen{WindowBytes: window, Name: "a window of 65,536 bytes"}, "  chosen            2 %\n", "by itself"},
		{record.TuneChosen{WindowBytes: window, Streams: streams, Name: "a window of 65,536 bytes, 4 streams"},
			"helps, in 3 runs; chosen;", "  chosen            2 %\n"},
	} {
		d := record.TuneDirection{Direction: transfer.Up, Chosen: &c.chosen, Trials: []record.TuneTrial{{WindowBytes: window,
			EffectiveBytes: window, GoodputBps: 436e6, Limiter: "receiver-window", RetransmittedRatio: &resent}},
			Remedies: []record.TuneRemedy{{Name: "a window of 65,536 bytes, 4 streams", Runs: 3, GoodputBps: 965e6,
				TuneGain: record.TuneGain{Factor: 2.2, CI95: &[2]float64{2, 2.4}}, RetransmittedRatio: &resent}}}
		var out strings.Builder
		text.Tune(&out, &record.Tune{Directions: []record.TuneDirection{d}})
		if said := out.String(); !strings.Contains(said, c.want) || strings.Contains(said, c.none) {
			t.Errorf("no %q, or %q, in\n%s", c.want, c.none, said)
		}
	}
}
