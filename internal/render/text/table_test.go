package text

import (
	"strings"
	"testing"
)

func TestTable_WrapsTextAfterALabel(t *testing.T) {
	table := newTable()
	table.row("a", "short")
	table.row("label", strings.Repeat("word ", 30))
	var b strings.Builder
	table.write(&b, "  ")
	want := "  a      short\n" +
		"  label  " + strings.Repeat("word ", 17) + "word\n" +
		"         " + strings.Repeat("word ", 11) + "word\n"
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

func TestTable_WrapsWhereAsked(t *testing.T) {
	table := newTable()
	table.wraps = true
	table.row("label", "value", strings.Repeat("word ", 30))
	var b strings.Builder
	table.write(&b, "")
	for line := range strings.Lines(b.String()) {
		if len(line) > 101 {
			t.Errorf("%d columns: %s", len(line)-1, line)
		}
	}
}
