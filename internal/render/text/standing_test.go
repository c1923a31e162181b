package text

import (
	"testing"

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
