package text

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/fullpipe-net/fullpipe/internal/render"
)

// table aligns rows of cells in columns; the last column is never padded, and
// text after a label is wrapped.
type table struct {
	rows  [][]string
	right map[int]bool // columns of numbers
}

func newTable(rightColumns ...int) *table {
	t := &table{right: map[int]bool{}}
	for _, c := range rightColumns {
		t.right[c] = true
	}
	return t
}

func (t *table) row(cells ...string) { t.rows = append(t.rows, cells) }

// widths returns the columns of each column's longest cell.
func (t *table) widths() (widths []int) {
	for _, row := range t.rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	return widths
}

// width returns the columns of the longest line.
func (t *table) width() int {
	sum := -2
	for _, width := range t.widths() {
		sum += width + 2
	}
	return sum
}

// cutLast cuts the cells of the last column so that no line is longer, but to no less than 16 columns.
func (t *table) cutLast(columns int) {
	widths := t.widths()
	if len(widths) == 0 {
		return
	}
	last := len(widths) - 1
	room := max(columns-(t.width()-widths[last]), 16)
	for _, row := range t.rows {
		if cell := []rune(row[last]); len(cell) > room {
			row[last] = string(cell[:room-1]) + "…"
		}
	}
}

func (t *table) write(w io.Writer, indentation string) {
	widths := t.widths()
	columns := render.Columns(w)
	for _, row := range t.rows {
		start := utf8.RuneCountInString(indentation) + widths[0] + 2
		if len(row) == 2 && !t.right[1] && start+utf8.RuneCountInString(row[1]) > columns {
			blank := strings.Repeat(" ", start)
			wrapped := strings.TrimPrefix(indent(row[1], blank, columns), blank)
			fmt.Fprintf(w, "%s%-*s  %s\n", indentation, widths[0], row[0], wrapped)
			continue
		}
		var line strings.Builder
		for i, cell := range row {
			space := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			switch {
			case t.right[i]:
				line.WriteString(space + cell)
			case i < len(row)-1:
				line.WriteString(cell + space)
			default:
				line.WriteString(cell)
			}
			if i < len(row)-1 {
				line.WriteString("  ")
			}
		}
		fmt.Fprintln(w, indentation+strings.TrimRight(line.String(), " "))
	}
}
