package render_test

import (
	"context"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/capture"
	"github.com/fullpipe-net/fullpipe/internal/diagnose"
	"github.com/fullpipe-net/fullpipe/internal/flow"
	"github.com/fullpipe-net/fullpipe/internal/plan"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/report"
	"github.com/fullpipe-net/fullpipe/internal/rfc6349"
	"github.com/fullpipe-net/fullpipe/internal/search/simpath"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/tune"
	"github.com/fullpipe-net/fullpipe/internal/tune/simpeer"
	"github.com/fullpipe-net/fullpipe/internal/verdict/live"
)

func header(kind string) record.Header {
	return record.Header{Schema: "fullpipe/" + kind + "/v1", Version: "test", StartedAt: time.Unix(1700000000,
		123456789).UTC()}
}

func simulated() *simpath.Path {
	return &simpath.Path{RateBps: 100e6, RTT: 40 * time.Millisecond, MSS: 1448, Queue: 500e3, Harm: 1, AutoWindow: 1e6,
		Noise: simpath.Noise{Dev: 0.002}}
}

// TestFreshDocumentsSurviveBeingStored is TestDocumentsSurviveBeingStored for new documents of
// commands, with the data that is not part of their JSON.
func TestFreshDocumentsSurviveBeingStored(t *testing.T) {
	t.Run("diagnose", func(t *testing.T) {
		f := must.Get(capture.Open("../diagnose/testdata/loss-1pc-cubic.near.pcap.zst"))(t)
		defer f.Close()
		all := func(flow.Endpoint, flow.Endpoint) bool { return true }
		a, err := capture.Analyze(context.Background(), capture.Config{Flow: flow.Config{Points: 1000, Wanted: all}}, f)
		if err != nil {
			t.Fatal(err)
		}
		checkFresh(t, report.Diagnose(header("diagnose"), diagnose.New(a, 1)))
	})
	t.Run("rfc6349", func(t *testing.T) {
		both := []transfer.Direction{transfer.Up, transfer.Down}
		cfg := rfc6349.Config{Peer: simpeer.New(simulated(), 1), Directions: both, Tolerance: 0.05, Overhead: 18,
			Committed: map[transfer.Direction]float64{transfer.Up: 90e6}, Frames: rfc6349.Frames{Sizes: []int{64}}}
		r := must.Get(rfc6349.Run(t.Context(), cfg))(t)
		checkFresh(t, report.RFC6349(header("rfc6349"), "far.example.net", "Line <7> & more", cfg, r))
	})
	t.Run("tune", func(t *testing.T) {
		r := must.Get(tune.Run(t.Context(), tune.Config{Peer: simpeer.New(simulated(), 1),
			Directions: []transfer.Direction{transfer.Down}, FileSize: 1e9}))(t)
		near := must.Get(plan.ParseTarget("linux-6.1"))(t)
		checkFresh(t, report.Tune(header("tune"), "host", r, &report.System{Target: near}, nil))
	})
	t.Run("measure", func(t *testing.T) {
		sender := transfer.Stream{Last: 3 * time.Second}
		for i := range 3000 {
			at := time.Duration(i) * time.Millisecond
			sender.Samples = append(sender.Samples, transfer.Sample{At: at, RTT: 40*time.Millisecond + at/1000, InFlight: 8192 +
				int64(i%77),
				SendWnd: 1 << 20, Cwnd: 14480, Acked: int64(i) * 2048, Retransmitted: int64(i / 900)})
		}
		receiver := transfer.Stream{Bytes: 6_000_000, Last: 3 * time.Second}
		r := &transfer.Result{Spec: transfer.Spec{Direction: transfer.Up},
			Near: &transfer.End{Streams: []transfer.Stream{sender}},
			Far:  &transfer.End{Streams: []transfer.Stream{receiver}}, Complete: true}
		doc := &record.Measure{Header: header("measure"), Peer: "host", Near: report.Host(r.Near),
			Far: report.Host(r.Far)}
		doc.Directions = append(doc.Directions, report.Direction(r, live.Judge(r), nil))
		if len(doc.Directions[0].Curves.InFlight) != record.MostPoints {
			t.Errorf("%d points are kept of 3000", len(doc.Directions[0].Curves.InFlight))
		}
		checkFresh(t, doc)
	})
}

func checkFresh(t *testing.T, doc record.Document) {
	t.Helper()
	record.Thin(doc)
	checkStored(t, t.Name(), doc)
	samples, err := record.EncodeSamples(doc)
	_, simulated := doc.(*record.Tune) // its ends have no samples
	if err != nil || len(samples) == 0 && !simulated || len(samples) > record.MostSampleBytes {
		t.Errorf("%d bytes of samples, %v", len(samples), err)
	}
}
