package text

import (
	"encoding/csv"
	"slices"
	"strings"
	"testing"
)

func TestCellsHoldNoFormulas(t *testing.T) {
	var out strings.Builder
	table := NewCSVWriter(&out)
	table.Write([]string{"=1+1", "+1", "-2.5e9", "-x", "@sum", "\tx", "a=1", "", "x\n=1"})
	table.Flush()
	rows, err := csv.NewReader(strings.NewReader(out.String())).ReadAll()
	want := []string{"'=1+1", "+1", "-2.5e9", "'-x", "'@sum", "'\tx", "a=1", "", "x\n=1"}
	if err != nil || len(rows) != 1 || !slices.Equal(rows[0], want) {
		t.Errorf("%q, %v", rows, err)
	}
}
