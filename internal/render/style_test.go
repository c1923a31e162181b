package render_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// TestSizesAreInOneStyle checks that sizes for people are in KiB and MiB; kB and MB only follow
// them, after an equals sign.
func TestSizesAreInOneStyle(t *testing.T) {
	goldens, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(goldens) == 0 {
		t.Fatal(err, "no goldens")
	}
	decimal, binary := regexp.MustCompile(`\d (?:kB|MB|GB)\b`), regexp.MustCompile(` = [\d.]+ [KMG]iB\b`)
	for _, name := range goldens {
		text := must.Get(os.ReadFile(name))(t)
		for line := range strings.Lines(string(text)) {
			if decimal.MatchString(line) && !binary.MatchString(line) && !strings.Contains(line, `"`) {
				t.Errorf("%s: %s", name, line)
			}
		}
	}
}
