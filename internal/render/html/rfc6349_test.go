package html

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
	"github.com/fullpipe-net/fullpipe/internal/report"
	"github.com/fullpipe-net/fullpipe/internal/rfc6349"
	"github.com/fullpipe-net/fullpipe/internal/search/simpath"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/tune/simpeer"
)

// signedOff returns a test of a simulated line with a committed rate.
func signedOff(t *testing.T, committed float64) *record.RFC6349 {
	t.Helper()
	path := &simpath.Path{RateBps: 100e6, RTT: 40 * time.Millisecond, MSS: 1448, Queue: 500e3, Harm: 1, AutoWindow: 1e6,
		Noise: simpath.Noise{Dev: 0.002}}
	cfg := rfc6349.Config{Peer: simpeer.New(path, 1), Directions: []transfer.Direction{transfer.Up}, Tolerance: 0.05,
		Overhead:  18,
		Committed: map[transfer.Direction]float64{transfer.Up: committed}, Frames: rfc6349.Frames{Sizes: []int{64}}}
	r := must.Get(rfc6349.Run(t.Context(), cfg))(t)
	header := record.Header{Schema: "fullpipe/rfc6349/v1", StartedAt: time.Date(2026, 11, 21, 22, 0, 0, 0, time.UTC)}
	return report.RFC6349(header, "far.example.net", "Line <7> & more", cfg, r)
}

func TestRFC6349Report(t *testing.T) {
	doc := signedOff(t, 90e6)
	var words, page bytes.Buffer
	text.RFC6349(&words, doc)
	for _, want := range []string{"Line <7> & more", "2026-11-21 22:00:00 to ", "committed    90 Mbit/s up with 18 " +
		"bytes of framing for each packet, tolerance 5 %",
		"1448 bytes of payload and 52 of IP and TCP headers, with timestamps (12 bytes)",
		"this far end carries no UDP", "90.000 Mbit/s / ((1500 + 18) bytes × 8) = 7411.1 packets/s",
		"7411.1 × (1500 − 52) bytes × 8 = 85.850 Mbit/s (headers: 12 of them timestamps, which the RFC leaves out)",
		"RFC 6349 (3.3) asks for 30 s", "RFC 2544 (24, 26.1) asks for 60 s", "pass          TCP, one connection: "} {
		if !strings.Contains(strings.Join(strings.Fields(words.String()), " "), strings.Join(strings.Fields(want), " ")) {
			t.Errorf("the text does not say %q:\n%s", want, words.String())
		}
	}
	must.Do(t, Write(&page, doc))
	for _, want := range []string{"Line &lt;7&gt; &amp; more", `aria-label="goodput by window"`, "TCP Transfer Time Ratio",
		"@page { size: A4"} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("the page has no %q", want)
		}
	}
	if strings.Contains(page.String(), "<7>") || strings.Contains(page.String(), "NaN") || strings.Contains(page.String(),
		"ZgotmplZ") {
		t.Error("the page has unescaped or invalid text")
	}
}

// TestRFC6349Formulas_MatchInputs computes every formula again from the inputs in the
// JSON.
func TestRFC6349Formulas_MatchInputs(t *testing.T) {
	text := must.Get(json.Marshal(signedOff(t, 90e6)))(t)
	var doc struct {
		Formulas []struct {
			Name   string
			Inputs map[string]float64
			Result float64
		}
	}
	must.Do(t, json.Unmarshal(text, &doc))
	again := map[string]func(in map[string]float64) float64{
		"bandwidth-delay product": func(in map[string]float64) float64 { return in["rtt_s"] * in["bottleneck_bps"] / 8 },
		"packets a second": func(in map[string]float64) float64 {
			return in["rate_bps"] / 8 / (in["packet_bytes"] + in["framing_bytes"])
		},
		"largest TCP rate": func(in map[string]float64) float64 {
			return in["packets_per_s"] * (in["packet_bytes"] - in["header_bytes"]) * 8
		},
		"ideal transfer time":     func(in map[string]float64) float64 { return in["payload_bytes"] * 8 / in["max_tcp_bps"] },
		"TCP Transfer Time Ratio": func(in map[string]float64) float64 { return in["actual_s"] / in["ideal_s"] },
		"TCP Efficiency": func(in map[string]float64) float64 {
			return (in["sent_bytes"] - in["retransmitted_bytes"]) / in["sent_bytes"]
		},
		"Buffer Delay": func(in map[string]float64) float64 {
			return (in["rtt_mean_s"] - in["rtt_idle_s"]) / in["rtt_idle_s"]
		},
	}
	if len(doc.Formulas) < 5 {
		t.Fatalf("%d formulas", len(doc.Formulas))
	}
	for _, f := range doc.Formulas {
		if got := again[f.Name](f.Inputs); got < f.Result*(1-1e-6)-1e-9 || got > f.Result*(1+1e-6)+1e-9 {
			t.Errorf("%s of %v is %v, not %v", f.Name, f.Inputs, got, f.Result)
		}
	}
}

// TestRFC6349_StoredDocument checks that a stored document reads as the report that was written.
func TestRFC6349_StoredDocument(t *testing.T) {
	path := &simpath.Path{RateBps: 100e6, RTT: 40 * time.Millisecond, MSS: 1448, Queue: 500e3, Harm: 1, AutoWindow: 1e6}
	both := rfc6349.Config{Peer: simpeer.New(path, 1), Directions: []transfer.Direction{transfer.Up, transfer.Down}}
	r, err := rfc6349.Run(t.Context(), both) // this peer carries one direction at a time: a test has no runs
	if err != nil {
		t.Fatal(err)
	}
	for name, doc := range map[string]*record.RFC6349{"one direction": signedOff(t, 90e6),
		"both": report.RFC6349(record.Header{}, "far.example.net", "", both, r)} {
		written := must.Get(json.Marshal(doc))(t)
		stored := new(record.RFC6349)
		must.Do(t, json.Unmarshal(written, stored))
		again, err := json.Marshal(stored)
		if err != nil || !bytes.Equal(written, again) || bytes.Contains(written, []byte("null")) {
			t.Errorf("%s: %v: stored as\n%s\nread as\n%s", name, err, written, again)
		}
		var want, got bytes.Buffer
		text.RFC6349(&want, doc)
		text.RFC6349(&got, stored)
		if got.String() != want.String() || !strings.Contains(got.String(), "asked") && name == "one direction" {
			t.Errorf("%s: prints\n%s\nwant\n%s", name, got.String(), want.String())
		}
	}
}

func TestRFC6349VerdictsInWords(t *testing.T) {
	for committed, want := range map[float64]string{90e6: "inconclusive", 150e6: "fail"} { // 64-byte frames need UDP
		doc := signedOff(t, committed)
		if string(doc.Verdict) != want || !strings.HasPrefix(text.RFC6349VerdictText(doc), want) {
			t.Errorf("%v committed: %s, %s", committed, doc.Verdict, text.RFC6349VerdictText(doc))
		}
	}
	if d := (&record.RFC6349{Verdict: rfc6349.NotJudged}); text.RFC6349Stamp(d) != "measured" ||
		!strings.Contains(text.RFC6349VerdictText(d), "--cir") {
		t.Errorf("%s, %s", text.RFC6349Stamp(d), text.RFC6349VerdictText(d))
	}
}
