package report

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/advice"
	"github.com/fullpipe-net/fullpipe/internal/plan"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
	"github.com/fullpipe-net/fullpipe/internal/search"
	"github.com/fullpipe-net/fullpipe/internal/search/simpath"
	"github.com/fullpipe-net/fullpipe/internal/stats"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/tune"
	"github.com/fullpipe-net/fullpipe/internal/tune/simpeer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// tunedPaths are paths of all kinds whose truth is known: with small windows, losses, shallow queues, full ones.
func tunedPaths() map[string]func() *simpeer.Peer {
	all := map[string]func() *simpeer.Peer{}
	for seed := range uint64(12) {
		all[fmt.Sprintf("lossy %d", seed)] = func() *simpeer.Peer {
			return simpeer.RandomLossy(rand.New(rand.NewPCG(2000+seed, 7)))
		}
	}
	fixed := func(change func(*simpath.Path)) func() *simpeer.Peer {
		return func() *simpeer.Peer {
			path := &simpath.Path{RateBps: 100e6, RTT: 40 * time.Millisecond, MSS: 1448, Queue: 1e6, Harm: 1,
				AutoWindow: 4e6, Noise: simpath.Noise{Dev: 0.004}}
			change(path)
			return simpeer.New(path, 1)
		}
	}
	all["a window of 64 KiB"] = fixed(func(p *simpath.Path) { p.AutoWindow = 65535 })
	all["ceilings"] = fixed(func(p *simpath.Path) {
		p.RateBps = 1e9
		p.RTT = 100 * time.Millisecond
		p.Queue = p.BDP()
		p.AutoWindow = 3e6
		p.Ceiling = 5.5e6
	})
	all["full"] = fixed(func(*simpath.Path) {})
	all["a shallow queue"] = fixed(func(p *simpath.Path) {
		p.Queue = 9e3
		p.Harm = 0.4
		p.Drops = 0.004
	})
	return all
}

// TestTune_OneScreenDoesNotContradictItself tunes paths between systems of all families and checks the report: no
// forecast exceeds the capacity, a decision has its strength, each recipe is possible on its hosts and has no
// alternatives in it, and no document with a kept change calls itself inconclusive.
func TestTune_OneScreenDoesNotContradictItself(t *testing.T) {
	t.Parallel()
	for name, path := range tunedPaths() {
		for i, system := range []string{"linux-6.1", "linux-6.18", "windows-10", "windows-2000", "macos", "freebsd"} {
			if strings.HasPrefix(name, "lossy") && i%3 != len(name)%3 { // others are as slow to simulate
				continue
			}
			t.Run(name+", "+system, func(t *testing.T) {
				peer := path()
				target := must.Get(plan.ParseTarget(system))(t)
				kind := advice.SystemOf(target.Family + " " + target.Version)
				r, err := tune.Run(t.Context(), tune.Config{Peer: peer, Directions: []transfer.Direction{transfer.Up},
					Near: &kind, Far: &kind})
				if err != nil {
					t.Fatal(err)
				}
				at := &System{Target: target}
				doc := Tune(record.Header{Schema: "fullpipe/tune/v1"}, "host", r, at, at)
				checkScreen(t, doc, peer.Path.CapacityBps(), kind)
				checkApplied(t, doc)
			})
		}
	}
}

// forecast matches the rate that a headline says the path carries.
var forecast = regexp.MustCompile(`of (about|at least) ([0-9.]+)( (k|M|G)?bit/s)?`)

func checkScreen(t *testing.T, doc *record.Tune, capacity float64, system advice.System) {
	t.Helper()
	var out strings.Builder
	text.Tune(&out, doc)
	d := &doc.Directions[0]
	most := 1.1 * max(capacity, d.Before.MedianBps)
	for _, f := range d.Fix {
		if e := f.Expected; e != nil && (e.HighBps > most || e.AtLeast) {
			t.Errorf("%s is expected to give %+v of %.3g bit/s", f.Action, *e, capacity)
		}
	}
	headline := strings.Join(strings.Fields(strings.SplitN(out.String(), "\n\n", 2)[0]), " ")
	if m := forecast.FindStringSubmatch(headline); m != nil {
		rate, _ := strconv.ParseFloat(m[2], 64)
		scale := map[string]float64{"k": 1e3, "M": 1e6, "G": 1e9}
		unit := m[4]
		if m[3] == "" {
			unit = regexp.MustCompile(`^[0-9.]+ (k|M|G)?bit/s`).FindStringSubmatch(headline)[1]
		}
		rate *= max(1, scale[unit])
		if rate > most || m[1] == "about" && rate < 0.85*capacity {
			t.Errorf("the path carries %.3g bit/s: %s", capacity, headline)
		}
	}
	chosen := d.Chosen != nil && !d.Chosen.Automatic
	open := d.Decision.Strength == search.Open
	if open == (d.Verdict != search.Inconclusive) || chosen != (d.Verdict == search.Change) {
		t.Errorf("%s, %s, chosen %t: %s", d.Verdict, d.Decision.Strength, chosen, d.Reason)
	}
	checkRecipes(t, d, system)
}

// checkRecipes checks that each recipe is one way to the chosen setup, the measured one first.
func checkRecipes(t *testing.T, d *record.TuneDirection, system advice.System) {
	t.Helper()
	recipes := map[int]map[string]string{}
	for i, s := range d.Settings {
		if recipes[s.Recipe] == nil {
			recipes[s.Recipe] = map[string]string{}
		}
		recipes[s.Recipe][s.Host+" "+s.Name] = s.Value
		if !system.Has(s.Name) {
			t.Errorf("%s has no %s", system, s.Name)
		}
		if i > 0 && s.Recipe < d.Settings[i-1].Recipe || s.Recipe == 1 && s.By != record.ByProgram {
			t.Errorf("recipe %d after %d, by %s", s.Recipe, d.Settings[max(0, i-1)].Recipe, s.By)
		}
	}
	for n, names := range recipes {
		for _, pair := range [][2]string{{"SO_SNDBUF", "net.ipv4.tcp_wmem"}, {"SO_RCVBUF", "net.ipv4.tcp_rmem"},
			{"TCP_CONGESTION", "congctl"}, {"congctl", "net.ipv4.tcp_congestion_control"}} {
			for _, host := range []string{"near ", "far "} {
				if names[host+pair[0]] != "" && names[host+pair[1]] != "" {
					t.Errorf("recipe %d has alternatives in one list: %v", n, names)
				}
			}
		}
	}
	c := d.Chosen
	if c != nil && c.CongestionControl != "" && recipes[1]["near TCP_CONGESTION"] != c.CongestionControl {
		t.Errorf("the first recipe is not the measured one: %v", recipes[1])
	}
	if c != nil && c.ReceiveBufferBytes > 0 && recipes[1]["far SO_RCVBUF"] != strconv.Itoa(c.ReceiveBufferBytes) {
		t.Errorf("the first recipe is not the measured one: %v", recipes[1])
	}
}

// checkApplied enters a change of the hosts that was kept, and looks for words that contradict it.
func checkApplied(t *testing.T, doc *record.Tune) {
	t.Helper()
	interval := stats.Interval{Low: 2.6, Mid: 2.8, High: 3}
	m := tune.Measured{Goodputs: []float64{1e9, 1e9, 1e9}, Interval: stats.Interval{Low: 1e9, Mid: 1e9, High: 1e9}}
	EnterTuneApplied(&doc.Directions[0], &tune.Applied{Kept: true, Gain: interval, Before: m, After: m,
		Reason: tune.Statement{Code: tune.FasterChanged}}, false)
	var out strings.Builder
	text.Tune(&out, doc)
	for _, wrong := range []string{"inconclusive", "no change", "nothing to change", "nothing is recommended", "--budget",
		"SO_RCVBUF =", "tcp_rmem =", "apply one of"} {
		if strings.Contains(out.String(), wrong) {
			t.Errorf("%q next to a kept change:\n%s", wrong, out.String())
		}
	}
	if d := &doc.Directions[0]; d.Verdict != search.Change || d.Decision.Strength != search.Shown {
		t.Errorf("%s, %+v", d.Verdict, d.Decision)
	}
}

// TestFixes_ExistOnTheSystem checks all systems and all remedies: no setting that a system lacks, and none that has
// the system's default where buffers of a program limit.
func TestFixes_ExistOnTheSystem(t *testing.T) {
	facts := advice.Facts{GoodputBps: 5e6, PathBps: 50e6, Bytes: 1e6, DurationS: 1, RTTS: 0.1, MSSBytes: 1448,
		PassingMSS: 1360, PassingMTU: 1400}
	path := plan.Path{RateBps: 100e6, RTT: 40 * time.Millisecond, MSS: 1448}
	for _, name := range plan.Targets() {
		target := must.Get(plan.ParseTarget(name))(t)
		system := advice.SystemOf(target.Family + " " + target.Version)
		facts.Sender = system
		facts.Receiver = system
		for _, role := range []plan.Role{plan.Sender, plan.Receiver} {
			facts.Windows = append(facts.Windows[:0:0], plan.For(path, target, role)...)
			for _, s := range facts.Windows {
				if s.Value == "Normal" || s.Name == "winsock autotuning" {
					t.Errorf("%s: %s = %s is its default", name, s.Name, s.Value)
				}
			}
			for _, limiter := range verdict.Names() {
				for _, subtype := range append(verdict.Subtypes(limiter), "") {
					for _, f := range advice.Fixes(verdict.Verdict{Limiter: limiter, Subtype: subtype}, facts) {
						if i := slices.IndexFunc(f.Settings, func(s plan.Setting) bool {
							return !f.System.Has(s.Name)
						}); i >= 0 && system != advice.Linux {
							t.Errorf("%s has no %s", name, f.Settings[i].Name)
						}
					}
				}
			}
		}
	}
}
