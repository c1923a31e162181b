package tune

import (
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/search"
	"github.com/fullpipe-net/fullpipe/internal/search/simpath"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/tune/simpeer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// wide is a path of 1 Gbit/s and 20 ms whose hosts fill it.
func wide() *simpath.Path {
	p := &simpath.Path{RateBps: 1e9, RTT: 20 * time.Millisecond, MSS: 1448, Harm: 1, Noise: simpath.Noise{Dev: 0.004}}
	p.Queue, p.AutoWindow = p.BDP(), 1.9*p.BDP()
	return p
}

// Several streams distinguish a full link from a cap per connection and from a shared link.
func TestTune_CapPerConnection(t *testing.T) {
	for _, c := range []struct {
		name           string
		flow, others   float64
		subtype        string
		streams, after float64 // that fill the path, and the gain
	}{
		{"the link is full", 0, 0, "", 0, 1},
		{"200 Mbit/s each", 193e6, 0, verdict.PerFlow, 5, 4.9},
		{"300 Mbit/s each", 290e6, 0, verdict.PerFlow, 4, 3.3},
		{"80 Mbit/s each", 77e6, 0, verdict.PerFlow, 13, 12.4},
		{"others have two thirds", 0, 640e6, verdict.Shared, 0, 1},
	} {
		path := wide()
		peer := simpeer.New(path, 1)
		peer.FlowBps, peer.OthersBps = c.flow, c.others
		d := run(t, peer, nil)
		v := d.Before.Verdict
		if v.Limiter != verdict.Bottleneck || v.Subtype != c.subtype {
			t.Errorf("%s: %s, %q, %+v", c.name, v.Limiter, v.Subtype, v.Evidence)
			continue
		}
		if c.streams > 0 && (d.Chosen == nil || float64(d.Chosen.Streams) != c.streams || d.Gain.Mid < 0.93*c.after) {
			t.Errorf("%s: %+v, gain %+v: %s", c.name, d.Chosen, d.Gain, d.Reason.Code)
		}
		if c.subtype == "" && (d.Verdict != search.NoChange || d.Chosen != nil) {
			t.Errorf("%s: %s, %+v", c.name, d.Verdict, d.Chosen)
		}
	}
}

// Several streams carry no more than one where one run alone carried as much.
func TestStreamProbe_OneRunCarriedAsMuch(t *testing.T) {
	peer := simpeer.New(wide(), 1)
	peer.FlowBps = 193e6
	l := newLoop(Config{Peer: peer}, transfer.Up)
	single, err := l.try(t.Context(), l.with(Setup{}, time.Second, Today))
	if err != nil {
		t.Fatal(err)
	}
	l.path.learn(&single)
	for _, c := range []struct {
		most float64
		want bool
	}{{single.Goodput, true}, {760e6, false}} {
		p := &streamProbe{runner: l.runner, single: &single, most: c.most}
		if err := p.probe(t.Context()); err != nil || (p.found != nil) != c.want {
			t.Errorf("one run carried %.0f Mbit/s: %+v, %v", c.most/1e6, p.found, err)
		}
	}
}

// The streams stay within the payload that may be moved.
func TestTune_StreamsStayWithinMaxBytes(t *testing.T) {
	peer := simpeer.New(wide(), 1)
	peer.FlowBps = 193e6
	const most = 150e6
	d := run(t, peer, func(cfg *Config) { cfg.MaxBytes = most })
	var moved int64
	for i := range d.Trials {
		moved += d.Trials[i].bytes
	}
	if moved > most {
		t.Errorf("%d bytes", moved)
	}
}

// TestStreamProbe_Kind has the slowest stream's share of a single one and the least round trips.
func TestStreamProbe_Kind(t *testing.T) {
	for _, c := range []struct {
		name            string
		least           float64
		single, several time.Duration
		idle            bool // one connection loses and keeps no queue
		limiter         verdict.Name
		subtype         string
	}{
		{"each as fast as one", 0.99, 20e6, 20e6, false, verdict.Bottleneck, verdict.PerFlow},
		{"just fast enough", 0.8, 20e6, 20e6, false, verdict.Bottleneck, verdict.PerFlow},
		{"one is slower", 0.79, 20e6, 20e6, false, verdict.Bottleneck, verdict.Shared},
		{"one loses and leaves the link idle", 0.3, 20e6, 20e6, true, verdict.Unknown, ""},
		{"each loses at its cap", 0.99, 20e6, 20e6, true, verdict.Bottleneck, verdict.PerFlow},
		{"another path", 0.99, 20e6, 35e6, false, verdict.Unknown, ""},
		{"a shorter path", 0.99, 20e6, 12e6, false, verdict.Unknown, ""},
		{"a host's own scatter", 0.99, 1e6, 1.9e6, false, verdict.Bottleneck, verdict.PerFlow},
	} {
		path := wide()
		if c.idle {
			path = shallow(1e9, 20*time.Millisecond, 40, 0.8, 0.3)
		}
		r, err := transfer.Run(t.Context(), simpeer.New(path, 1), transfer.Spec{Direction: transfer.Up, Time: time.Second},
			nil)
		if err != nil {
			t.Fatal(err)
		}
		p := &streamProbe{single: &Trial{result: r}, found: &verdict.Evidence{Values: verdict.Values{"least_ratio": c.least,
			"rtt_single_s": c.single.Seconds(), "rtt_several_s": c.several.Seconds()}}}
		v := verdict.Verdict{Limiter: verdict.Bottleneck}
		if p.refine(&v); v.Limiter != c.limiter || v.Subtype != c.subtype {
			t.Errorf("%s: %s, %q", c.name, v.Limiter, v.Subtype)
		}
	}
}

// TestStreamProbe_SameRate checks that streams which carry no more than one make a full link that only the receiver
// sees probable, if all runs name it.
func TestStreamProbe_SameRate(t *testing.T) {
	queue := verdict.Evidence{Code: verdict.ArrivesThroughAQueue}
	for _, c := range []struct {
		name     string
		same     bool
		evidence []verdict.Evidence
		want     verdict.Confidence
	}{
		{"the same rate", true, []verdict.Evidence{queue}, verdict.Medium},
		{"not tried", false, []verdict.Evidence{queue}, verdict.Low},
		{"the sender was seen", true, []verdict.Evidence{{Code: verdict.FullLinkNoQueue}}, verdict.Low},
		{"a run names another limiter", true, []verdict.Evidence{queue, {Code: verdict.RunsDisagree}}, verdict.Low},
	} {
		v := verdict.Verdict{Limiter: verdict.Bottleneck, Confidence: verdict.Low, Evidence: c.evidence}
		p := &streamProbe{same: c.same}
		if p.refine(&v); v.Confidence != c.want || v.Subtype != "" {
			t.Errorf("%s: %s, %q", c.name, v.Confidence, v.Subtype)
		}
	}
}
