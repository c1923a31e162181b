package probe

import (
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

func TestVersions_Common(t *testing.T) {
	for _, c := range []struct {
		a, b    Versions
		version int
		ok      bool
	}{
		{Versions{1, 1}, Versions{1, 1}, 1, true}, {Versions{1, 3}, Versions{2, 9}, 3, true}, {Versions{2, 9}, Versions{1, 3},
			3, true},
		{Versions{1, 1}, Versions{2, 3}, 0, false}, {Versions{4, 5}, Versions{1, 3}, 0, false},
	} {
		if v, ok := c.a.common(c.b); ok != c.ok || ok && v != c.version {
			t.Errorf("%v with %v: %d, %v", c.a, c.b, v, ok)
		}
	}
	old := Hello{Version: 1}
	if v := old.versions(); v != (Versions{1, 1}) {
		t.Errorf("a hello from before: %v", v)
	}
	if try := (&versionError{Versions{9, 12}, "9.0"}).try(); !strings.Contains(try, "here") {
		t.Error(try)
	}
	if try := (&versionError{Versions{0, 0}, "0.1"}).try(); !strings.Contains(try, "there") {
		t.Error(try)
	}
}

// An ID is stable and differs between keys.
func TestKeyID(t *testing.T) {
	k := must.Get(ParseKey(strings.Repeat("01", 32)))(t)
	if id := k.ID().String(); id != "c3b85d23451fc400" {
		t.Errorf("ID %s", id)
	}
	if one, other := NewKey(), NewKey(); one.ID() == other.ID() {
		t.Error("two keys of one ID")
	}
}
