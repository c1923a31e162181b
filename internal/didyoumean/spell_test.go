package didyoumean

import (
	"strings"
	"testing"
)

func TestNearest(t *testing.T) {
	names := []string{"rate", "rtt", "loss", "queue"}
	for name, want := range map[string]string{"rat": "rate", "qeue": "queue", "rtt": "rtt", "jitter": "",
		strings.Repeat("x", 1<<20): ""} {
		if got := Nearest(name, names); got != want {
			t.Errorf("%.20q is taken for %q, want %q", name, got, want)
		}
	}
	for pair, want := range map[[2]string]int{{"", "abc"}: 3, {"abc", ""}: 3, {"kitten", "sitting"}: 3} {
		if got := Distance(pair[0], pair[1]); got != want {
			t.Errorf("%q and %q are %d edits apart, want %d", pair[0], pair[1], got, want)
		}
	}
}

// TestNearest_ShortNames checks that two of three letters are no misspelling.
func TestNearest_ShortNames(t *testing.T) {
	for name, want := range map[string]string{"foo": "", "bar": "", "Lsp": "Lso"} {
		if got := Nearest(name, []string{"Lso", "Rsc"}); got != want {
			t.Errorf("%q is taken for %q", name, got)
		}
	}
}
