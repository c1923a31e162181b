package diagnose

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/flow"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// drawn are mutations with parameters drawn at random; each names itself.
var drawn = []func(r *rand.Rand) (name string, of func([]packet) []packet){
	func(r *rand.Rand) (string, func([]packet) []packet) {
		late, seed := 100_000+r.Int64N(20e6), r.Uint64()
		return fmt.Sprintf("records up to %d us late", late/1000), func(all []packet) []packet {
			r := rand.New(rand.NewPCG(seed, 1))
			written := make([]int64, len(all))
			order := make([]int, len(all))
			for i := range all {
				written[i], order[i] = all[i].at+r.Int64N(late), i
			}
			slices.SortStableFunc(order, func(a, b int) int { return int(max(min(written[a]-written[b], 1), -1)) })
			out := make([]packet, len(all))
			for i, from := range order {
				out[i] = all[from]
			}
			return out
		}
	},
	func(r *rand.Rand) (string, func([]packet) []packet) {
		by := []int64{-1, 1}[r.IntN(2)] * (5e6 + r.Int64N(3000e6))
		return fmt.Sprintf("the clock set by %d ms", by/1e6), clockSet(by)
	},
	func(r *rand.Rand) (string, func([]packet) []packet) {
		after := 10_000 + r.Int64N(3e6)
		return fmt.Sprintf("copies of another hop %d us later", after/1000), func(all []packet) []packet {
			var out []packet
			for _, p := range all {
				copied := p
				copied.data = slices.Clone(p.data)
				copied.at += after
				ttl := ipHeader(&p) + 8
				if p.data[ipHeader(&p)]>>4 == 6 {
					ttl--
				}
				copied.data[ttl]--
				out = append(out, p, copied)
			}
			slices.SortStableFunc(out, func(a, b packet) int { return int(max(min(a.at-b.at, 1), -1)) })
			return out
		}
	},
	func(r *rand.Rand) (string, func([]packet) []packet) {
		from := r.IntN(2)
		return fmt.Sprintf("only direction %d", from), func(all []packet) []packet {
			first := all[0].seg.Src
			return slices.DeleteFunc(all, func(p packet) bool { return (p.seg.Src == first) == (from == 0) })
		}
	},
	func(r *rand.Rand) (string, func([]packet) []packet) {
		share := r.Float64() * 0.5
		return fmt.Sprintf("without the first %.0f %%", 100*share),
			func(all []packet) []packet { return all[int(share*float64(len(all))):] }
	},
	func(r *rand.Rand) (string, func([]packet) []packet) {
		length := 64 + r.IntN(40)
		return fmt.Sprintf("snaplen %d", length), func(all []packet) []packet {
			for i := range all {
				all[i].data = all[i].data[:min(len(all[i].data), length)]
			}
			return all
		}
	},
	func(r *rand.Rand) (string, func([]packet) []packet) {
		share, seed := r.Float64()*0.02, r.Uint64()
		return fmt.Sprintf("%.2f %% lost at the tap", 100*share), func(all []packet) []packet {
			r := rand.New(rand.NewPCG(seed, 2))
			return slices.DeleteFunc(all, func(packet) bool { return r.Float64() < share })
		}
	},
	func(r *rand.Rand) (string, func([]packet) []packet) {
		every, long, seed := 500+r.IntN(5000), 1+r.IntN(60), r.Uint64()
		return fmt.Sprintf("%d packets lost at the tap one time in %d", long, every), func(all []packet) []packet {
			r := rand.New(rand.NewPCG(seed, 3))
			left := 0
			return slices.DeleteFunc(all, func(packet) bool {
				if left--; left < 0 && r.IntN(every) == 0 {
					left = long
				}
				return left > 0
			})
		}
	},
	func(r *rand.Rand) (string, func([]packet) []packet) {
		within := 20_000 + r.Int64N(400_000)
		return fmt.Sprintf("segments within %d us merged", within/1000), func(all []packet) []packet {
			return merged(all, within)
		}
	},
	func(r *rand.Rand) (string, func([]packet) []packet) {
		grain := 100_000 + r.Int64N(4e6)
		return fmt.Sprintf("a clock of %d us", grain/1000), func(all []packet) []packet {
			for i := range all {
				all[i].at -= all[i].at % grain
			}
			return all
		}
	},
	func(r *rand.Rand) (string, func([]packet) []packet) {
		step := 20e6 + r.Int64N(1000e6)
		return fmt.Sprintf("stamped together each %d ms", step/1e6), func(all []packet) []packet {
			return inBatches(all, step)
		}
	},
	func(r *rand.Rand) (string, func([]packet) []packet) {
		from, late := r.IntN(2), r.Int64N(2e6)
		return fmt.Sprintf("direction %d stamped up to %d us late", from, late/1000), func(all []packet) []packet {
			first, floor := all[0].seg.Src, int64(0)
			for i := range all {
				if p := &all[i]; (p.seg.Src == first) == (from == 0) && late > 0 {
					floor = max(floor, p.at+late-p.at%late)
					p.at = floor
				}
			}
			return all
		}
	},
	func(*rand.Rand) (string, func([]packet) []packet) {
		return "nothing changed", func(all []packet) []packet { return all }
	},
	func(*rand.Rand) (string, func([]packet) []packet) {
		return "acknowledgements without data left out", func(all []packet) []packet {
			return slices.DeleteFunc(all, func(p packet) bool {
				return p.seg.Payload == 0 &&
					p.seg.Flags&(flow.SYN|flow.FIN) == 0
			})
		}
	},
}

// inBatches stamps what is captured within a time, nanoseconds, at its end.
func inBatches(all []packet, step int64) []packet {
	end, apart := int64(0), int64(0)
	for i := range all {
		if at := (all[i].at/step + 1) * step; at > end {
			end, apart = at, 0
		}
		all[i].at = end + apart
		apart += 2000
	}
	return all
}

// TestDrawnMutations judges captures after one or two mutations drawn at random: no wrong verdict
// may have high confidence. FULLPIPE_BANK=1 judges FULLPIPE_BANK_TRIALS (500) with a seed
// of its own, which it prints; FULLPIPE_BANK_SEED draws the same again. The captures are the
// recordings in testdata, or those that TestBankDiagnose of bench keeps in FULLPIPE_BANK_CAPTURES:
// any cause, seen at any of three taps.
func TestDrawnMutations(t *testing.T) {
	seed, trials := draws(t, 60)
	of := recordings()
	if dir := os.Getenv("FULLPIPE_BANK_CAPTURES"); dir != "" {
		of = keptCaptures(t, dir)
	}
	wrong := tallies{}
	for i := range trials {
		r := rand.New(rand.NewPCG(seed, uint64(i)))
		c := of[r.IntN(len(of))]
		all := load(t, c.file)
		var names, kinds []string
		for range 1 + r.IntN(2) {
			kind := r.IntN(len(drawn))
			name, mutate := drawn[kind](r)
			if names, kinds = append(names, name), append(kinds, kindOf(name)); len(all) > 0 {
				all = mutate(all)
			}
		}
		if len(all) == 0 {
			continue
		}
		d := judged(t, all)
		as := c.judge(d)
		for _, kind := range append(kinds, "all") {
			wrong.count(kind, as)
		}
		name := fmt.Sprintf("%d: %s, %s", i, c.name, strings.Join(names, ", "))
		reportWrong(t, name, as, d)
	}
	wrong.judge(t, trials)
}

// reportWrong reports a wrong verdict with its case: with high confidence none may be.
func reportWrong(t *testing.T, name string, as outcome, d *record.CapturedDirection) {
	t.Helper()
	switch as {
	case wrongHigh:
		t.Errorf("%s: %s with high confidence; %v", name, d.Limiter, d.Shares)
	case wrongMedium:
		t.Logf("%s: %s with medium confidence; %v", name, d.Limiter, d.Shares)
	}
}

// judge asks that few of all trials are wrong with medium confidence.
func (t tallies) judge(test *testing.T, trials int) {
	test.Helper()
	test.Log(t)
	const wrong = 0.05
	if medium := t["all"][wrongMedium]; float64(medium) > wrong*float64(trials) {
		test.Errorf("%d of %d wrong with medium confidence", medium, trials)
	}
}

// draws is the seed and the number of trials that the environment asks for, few and always the
// same outside the bank.
func draws(t *testing.T, few int) (seed uint64, trials int) {
	t.Helper()
	seed, trials = 1, few
	if os.Getenv("FULLPIPE_BANK") == "1" {
		seed, trials = uint64(time.Now().UnixNano()), 500
	}
	for name, to := range map[string]func(uint64){
		"FULLPIPE_BANK_SEED":   func(n uint64) { seed = n },
		"FULLPIPE_BANK_TRIALS": func(n uint64) { trials = int(n) },
	} {
		if text := os.Getenv(name); text != "" {
			n := must.Get(strconv.ParseUint(text, 10, 64))(t)
			to(n)
		}
	}
	t.Logf("FULLPIPE_BANK_SEED=%d", seed)
	return seed, trials
}

// TestDrawnPairs has the captures of both ends diagnosed together after each went through
// something drawn, with clocks of their own and, every other time, addresses translated between
// them: no wrong verdict may have high confidence. The environment is TestDrawnMutations'.
func TestDrawnPairs(t *testing.T) {
	seed, trials := draws(t, 20)
	other := func(c known) string { return strings.Replace(c.file, ".near.", ".far.", 1) }
	of := slices.DeleteFunc(recordings(), func(c known) bool {
		_, err := os.Stat(other(c))
		return err != nil || other(c) == c.file
	})
	wrong := tallies{}
	for i := range trials {
		r := rand.New(rand.NewPCG(seed, uint64(i)))
		c := of[r.IntN(len(of))]
		near, far := together(load(t, c.file), load(t, other(c)))
		kinds, label := []string{"all"}, fmt.Sprintf("%d: %s", i, c.name)
		for _, all := range []*[]packet{&near, &far} {
			name, mutate := drawn[r.IntN(len(drawn))](r)
			*all, kinds, label = mutate(*all), append(kinds, kindOf(name)), label+", "+name
		}
		far = clockRuns((r.Float64()-0.5)*1e13, (r.Float64()-0.5)*2e-4)(far)
		if r.IntN(2) == 0 {
			far, kinds = translated(far), append(kinds, "translated")
		}
		if len(near) == 0 || len(far) == 0 {
			continue
		}
		both := New(analyzedPackets(t, near), 1)
		both.Compare(analyzedPackets(t, far))
		var d *record.CapturedDirection
		if all := both.Record.Connections; len(all) > 0 {
			d = all[0].Worst()
		}
		as := c.judge(d)
		for _, kind := range kinds {
			wrong.count(kind, as)
		}
		reportWrong(t, label, as, d)
	}
	wrong.judge(t, trials)
}
