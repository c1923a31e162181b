package verdict

import (
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// A factor of 0 that was offered and an option that never came through are two faults with
// two remedies.
func TestAFactorOfZeroIsNoMissingOption(t *testing.T) {
	for _, c := range []struct {
		name  string
		facts WindowFacts
		want  string
	}{
		{"the case's own window", WindowFacts{Scale: 0, ScaleKnown: true, Largest: 64512, Middle: 64512, Last: 64512},
			ScaleZero},
		{"another one", WindowFacts{Scale: 0, ScaleKnown: true, Largest: 65160, Middle: 65160, Last: 65160}, ScaleZero},
		{"stripped on the way", WindowFacts{Scale: -1, ScaleKnown: true, Largest: 64512, Middle: 64512, Last: 64512},
			Unscaled},
		{"stripped, small", WindowFacts{Scale: -1, ScaleKnown: true, Largest: 17520, Middle: 17520, Last: 17520}, Fixed},
		{"Windows 95", WindowFacts{Scale: -1, ScaleKnown: true, Largest: 8192, Middle: 8192, Last: 8192}, Fixed},
		{"two segments, no option", WindowFacts{Scale: -1, ScaleKnown: true, Largest: 2920, Middle: 2920, Last: 2920,
			SizeKnown: true, Requested: 2920}, Fixed},
		{"a ceiling below 64 KiB, no option", WindowFacts{Scale: -1, ScaleKnown: true, Largest: 32120, Middle: 32120,
			Last: 32120, SizeKnown: true, Automatic: true}, AutotuneCeiling},
		{"a program's, as it says", WindowFacts{Scale: 0, ScaleKnown: true, Largest: 64512, SizeKnown: true}, Fixed},
		{"asked for more in vain", WindowFacts{Scale: 0, ScaleKnown: true, Largest: 65535, SizeKnown: true,
			Requested: 1 << 20}, ScaleZero},
		{"a request that explains it", WindowFacts{Scale: 0, ScaleKnown: true, Largest: 65535, SizeKnown: true,
			Requested: 48 << 10}, Fixed},
		{"a small one", WindowFacts{Scale: 0, ScaleKnown: true, Largest: 8192, Middle: 8192, Last: 8192}, Fixed},
		{"HighlyRestricted", WindowFacts{Scale: 2, ScaleKnown: true, First: 8192, Largest: 262_140, Middle: 262_140,
			Last: 262_140}, AutotuneCeiling},
		{"Restricted, reached late", WindowFacts{Scale: 4, ScaleKnown: true, First: 64_240, Largest: 1_048_560,
			Middle: 300_000, Last: 1_048_560}, AutotuneCeiling},
		{"a whole number of segments", WindowFacts{Scale: 3, ScaleKnown: true, First: 65_535, Largest: 523_720,
			Middle: 523_720, Last: 500_000}, AutotuneCeiling},
		{"half of a scale", WindowFacts{Scale: 2, ScaleKnown: true, First: 8192, Largest: 131_072, Middle: 131_072,
			Last: 131_072}, Fixed},
		{"Cygwin on 64 bit", WindowFacts{Scale: 2, ScaleKnown: true, First: 65_535, Largest: 212_992, Middle: 212_992,
			Last: 212_992}, Fixed},
		{"a program's, at its scale", WindowFacts{Scale: 2, ScaleKnown: true, Largest: 262_140, Middle: 262_140,
			Last: 262_140, SizeKnown: true, Requested: 262_140}, Fixed},
		{"no handshake", WindowFacts{Largest: 64512, Middle: 64512, Last: 64512}, Fixed},
	} {
		if got := c.facts.Subtype(); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// A constant window is the system's where the receiver reports that autotuning is off, the program's where nothing is
// known but that autotuning did not stop at the maximum of an unscaled window. There it has grown at least.
func TestSubtype_ConstantWindow(t *testing.T) {
	for _, scale := range []int{1, 2, 6, 7, 8, 10, 14} {
		for _, buffer := range []int64{16 << 10, 64 << 10, 64_768, 100 << 10, 128 << 10, 212_992, 4 << 20, 65_535} {
			window := buffer >> scale << scale
			f := WindowFacts{Scale: scale, ScaleKnown: true, Largest: window, Middle: window, Last: window}
			for _, first := range []int64{0, window * 3 / 4, window, buffer,
				min(buffer+1000, int64(threshold.UnscaledMax.Value))} {
				f.First = min(first, int64(threshold.UnscaledMax.Value))
				want := Fixed
				if window > 64_000 && window < 64<<10 && first == window*3/4 || window>>scale > 65_000 {
					want = AutotuneCeiling
				}
				if got := f.Subtype(); got != want {
					t.Errorf("%d << %d after %d: %s, want %s", window>>scale, scale, f.First, got, want)
				}
			}
			f.SizeKnown = true
			f.Automatic = true
			if got := f.Subtype(); got != AutotuneCeiling {
				t.Errorf("%d << %d, automatic: %s", window>>scale, scale, got)
			}
			f.Constant = true
			if got := f.Subtype(); got != AutotuneOff {
				t.Errorf("%d << %d, autotuning off: %s", window>>scale, scale, got)
			}
		}
	}
}
