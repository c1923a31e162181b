package tune

import (
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/search"
	"github.com/fullpipe-net/fullpipe/internal/tune/simpeer"
)

// A window that was clipped has one size in the rows and in the result: the one that was given.
func TestTune_NamesTheGrantedWindow(t *testing.T) {
	path := narrow()
	path.Ceiling = 200e3
	d := run(t, simpeer.New(path, 1), nil)
	if d.Chosen == nil || d.Verdict != search.Change || len(d.Remedies) == 0 {
		t.Fatalf("%s: %+v", d.Verdict, d.Remedies)
	}
	named := false
	for _, r := range d.Remedies {
		if strings.Contains(r.Name, "window of") {
			named = named || r.Name == d.Chosen.String()
			if !strings.Contains(r.Name, "window of 200,000 bytes") {
				t.Errorf("%s, compared with %s; chosen %s", r.Name, r.Beside, d.Chosen)
			}
		}
	}
	if !named {
		t.Errorf("no row is named %s", d.Chosen)
	}
}
