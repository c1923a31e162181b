package render_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// onePlural matches one of several things in English text: "1 connections".
var onePlural = regexp.MustCompile(`(?:^|[^0-9.,×–-])1 (?:connection|segment|packet|datagram|result|run|host|stream|` +
	`time|sample|program|file|round trip|change|row|cell|second|minute|hour|day|retransmission|byte)s\b`)

func TestText_OneIsSingular(t *testing.T) {
	goldens, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(goldens) == 0 {
		t.Fatal("no goldens", err)
	}
	for _, name := range goldens {
		text := must.Get(os.ReadFile(name))(t)
		for _, found := range onePlural.FindAll(text, -1) {
			t.Errorf("%s: %q", name, found)
		}
	}
}
