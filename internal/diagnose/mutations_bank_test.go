package diagnose

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/flow"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
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
				if len(copied.data) > 28 {
					copied.data[28]-- // the time to live, in Linux cooked 2
				}
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
	func(*rand.Rand) (string, func([]packet) []packet) {
		return "acknowledgements without data left out", func(all []packet) []packet {
			return slices.DeleteFunc(all, func(p packet) bool {
				return p.seg.Payload == 0 &&
					p.seg.Flags&(flow.SYN|flow.FIN) == 0
			})
		}
	},
}

// TestDrawnMutations judges recordings after one or two mutations drawn at random: what is
// wrong must not be called sure. FULLPIPE_BANK=1 judges 500 with a seed of its own, which it
// prints; FULLPIPE_BANK_SEED draws the same again.
func TestDrawnMutations(t *testing.T) {
	seed, trials := uint64(1), 60
	if os.Getenv("FULLPIPE_BANK") == "1" {
		seed, trials = uint64(time.Now().UnixNano()), 500
	}
	if text := os.Getenv("FULLPIPE_BANK_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("FULLPIPE_BANK_SEED=%d", seed)
	right, unsure, medium := 0, 0, 0
	for i := range trials {
		r := rand.New(rand.NewPCG(seed, uint64(i)))
		c := captured[r.IntN(len(captured))]
		all := load(t, filepath.Join("testdata", c.file+".pcap.zst"))
		var names []string
		for range 1 + r.IntN(2) {
			name, of := drawn[r.IntN(len(drawn))](r)
			if names = append(names, name); len(all) > 0 {
				all = of(all)
			}
		}
		if len(all) == 0 {
			continue
		}
		d := judged(t, all)
		what := fmt.Sprintf("%d: %s, %s", i, c.file, strings.Join(names, ", "))
		switch {
		case d == nil || d.Limiter == verdict.Unknown || d.Limiter == verdict.Mixed:
			unsure++
		case d.Limiter == c.want || slices.Contains(c.also, d.Limiter):
			right++
		case d.Confidence == verdict.High:
			t.Errorf("%s: %s with high confidence", what, d.Limiter)
		case d.Confidence == verdict.Medium:
			medium++
			t.Logf("%s: %s with medium confidence", what, d.Limiter)
		}
	}
	t.Logf("%d of %d right, %d unsure, %d wrong with medium confidence", right, trials, unsure, medium)
	const wrong = 0.05
	if float64(medium) > wrong*float64(trials) {
		t.Errorf("%d of %d wrong with medium confidence", medium, trials)
	}
}
