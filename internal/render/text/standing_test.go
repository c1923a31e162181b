package text

import (
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

func TestEveryLimiterHasALetterOfItsOwn(t *testing.T) {
	whose := map[string]verdict.Name{}
	for _, name := range verdict.Names() {
		letter := Letter(string(name))
		if other, taken := whose[letter]; taken || letter == "·" {
			t.Errorf("%s: %q, which %q has too", name, letter, other)
		}
		whose[letter] = name
	}
}

func TestAge(t *testing.T) {
	for d, want := range map[time.Duration]string{-time.Second: "", 59 * time.Second: "now", 90 * time.Second: "1 min ago",
		3*time.Hour + time.Minute: "3 h ago", 47 * time.Hour: "47 h ago", 72 * time.Hour: "3 days ago"} {
		if got := Age(d); got != want {
			t.Errorf("%s: %q, not %q", d, got, want)
		}
	}
}
