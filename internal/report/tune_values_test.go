package report

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/plan"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/tune"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// TestSettings_StartFromPresentValues checks that a ceiling below the system's default is raised,
// although the default would suffice.
func TestSettings_StartFromPresentValues(t *testing.T) {
	target := must.Get(plan.ParseTarget("linux-6.18"))(t)
	d := &tune.Direction{Direction: transfer.Down, Chosen: &tune.Chosen{Setup: tune.Setup{Window: 509_696}},
		Path: tune.Path{BottleneckBps: 100e6, RTT: 40 * time.Millisecond, MSS: 1448, Window: 495_216}}
	names := func(values map[string]string) (all []string) {
		for _, s := range settings(d, &System{target, values}, nil) {
			if s.Host == "near" {
				all = append(all, s.Name)
			}
		}
		return all
	}
	const rmem = "net.ipv4.tcp_rmem"
	if got := names(map[string]string{rmem: "4096 131072 262144"}); !slices.Contains(got, rmem) {
		t.Errorf("with 256 KiB at the most: %v", got)
	}
	if got := names(nil); slices.Contains(got, rmem) {
		t.Errorf("with the system's defaults: %v", got)
	}
}

// TestSettings_SwitchAutotuningOn: a far host whose system does not size its windows gets the setting that does so,
// though its other values are not known.
func TestSettings_SwitchAutotuningOn(t *testing.T) {
	target := must.Get(plan.ParseTarget("linux-6.18"))(t)
	for _, subtype := range []string{verdict.AutotuneOff, verdict.Fixed} {
		d := &tune.Direction{Direction: transfer.Up, Chosen: &tune.Chosen{Setup: tune.Setup{Window: 289_600}},
			Path:   tune.Path{BottleneckBps: 20e6, RTT: 80 * time.Millisecond, MSS: 1448, Window: 289_600},
			Before: tune.Measured{Verdict: verdict.Verdict{Limiter: verdict.ReceiverWindow, Subtype: subtype}}}
		on := slices.ContainsFunc(settings(d, nil, &System{Target: target}), func(s record.TuneSetting) bool {
			return s.Host == "far" && s.By == record.ByHost && s.Name == "net.ipv4.tcp_moderate_rcvbuf" && s.Value == "1"
		})
		if on != (subtype == verdict.AutotuneOff) {
			t.Errorf("%s: autotuning is switched on: %v", subtype, on)
		}
	}
}

// TestSettings_NameWhereToSet checks every setting except the buffers, each with its place and its source.
func TestSettings_NameWhereToSet(t *testing.T) {
	target := must.Get(plan.ParseTarget("linux-6.18"))(t)
	linux := &System{Target: target}
	d := &tune.Direction{Direction: transfer.Up, Path: tune.Path{BottleneckBps: 100e6, RTT: 40 * time.Millisecond,
		MSS: 1360, MTU: 1400, Window: 65_536}, Chosen: &tune.Chosen{Setup: tune.Setup{Congestion: "bbr", Streams: 4,
		PacingBps: 80e6, MSS: 1360, Window: 65_536}, Clamp: 131_072}}
	var got []string
	for _, s := range settings(d, linux, linux) {
		got = append(got, strings.Join([]string{s.Host, string(s.Role), s.Name, s.Value, s.Unit, s.Where, s.Source}, "|"))
	}
	for _, want := range []string{
		"near|sender|TCP_CONGESTION|bbr||in the program, before connect() or listen()|tcp(7)",
		"near|sender|congctl|bbr||of the route to the far host: ip route change … congctl bbr|ip-route(8)",
		"near|sender|net.ipv4.tcp_congestion_control|bbr||sysctl, every new connection of the host|tcp(7)",
		"near|sender|connections at once|4||in the program; they also take that many shares from others on the link|" +
			"RFC 2914 section 5.1",
		"near|sender|SO_MAX_PACING_RATE|10000000||in the program, bytes a second|socket(7)",
		"near|sender|TCP_MAXSEG|1360||in the program, before connect() or listen()|tcp(7)",
		"near|sender|mtu|1400||of the route to the far host: ip route change … mtu|ip-route(8)",
		"far|receiver|TCP_WINDOW_CLAMP|131072|bytes|in the program, on every connection|tcp(7)",
	} {
		if !slices.Contains(got, want) {
			t.Errorf("no %s in\n%s", want, strings.Join(got, "\n"))
		}
	}
}

// TestSettings_ProgramNeedsTheCeilingThatWasForced: a window that root's buffers reached names the sysctl without which
// any other program is clipped, and how many of today's connections do as well.
func TestSettings_ProgramNeedsTheCeilingThatWasForced(t *testing.T) {
	target := must.Get(plan.ParseTarget("linux-6.18"))(t)
	for _, tt := range []struct {
		name    string
		forced  bool
		today   int
		limiter verdict.Name
		want    []string
	}{
		{"forced", true, 4 << 20, verdict.SendBuffer, []string{"1 program SO_SNDBUF=20971520",
			"1 program net.core.wmem_max=20971520", "2 host net.ipv4.tcp_wmem", "3 streams connections at once=4"}},
		{"granted", false, 4 << 20, verdict.SendBuffer, []string{"1 program SO_SNDBUF=20971520",
			"2 host net.ipv4.tcp_wmem", "3 streams connections at once=4"}},
		{"loss limits, so streams are no substitute", false, 4 << 20, verdict.Congestion,
			[]string{"1 program SO_SNDBUF=20971520", "2 host net.ipv4.tcp_wmem"}},
		{"too many streams", true, 64 << 10, verdict.ReceiverWindow, []string{"1 program SO_SNDBUF=20971520",
			"1 program net.core.wmem_max=20971520", "2 host net.ipv4.tcp_wmem"}},
	} {
		near := &transfer.End{Streams: []transfer.Stream{{SendBuffer: transfer.Buffer{Requested: 20 << 20,
			Granted: 40 << 20, Forced: tt.forced}}}}
		d := &tune.Direction{Direction: transfer.Up, Goal: tune.Throughput,
			Path:   tune.Path{BottleneckBps: 1e9, RTT: 128 * time.Millisecond, MSS: 1448, Window: 16 << 20},
			Chosen: &tune.Chosen{Setup: tune.Setup{Window: 16 << 20}, SendBuffer: 20 << 20},
			Before: tune.Measured{Verdict: verdict.Verdict{Limiter: tt.limiter}},
			After:  &tune.Measured{Typical: &transfer.Result{Near: near}},
			Trials: []tune.Trial{{Automatic: true, Effective: tt.today}}}
		var got []string
		for _, s := range settings(d, &System{Target: target}, nil) {
			line := fmt.Sprintf("%d %s %s", s.Recipe, s.By, s.Name)
			if s.By != record.ByHost {
				line += "=" + s.Value
			}
			got = append(got, line)
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}
