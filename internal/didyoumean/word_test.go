package didyoumean

import "testing"

// TestIsWord checks that no text with a meaning to a shell is a word.
func TestIsWord(t *testing.T) {
	for name, want := range map[string]bool{"ssh://far": true, "fullpipe://[2001:db8::1%eth0]:5201": true,
		"lab:rate=20mbit,rtt=5ms": true, "user@host.example": true, "https://h/x": true,
		"{7A-3C}": true, "eth0.5": true, `{"&calc&"}`: false, `\\host`: false, "$(touch x)": false, "`x`": false, "a b": false, "a;b": false, "--help": false, "a\nb": false, "x\x1b[2J": false,
		"'": false, "~root": false, "*": false, "": false, "a|b": false, "a&b": false, ">x": false, "!x": false} {
		if IsWord(name) != want {
			t.Errorf("%q: %v", name, !want)
		}
	}
}
