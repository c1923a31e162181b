package text

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/verdict/live"
	"github.com/fullpipe-net/fullpipe/internal/verdict/timeline"
)

// TestRules_PageIsCurrent checks that docs/verdict-rules.md shows the rules that the judge evaluates.
func TestRules_PageIsCurrent(t *testing.T) {
	var want strings.Builder
	Rules(&want, slices.Concat(live.Rules(), timeline.Rules()))
	got, err := os.ReadFile("../../../docs/verdict-rules.md")
	if err != nil || string(got) != want.String() {
		t.Errorf("docs/verdict-rules.md is not current: fullpipe explain --rules > docs/verdict-rules.md writes it (%v)", err)
	}
}
