package text

import (
	"errors"
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/search"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/tune"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// TestTuneSentences has every code of package tune and its sentence.
func TestTuneSentences(t *testing.T) {
	bbr := tune.Setup{Congestion: "bbr"}
	open := &tune.Open{Setup: bbr, Gain: 1.5, Runs: 3, Baseline: 8, More: 12, Budget: 2 * time.Minute}
	far := errors.New("no such module")
	values := verdict.Values{"share": 0.964, "noise": 0.0123, "factor": 1.25, "others": 0.5, "low": 0.9, "high": 1.1,
		"mtu": 1400, "first": 1500, "retransmitted_before": 0.006, "retransmitted": 0.43}
	d := &tune.Direction{Direction: transfer.Up, Path: tune.Path{Window: 500_000}, Open: open,
		Decision:  tune.Decision{Strength: search.Likely, Probability: 0.9687},
		Chosen:    &tune.Chosen{Setup: tune.Setup{Window: 131_072}},
		Disturbed: &record.TuneDisturbed{NearStarved: new(0.42), HostBusy: new(0.95)}}
	reason := func(c tune.Code) string {
		d.Reason = tune.Statement{Code: c, Values: values}
		return TuneReason(d)
	}
	warning := func(c tune.Code) string {
		s := tune.Statement{Code: c, Values: values, Setup: bbr, Names: []string{"MSS", "SACK"}, Err: far}
		return TuneWarnings([]tune.Statement{s})[0]
	}
	applied := func(c tune.Code) string {
		return TuneAppliedReason(&tune.Applied{Reason: tune.Statement{Code: c, Values: values, Err: far}})
	}
	said := map[tune.Code]bool{}
	for _, c := range []struct {
		code tune.Code
		say  func(tune.Code) string
		want string
	}{
		{tune.NothingMeasured, reason, "nothing was measured"},
		{tune.CutShort, reason, "interrupted before it was decided"},
		{tune.SegmentsVanish, reason, "full segments vanish on the way, and no smaller ones were shown to pass"},
		{tune.SmallerSegmentsPass, reason, "full segments vanish on the way, these pass"},
		{tune.AtCeilings, reason, "the most that the systems' ceilings allow; the path needs 500,000 bytes"},
		{tune.QueueShortened, reason, "shown to shorten the queue and to keep the rate"},
		{tune.QueueIsShort, reason, "a transfer hardly lengthens the round trip: nothing to " +
			"change"},
		{tune.GainsMoreThanTakes, reason, "shown to gain more than it takes from another flow on the link"},
		{tune.BetterBelowCeilings, reason, "shown to be better than today's settings; the systems' ceilings keep one " +
			"connection's window below the 500,000 bytes that the path needs"},
		{tune.Better, reason, "shown to be better than today's settings"},
		{tune.LikelyBetter, reason, "96 % likely to be better than today's settings by 3 runs against 8 of automatic, not " +
			"yet proven: run tune with --budget 2m to prove it"},
		{tune.AsFast, reason, "at least 95 % of today's rate, with clearly fewer retransmissions"},
		{tune.SmallestWindow, reason, "the smallest window that is shown to reach 98 % of the best"},
		{tune.BetterWindow, reason, "shown to be better than today's settings; a somewhat smaller window might do as well"},
		{tune.LinkFull, reason, "automatic sizing reaches 96 % of the most that the path carried in any run: nothing to " +
			"change"},
		{tune.NearlyShown, reason, "automatic sizing reaches 96 % of the best that any window gave, shown to be 95 % or " +
			"more: nothing to change"},
		{tune.Indistinguishable, reason, "automatic sizing gives 96 % of what the best window gave, and single runs differ " +
			"by 1.2 %; the difference is too small to matter: nothing to change"},
		{tune.NearlyLikely, reason, "automatic sizing reaches 96 % of the best that any window gave, shown to be 91 % or " +
			"more: the gain of another one is too small to prove, and to matter"},
		{tune.NothingHelps, reason, "no trial gives 5 % more than today's settings: nothing is " +
			"changed"},
		{tune.AutomaticSuffices, reason, "automatic sizing reaches 96 % of the best that any window gave: nothing to change"},
		{tune.TooLittleMeasured, reason, "too little was measured to say: --budget 2m would decide, if these figures last"},
		{tune.ScatteredGain, reason, "congestion control bbr gave × 1.50 in the median of all runs, but the " +
			"runs scatter too much to prove it: --budget 2m would decide, if these figures last"},
		{tune.PromisingRemedy, reason, "congestion control bbr gave × 1.50 in 3 runs, not proven yet: --budget 2m would " +
			"decide, if these figures last"},
		{tune.NeedsRuns, reason, "congestion control bbr gave × 1.50 in 3 runs against 8 of automatic, and single runs " +
			"scatter too much to prove it: it needs about 12 more runs: --budget 2m"},
		{tune.PromisingWindow, reason, "congestion control bbr seems to give × 1.50, and single runs differ by 1.2 %, so " +
			"that is not proven yet: --budget 2m would decide, if these figures last"},
		{tune.WindowsUndecided, reason, "automatic sizing gives 96 % of what the best window gave, and single runs differ " +
			"by 1.2 %, so it is not decided yet whether another window is better: --budget 2m would decide, if these " +
			"figures last"},
		{tune.NothingShown, reason, "no trial was shown to be better than today's settings: nothing is " +
			"changed"},
		{tune.HostDisturbed, reason, "this host, the sender, had no core for the data 42 % of the time (other programs " +
			"use its processors, which were 95 % busy), so this result does not describe the path: " +
			"measure again when this host is idle"},
		{tune.NarrowerMTU, warning, "the path carries packets of 1400 bytes, less than its first link's 1500"},
		{tune.HandshakeRewritten, warning, "the two ends disagree on MSS and SACK: something " +
			"on the path changes the handshake"},
		{tune.NoRTT, warning, "no end could measure the round trip"},
		{tune.NotTried, warning, "congestion control bbr could not be tried: no such module"},
		{tune.BudgetSpent, warning, "the baseline took the whole budget: nothing was searched"},
		{tune.TakesMoreThanGains, warning, "congestion control bbr was not shown to gain more than it takes: next to " +
			"another flow it gives × 1.25 and leaves that one × 0.50"},
		{tune.GainUnproven, warning, "the final comparison of congestion control bbr with " +
			"today's settings showed no gain (× 0.90 to × 1.10)"},
		{tune.RetransmitsMuch, warning, "congestion control bbr retransmits 43 % of what it sends, automatic 0.6 %: " +
			"retransmissions take capacity from others on the path"},
		{tune.ProofCutShort, applied, "the proof was cut short: no such module"},
		{tune.CostsGoodput, applied, "the change costs goodput (× 1.25)"},
		{tune.FasterChanged, applied, "shown to be faster with the change"},
		{tune.LikelyChanged, applied, "likely to be faster, not proven (× 0.90 to × 1.10): kept by --accept-likely"},
		{tune.AsFastChanged, applied, "the rate stays within 5 % with the change, with clearly fewer retransmissions"},
		{tune.SlowerChanged, applied, "the path is slower with the change"},
		{tune.NoGainShown, applied, "no gain was shown (× 0.90 to × 1.10)"},
		{tune.HostNotSet, applied, "the host could not be put into the state that the proof asks for (see fullpipe " +
			"status): no such module"},
	} {
		said[c.code] = true
		if got := c.say(c.code); got != c.want {
			t.Errorf("%s:\n%s, want\n%s", c.code, got, c.want)
		}
	}
	tooFew := tune.Statement{Code: tune.GainUnproven, Setup: bbr, Values: verdict.Values{"low": 1.48, "high": 9.91}}
	if got, want := TuneWarnings([]tune.Statement{tooFew})[0], "too few runs of congestion control bbr to prove its gain "+
		"(× 1.48 to × 9.91 so far)"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	for _, code := range constants(t, "Code") {
		if !said[tune.Code(code)] {
			t.Errorf("%s has no sentence here", code)
		}
	}
}

// constants returns the values of a type's constants in packages tune and search.
func constants(t *testing.T, kind string) (values []string) {
	t.Helper()
	for _, file := range []string{"../../tune/notes.go", "../../search/search.go"} {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`\b`+kind+` += "(.+)"`).FindAllSubmatch(source, -1) {
			values = append(values, string(m[1]))
		}
	}
	return values
}

func TestTuneProgress(t *testing.T) {
	purposes := constants(t, "Purpose")
	for _, p := range purposes {
		if TunePurpose(search.Purpose(p)) == "" {
			t.Errorf("%s has no words", p)
		}
	}
	if len(purposes) != len(tunePurposes) {
		t.Errorf("%d purposes, %d in words", len(purposes), len(tunePurposes))
	}
	for _, c := range []struct {
		p    tune.Progress
		want string
	}{
		{tune.Progress{Purpose: tune.IdlePath}, "asking for the round trip"},
		{tune.Progress{Purpose: tune.Today}, "trying automatic sizing: today's settings"},
		{tune.Progress{Purpose: search.LessEnough, Setup: tune.Setup{Window: 502_240}},
			"trying a window of 502,240 bytes: is less enough?"},
		{tune.Progress{Purpose: tune.Candidate, Setup: tune.Setup{Window: 502_240, Streams: 4}},
			"trying 4 streams: does this help?"},
	} {
		if got := TuneProgress(c.p); got != c.want {
			t.Errorf("%+v: %s", c.p, got)
		}
	}
}

// TestTuneAppliedMarks checks that the outcome of a change to ECN says whether any queue marks.
func TestTuneAppliedMarks(t *testing.T) {
	for marked, want := range map[int64]string{
		0:  "the path is slower with the change; no queue on the way marked anything",
		14: "the path is slower with the change; queues marked 14 segments instead of dropping them"} {
		a := &tune.Applied{Reason: tune.Statement{Code: tune.SlowerChanged}, Marked: &marked}
		if got := TuneAppliedReason(a); got != want {
			t.Errorf("%d marks: %s", marked, got)
		}
	}
}
