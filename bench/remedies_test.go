//go:build linux

package bench

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
	"github.com/fullpipe-net/fullpipe/internal/lab"
	"github.com/fullpipe-net/fullpipe/internal/link"
	"github.com/fullpipe-net/fullpipe/internal/search"
	"github.com/fullpipe-net/fullpipe/internal/stats"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

//go:embed testdata/remedies.txt
var remedyCases string

// remedyCase is one line of testdata/remedies.txt.
type remedyCase struct {
	cause     string
	direction transfer.Direction
	ip        string
	all       bool // windows × controls × streams instead of the stated list
	profile   string
}

func parseRemedyCases(t *testing.T) (all []remedyCase) {
	t.Helper()
	for line := range strings.Lines(remedyCases) {
		f := strings.Fields(line)
		if len(f) == 0 || f[0] == "#" || strings.HasPrefix(line, "#") {
			continue
		}
		if len(f) != 5 {
			t.Fatalf("%q", line)
		}
		all = append(all, remedyCase{f[0], transfer.Direction(f[1]), f[2], f[3] == "all", f[4]})
	}
	return all
}

// TestRemedyCases checks that the bank has the promised cases: at least 40 paths, ten of them searched exhaustively;
// twenty that lose, police, queue, reorder or lack a processor or a program; a third over IPv6.
func TestRemedyCases(t *testing.T) {
	t.Parallel()
	var many, exhaustive, harsh, six int
	for _, c := range parseRemedyCases(t) {
		many++
		if c.all {
			exhaustive++
		}
		if slices.Contains([]string{"loss", "policer", "queue", "reordering", "cpu", "program"}, c.cause) {
			harsh++
		}
		if c.ip == "6" {
			six++
		}
	}
	if many < 40 || exhaustive < 10 || harsh < 20 || 3*six < many-1 {
		t.Errorf("%d paths, %d searched exhaustively, %d harsh, %d over IPv6", many, exhaustive, harsh, six)
	}
}

// scatter is the cause of paths whose losses scatter single runs: all settings are measured in runs of scatterLength
// there. FULLPIPE_BANK_CASES=lossy selects them.
const (
	scatter       = "lossy"
	scatterLength = 15 * time.Second
)

// sending is a set of sender's settings, as tune has them.
type sending struct {
	window  int
	control string
	streams int
	pacing  float64
	mss     int
}

func (s sending) String() string {
	return fmt.Sprintf("window %d, control %q, %d streams, pacing %.3g, MSS %d", s.window, s.control, max(1, s.streams),
		s.pacing, s.mss)
}

// spec lasts at least as long as tune's own transfers on that path: where losses limit, shorter transfers still show
// the effects of slow start.
func (s sending) spec(d transfer.Direction, path search.Config, least time.Duration) transfer.Spec {
	spec := transfer.Spec{Direction: d, Time: max(path.Length(s.window), 40*path.RTT, least), Streams: s.streams}
	sender, receiver := &spec.Near, &spec.Far
	if d == transfer.Down {
		sender, receiver = receiver, sender
	}
	sender.Congestion, sender.PacingBps, sender.MSS = s.control, s.pacing, s.mss
	if s.window > 0 {
		sender.SendBuffer, receiver.ReceiveBuffer, receiver.Clamp = s.window+s.window/4, s.window, s.window
	}
	return spec
}

// exhaustiveWindows is the number of windows in an exhaustive search.
const exhaustiveWindows = 9

// rivals are the settings with which tune's result is compared. All of them use one stream and, in a second series,
// four. An empty control is the stack's own: cubic on the Linux ones, which not every namespace may select by name.
func (c *remedyCase) rivals(path search.Config) (rivals []sending) {
	bdp := max(2*path.MSS, int(path.Knee)/path.MSS*path.MSS)
	one := []sending{{}, {control: "bbr"}, {control: "reno"}, {window: bdp}, {window: 4 * bdp},
		{pacing: 0.97 * path.CapacityBps}, {control: "bbr", window: 4 * bdp}}
	if c.all {
		one = nil
		for _, control := range []string{"", "bbr", "reno"} {
			for _, share := range [exhaustiveWindows]float64{0, 0.5, 0.7, 0.85, 1, 1.2, 1.5, 2, 4} {
				one = append(one, sending{control: control, window: int(share*float64(bdp)) / path.MSS * path.MSS})
			}
		}
	}
	for _, s := range one {
		rivals = append(rivals, s)
		s.streams = 4
		rivals = append(rivals, s)
	}
	return rivals
}

// concurrentMbit is the highest rate at which a path is measured while others are, up to the number in -parallel.
// Each run checks whether that made the lab late. Two processors can run four labs; with nine at once every run was
// dropped.
const concurrentMbit = 50

// TestBankRemedies compares tune's final settings with the best of a search: at least 95 % of the best with the same
// number of streams, and of the best overall. FULLPIPE_BANK_CASES selects lines of testdata/remedies.txt by words
// that they contain, separated by semicolons. With FULLPIPE_BANK_TIME it runs in pieces: no case begins later than
// that, and cases with a row in FULLPIPE_BANK_OUT are left out.
func TestBankRemedies(t *testing.T) {
	bankOnly(t)
	began, most, done := time.Now(), pieceTime(t), map[string]bool{}
	if most < wholeBank {
		done = bankCases(t, "remedies")
	}
	words := strings.Split(os.Getenv("FULLPIPE_BANK_CASES"), ";")
	for _, c := range parseRemedyCases(t) {
		name := fmt.Sprintf("%s %s IPv%s %s", c.cause, c.direction, c.ip, c.profile)
		if done[name] || !slices.ContainsFunc(words, func(word string) bool { return strings.Contains(name, word) }) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			path, err := link.Parse(c.profile)
			if err != nil {
				t.Fatal(err)
			}
			alone := alone
			if fastest := max(inTheLongRun(&path.Up), inTheLongRun(&path.Down)); fastest > 0 && fastest <= concurrentMbit*1e6 {
				t.Parallel()
				alone = func(_ *testing.T, measure func()) { measure() }
			}
			if time.Since(began) > most {
				t.Skip("the time is over: run it again for the rest")
			}
			bankRemedy(t, &c, name, alone)
		})
	}
}

// wholeBank is the time of a bank that is not run in pieces.
const wholeBank = 100 * time.Hour

// pieceTime is the time within which a piece of the bank may begin new cases.
func pieceTime(t *testing.T) time.Duration {
	t.Helper()
	given := os.Getenv("FULLPIPE_BANK_TIME")
	if given == "" {
		return wholeBank
	}
	most, err := time.ParseDuration(given)
	if err != nil {
		t.Fatal(err)
	}
	return most
}

// inTheLongRun returns the rate that a direction carries, or 0 without a limit.
func inTheLongRun(l *link.Config) float64 {
	if l.PoliceRate > 0 && (l.Rate == 0 || l.PoliceRate < l.Rate) {
		return float64(l.PoliceRate)
	}
	return float64(l.Rate)
}

// bankCases are the cases of a section that have a row already.
func bankCases(t *testing.T, section string) map[string]bool {
	t.Helper()
	done := map[string]bool{}
	rows, err := os.ReadFile(os.Getenv("FULLPIPE_BANK_OUT"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	for line := range bytes.Lines(rows) {
		var row bankRow
		if err := json.Unmarshal(line, &row); err != nil {
			t.Fatal(err)
		}
		done[row.Case] = done[row.Case] || row.Section == section
	}
	return done
}

// mostOfBest is the share of the best that tune has to reach.
const mostOfBest = 0.95

func bankRemedy(t *testing.T, c *remedyCase, name string, alone func(*testing.T, func())) {
	site := harness.NewTuneSite(t, c.profile)
	if c.ip == "6" {
		site.Far = lab.FarAddr6
	}
	busy := c.cause == "cpu" // on purpose
	loop, turns := exact{crowded: busy}, exact{want: 4, crowded: busy}
	row := func(of *exact, claim, measured, spread, verdict string) {
		record(t, of.into(bankRow{Section: "remedies", Case: name, Claim: claim, Measured: measured, Spread: spread,
			Verdict: verdict, Command: fmt.Sprintf("fullpipe tune lab:%s --direction %s", c.profile, c.direction)}))
	}
	var doc harness.TuneReport
	for loop.more() {
		alone(t, func() { doc = site.Tune(t, c.direction) })
		loop.keep(doc.Late)
	}
	if len(doc.Directions) != 1 || doc.Directions[0].Path.MSS == 0 {
		t.Fatalf("%+v", doc)
	}
	d := doc.Directions[0]
	chosen := sending{}
	if d.Chosen != nil {
		chosen = sending{d.Chosen.Window, d.Chosen.Control, d.Chosen.Streams, d.Chosen.PacingBps, d.Chosen.MSS}
	}
	path := site.SearchConfig(d.Path.MSS, d.Path.Capacity, d.Path.RTT)
	least := time.Duration(d.Before.Duration * float64(time.Second))
	if c.cause == scatter {
		least = scatterLength
	}
	rivals := c.rivals(path)
	var specs []transfer.Spec
	for _, s := range rivals {
		specs = append(specs, s.spec(c.direction, path, least))
	}
	began := time.Now()
	once := map[sending]float64{}
	alone(t, func() {
		for i, bps := range site.MeasureGoodputs(t, specs) {
			once[rivals[i]] = bps
		}
	})
	took := time.Since(began).Seconds()
	bestOf := func(counts func(sending) bool) (best sending) {
		most := 0.0
		for _, s := range rivals {
			if counts(s) && once[s] > most {
				best, most = s, once[s]
			}
		}
		return best
	}
	alike := bestOf(func(s sending) bool { return (s.streams > 1) == (chosen.streams > 1) })
	any := bestOf(func(sending) bool { return true })
	again := map[sending][]float64{}
	var finals []sending // empty where one is the best of all
	for _, s := range []sending{chosen, alike, any} {
		if !slices.Contains(finals, s) {
			finals = append(finals, s)
		}
	}
	share := func(best sending) stats.Interval { return stats.Gain(again[best], again[chosen], 0.95) }
	turns.open = func() bool {
		return slices.ContainsFunc(finals[1:], func(best sending) bool {
			of := share(best)
			return of.Low < mostOfBest && of.High >= mostOfBest
		})
	}
	for len(finals) > 1 && turns.more() {
		specs := []transfer.Spec{}
		for _, s := range finals {
			specs = append(specs, s.spec(c.direction, path, least))
		}
		var got []float64
		alone(t, func() { got = site.MeasureGoodputs(t, specs) })
		counts, err := turns.keepLab(site.Lab)
		if err != nil {
			t.Fatal(err)
		}
		for i, s := range finals {
			if counts {
				again[s] = append(again[s], got[i])
			}
		}
	}
	for _, against := range []struct {
		claim string
		best  sending
	}{{"at least 95 % of the best with as many streams", alike}, {"at least 95 % of the best at all", any}} {
		reached := stats.Interval{Low: 1, Mid: 1, High: 1}
		if against.best != chosen {
			reached = share(against.best)
		}
		of := &turns
		if len(finals) == 1 {
			of = &loop
		}
		measured, spread := fmt.Sprintf("%.1f %%", 100*reached.Mid),
			fmt.Sprintf("%.1f to %.1f %%", 100*reached.Low, 100*reached.High)
		switch {
		case math.IsNaN(reached.Mid):
			measured, spread = "not known", "no turn counts"
		case reached.Low > 100:
			measured, spread = "all of it", "nothing else moves data"
		}
		row(of, against.claim, fmt.Sprintf("%s by %s (%s)", measured, chosen, d.Verdict),
			spread+"; best: "+against.best.String(),
			byInterval(reached.Mid >= mostOfBest, reached.Low >= mostOfBest || reached.High < mostOfBest))
	}
	if c.all {
		// This measures only some of the windows, in steps of 10 %, that a search would try.
		windows := math.Log(8*path.Knee/float64(2*path.MSS)) / math.Log(search.Step)
		took *= windows / exhaustiveWindows
		row(&loop, "in a tenth of the exhaustive time", fmt.Sprintf("%.1f s", doc.ElapsedS),
			fmt.Sprintf("of %.0f s for %.0f windows × 3 controls × {1, 4 streams}, one run each, as long as tune's", took,
				windows),
			byInterval(doc.ElapsedS <= took/10, true))
	}
}

// noGain are slow paths on which nothing helps, one way each.
var noGain = []string{"up rate=20mbit,rtt=10ms", "down rate=5mbit,rtt=30ms", "up rate=10mbit,rtt=60ms,jitter=2ms",
	"down rate=8mbit,rtt=20ms,queue=2bdp", "up rate=2mbit,rtt=40ms"}

// TestBankNoGainWhereThereIsNone runs tune repeatedly on paths on which nothing helps, as many paths at a time as
// -parallel allows. None of 50 runs may report a proven gain (1 % of the runs are allowed to), neither in its result
// nor in an interval of a trial.
func TestBankNoGainWhereThereIsNone(t *testing.T) {
	bankOnly(t)
	const each = 10
	until := time.Now().Add(pieceTime(t))
	counted, wrong := make([]exact, len(noGain)), make([]int, len(noGain))
	t.Run("paths", func(t *testing.T) {
		for i, text := range noGain {
			t.Run(text, func(t *testing.T) {
				t.Parallel()
				direction, profile, _ := strings.Cut(text, " ")
				site, of := harness.NewTuneSite(t, profile), &counted[i]
				for of.want = each; of.more() && time.Now().Before(until); {
					doc := site.Tune(t, transfer.Direction(direction), "--budget", "10s")
					if !of.keep(doc.Late) || len(doc.Directions) != 1 {
						continue
					}
					if d := &doc.Directions[0]; d.Verdict == search.Change || slices.ContainsFunc(d.Remedies,
						harness.TuneRemedy.Helps) {
						wrong[i]++
						t.Logf("%+v, %+v", d.Chosen, d.Remedies)
					}
				}
			})
		}
	})
	all, shown := exact{want: each * len(noGain)}, 0
	for i := range counted {
		all.counted, all.dropped, shown = all.counted+counted[i].counted, all.dropped+counted[i].dropped, shown+wrong[i]
		all.late(counted[i].worst)
	}
	record(t, all.into(bankRow{Section: "remedies", Case: strings.Join(noGain, "; "),
		Claim:    "no gain is shown where there is none",
		Measured: fmt.Sprintf("%d of %d runs", shown, all.counted), Spread: "at most 1 % of A/A runs",
		Verdict: byInterval(shown*100 <= all.counted, true), Command: "fullpipe tune lab:… --budget 10s"}))
}
