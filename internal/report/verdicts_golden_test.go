package report_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/fullpipe-net/fullpipe/internal/advice"
	"github.com/fullpipe-net/fullpipe/internal/capture"
	"github.com/fullpipe-net/fullpipe/internal/diagnose"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/report"
	"github.com/fullpipe-net/fullpipe/internal/search/simpath"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/tune"
	"github.com/fullpipe-net/fullpipe/internal/tune/simpeer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/live"
)

var update = flag.Bool("update", false, "write the golden files")

// goldenLines are the verdicts of many cases, one a line, so that a changed rule shows which cases it touches.
type goldenLines struct{ bytes.Buffer }

func (g *goldenLines) add(kind, name string, v verdict.Verdict, fixes []advice.Fix) {
	fix := "none"
	if len(fixes) > 0 {
		fix = string(fixes[0].Action)
	}
	fmt.Fprintf(g, "%s: %s: %s (%s), %s, candidates %v, fix %s\n", kind, name, v.Limiter, v.Subtype, v.Confidence,
		v.Candidates, fix)
}

// TestVerdicts_Golden judges recorded transfers, the same as watched connections, recorded captures, and simulated
// transfers that tune compares. The simulated captures are in TestJudge_SampledTransfers of verdict/timeline.
func TestVerdicts_Golden(t *testing.T) {
	var golden goldenLines
	golden.addTransfers(t)
	golden.addWatched(t)
	golden.addCaptures(t)
	golden.addTuned(t)
	const name = "testdata/verdicts.txt"
	if *update {
		must.Do(t, os.WriteFile(name, golden.Bytes(), 0o644))
		return
	}
	want := must.Get(os.ReadFile(name))(t)
	if !bytes.Equal(golden.Bytes(), want) {
		t.Errorf("verdicts changed (go test ./internal/report -update accepts them):\n%s",
			diff.Diff(name, want, "now", golden.Bytes()))
	}
}

// recordedTransfers returns the names of the recorded transfers and the transfers.
func recordedTransfers(t *testing.T) (names []string, all []*transfer.Result) {
	t.Helper()
	files, err := filepath.Glob("../verdict/live/testdata/*.json.gz")
	if err != nil || len(files) < 100 {
		t.Fatalf("%d recorded transfers, %v", len(files), err)
	}
	for _, name := range files {
		file := must.Get(os.Open(name))(t)
		defer file.Close()
		unpacked := must.Get(gzip.NewReader(file))(t)
		r := &transfer.Result{}
		must.Do(t, json.NewDecoder(unpacked).Decode(r))
		names = append(names, strings.TrimSuffix(filepath.Base(name), ".json.gz"))
		all = append(all, r)
	}
	return names, all
}

// addTransfers judges each recorded transfer by both ends and by each alone.
func (g *goldenLines) addTransfers(t *testing.T) {
	names, all := recordedTransfers(t)
	for i, r := range all {
		bySender := *r
		byReceiver := *r
		if r.Spec.Direction == transfer.Up {
			bySender.Far = nil
			byReceiver.Near = nil
		} else {
			bySender.Near = nil
			byReceiver.Far = nil
		}
		for _, seen := range []struct {
			by string
			of *transfer.Result
		}{{"both ends", r}, {"sender", &bySender}, {"receiver", &byReceiver}} {
			v := live.Judge(seen.of)
			g.add("transfer", names[i]+" by "+seen.by, v, report.Direction(seen.of, v, nil).Fix)
		}
	}
}

// addWatched judges the first recorded transfer of each cause as its kernels' samples show it to another program, each
// 50 ms: at both ends, and by the sending kernel's clocks.
func (g *goldenLines) addWatched(t *testing.T) {
	names, all := recordedTransfers(t)
	last := ""
	for i, r := range all {
		cause := names[i][:strings.LastIndex(names[i], "_")]
		if cause == last || r.Sender() == nil || r.Receiver() == nil {
			continue
		}
		last = cause
		c, tally := watchedAs(&r.Sender().Streams[0], true)
		c.PacingBps = r.Spec.Near.PacingBps
		if r.Spec.Direction == transfer.Down {
			c.PacingBps = r.Spec.Far.PacingBps
		}
		first := c.Of[0]
		end := c.Of[len(c.Of)-1]
		facts := advice.Facts{GoodputBps: float64(end.Acked-first.Acked) * 8 / (end.At - first.At).Seconds(),
			RTTS: end.MinRTT.Seconds(), Congestion: c.Congestion, Sender: advice.Linux}
		v := c.Judge(true)
		g.add("watched", names[i]+" at the sender", v, advice.Fixes(v, facts))
		v = live.ByCounters(&first, &end, tally)
		g.add("watched", names[i]+" by clocks", v, advice.Fixes(v, facts))
		c, _ = watchedAs(&r.Receiver().Streams[0], false)
		v = c.Judge(false)
		facts.Sender = ""
		facts.Receiver = advice.Linux
		g.add("watched", names[i]+" at the receiver", v, advice.Fixes(v, facts))
	}
}

// watchedAs returns a recorded connection without what only its program knows. The send queue is charged a sixteenth
// more than its bytes, as the kernel's structures of large segments are.
func watchedAs(s *transfer.Stream, sends bool) (*live.Watched, live.Tally) {
	const interval, length = 50 * time.Millisecond, 10 * time.Second
	var tally live.Tally
	c := &live.Watched{Congestion: s.Congestion, Handshake: s.Handshake,
		SendBuffer: int64(s.SendBuffer.Granted), ReceiveBuffer: int64(s.ReceiveBuffer.Granted)}
	for i := range s.Samples {
		one := s.Samples[i]
		if i > 0 && one.At-c.Of[len(c.Of)-1].At < interval {
			continue
		}
		q := live.Queues{SendBuffer: c.SendBuffer}
		if sends {
			q.Unacked = one.Queued
			q.SendQueued = min(one.Queued+one.Queued/16, c.SendBuffer)
		} else {
			q.Unread = one.Queued
		}
		one.Have &^= transfer.HaveProgram
		one.Program = 0
		one.Blocked = 0
		one.Paused = 0
		one.Awaited = 0
		one.RunqueueWait = 0
		c.Add(&one, q, length)
		tally.Add(&one, q, false, s.Handshake.SegmentSize())
	}
	c.Acked = c.Of[len(c.Of)-1].Acked
	return c, tally
}

// addCaptures judges the direction of each recorded capture that carried the largest number of bytes.
func (g *goldenLines) addCaptures(t *testing.T) {
	var files []string
	for _, pattern := range []string{"*", "cases/*"} {
		some := must.Get(filepath.Glob("../diagnose/testdata/" + pattern + ".pcap.zst"))(t)
		files = append(files, some...)
	}
	if len(files) < 36 {
		t.Fatalf("%d captures", len(files))
	}
	for _, name := range files {
		f := must.Get(capture.Open(name))(t)
		a, err := capture.Analyze(context.Background(), capture.Config{Workers: 1}, f)
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		doc := report.Diagnose(record.Header{}, diagnose.New(a, 1))
		var heaviest *record.CapturedDirection
		for i := range doc.Connections {
			for j := range doc.Connections[i].Directions {
				d := &doc.Connections[i].Directions[j]
				if heaviest == nil || d.Bytes > heaviest.Bytes {
					heaviest = d
				}
			}
		}
		g.add("capture", strings.TrimSuffix(filepath.Base(name), ".pcap.zst"), heaviest.Verdict, heaviest.Fix)
	}
}

// tunedCauses are causes on a simulated path between hosts whose automatic windows are four BDPs.
var tunedCauses = []struct {
	name string
	set  func(*simpath.Path, *simpeer.Peer)
}{
	{"full line", func(*simpath.Path, *simpeer.Peer) {}},
	{"small windows", func(p *simpath.Path, _ *simpeer.Peer) { p.AutoWindow = p.BDP() / 5 }},
	{"small windows without clamps", func(p *simpath.Path, far *simpeer.Peer) {
		p.AutoWindow = p.BDP() / 3
		far.NoClamp = true
	}},
	{"clipped requests", func(p *simpath.Path, _ *simpeer.Peer) {
		p.AutoWindow = p.BDP() / 6
		p.Ceiling = p.BDP() / 2
	}},
	{"short queue", func(p *simpath.Path, _ *simpeer.Peer) {
		p.Queue = p.BDP() / 10
		p.Harm = 0.7
		p.Drops = 0.01
	}},
	{"loss at random", func(p *simpath.Path, _ *simpeer.Peer) { p.Loss = 0.003 }},
	{"loss and small windows", func(p *simpath.Path, _ *simpeer.Peer) {
		p.Loss = 0.0002
		p.AutoWindow = p.BDP() / 4
	}},
	{"policer", func(p *simpath.Path, far *simpeer.Peer) {
		p.Policed = true
		p.Queue = 0
		p.Harm = 0.6
		p.Drops = 0.05
		p.EarlyBps = 3 * p.RateBps
		p.EarlyFor = 300 * time.Millisecond
		far.Policed = true
		far.Bucket = true
	}},
	{"cap for each connection", func(p *simpath.Path, far *simpeer.Peer) { far.FlowBps = p.RateBps / 4 }},
	{"other traffic", func(p *simpath.Path, far *simpeer.Peer) { far.OthersBps = p.RateBps / 2 }},
	{"near host without a core", func(_ *simpath.Path, far *simpeer.Peer) { far.NearStarved = 0.4 }},
	{"far end that sets nothing", func(p *simpath.Path, far *simpeer.Peer) {
		p.AutoWindow = p.BDP() / 5
		far.NoFar = true
		far.NoClamp = true
	}},
}

// addTuned tunes five drawn paths for each cause.
func (g *goldenLines) addTuned(t *testing.T) {
	random := rand.New(rand.NewPCG(11, 12))
	between := func(low, high float64) float64 { return low + (high-low)*random.Float64() }
	for _, c := range tunedCauses {
		for n := range uint64(5) {
			path := &simpath.Path{RateBps: 1e6 * between(5, 200), RTT: time.Duration(between(8, 150) * 1e6), MSS: 1448,
				Harm: 1, Noise: simpath.Noise{Dev: between(0.003, 0.015)}}
			path.Queue = path.BDP() * between(1, 2)
			path.AutoWindow = 4 * path.BDP()
			far := simpeer.New(path, n)
			c.set(path, far)
			result := must.Get(tune.Run(t.Context(), tune.Config{Peer: far, Seed: n, FileSize: 1e9,
				Directions: []transfer.Direction{transfer.Up}}))(t)
			d := report.Tune(record.Header{}, "", result, nil, nil).Directions[0]
			name := fmt.Sprintf("%s %d, %s, chosen %s", c.name, n, d.Verdict, chosenName(d.Chosen))
			g.add("tune", name, d.Before.Verdict, d.Fix)
		}
	}
}

func chosenName(c *record.TuneChosen) string {
	switch {
	case c == nil:
		return "nothing"
	case c.Automatic:
		return "automatic"
	}
	return c.Name
}
