package text

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/fullpipe-net/fullpipe/internal/render"
)

// table aligns rows of cells in columns. The last column is never padded. On a narrower terminal text is wrapped
// within its column. Text after a label is wrapped everywhere.
type table struct {
	rows     [][]string
	right    map[int]bool // columns of numbers
	optional []int        // columns that a narrow terminal leaves out, the first one first
	wraps    bool         // text is wrapped everywhere, not on terminals alone
}

func newTable(rightColumns ...int) *table {
	t := &table{right: map[int]bool{}}
	for _, c := range rightColumns {
		t.right[c] = true
	}
	return t
}

// Columns prints rows in columns. A narrow terminal leaves out the optional columns.
func Columns(w io.Writer, rows [][]string, optional ...int) error {
	return render.Written(w, func(w io.Writer) error {
		t := &table{rows: rows, optional: optional}
		t.write(w, "")
		return nil
	})
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
	return lineWidth(t.widths())
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

// labelMeanings and valueMeanings colour a row by its label: the label itself, and its value.
var (
	labelMeanings = map[string]render.Meaning{"FAIL": render.Failed, "fail": render.Failed, "pass": render.Passed,
		"inconclusive": render.Warning}
	valueMeanings = map[string]render.Meaning{"limited by": render.Answer, "verdict": render.Answer, "do": render.Action,
		"change": render.Action}
)

// fit returns the widths of the columns in a line of that length. Columns of text are narrowed first, the first one
// last, then the optional ones are left out: their width is 0.
func (t *table) fit(columns int) []int {
	natural := t.widths()
	least := t.leastWidths()
	for dropped := 0; ; dropped++ {
		widths := slices.Clone(natural)
		for _, c := range t.optional[:dropped] {
			widths[c] = 0
		}
		over := lineWidth(widths) - columns
		for over > 0 {
			widest := widestSlack(widths, least)
			if widest < 0 {
				break
			}
			widths[widest]--
			over--
		}
		if over <= 0 || dropped == len(t.optional) {
			return widths
		}
	}
}

// widestSlack returns the column that can be narrowed most; -1 if there is none. The first column comes last, and in
// tables of two columns never.
func widestSlack(widths, least []int) int {
	widest := -1
	for i := 1; i < len(widths); i++ {
		if slack := widths[i] - least[i]; slack > 0 && (widest < 0 || slack > widths[widest]-least[widest]) {
			widest = i
		}
	}
	if widest < 0 && len(widths) > 2 && widths[0] > least[0] {
		return 0
	}
	return widest
}

// lineWidth returns the columns of a line of cells; a width of 0 is left out.
func lineWidth(widths []int) int {
	sum := -2
	for _, width := range widths {
		if width > 0 {
			sum += width + 2
		}
	}
	return sum
}

// leastWidths returns the columns of each column's longest word.
func (t *table) leastWidths() (least []int) {
	for _, row := range t.rows {
		for i, cell := range row {
			if i == len(least) {
				least = append(least, 0)
			}
			for _, word := range wrapWords(cell) {
				least[i] = max(least[i], utf8.RuneCountInString(word))
			}
		}
	}
	return least
}

// write prints the table. Cells that are too long for their column are wrapped.
func (t *table) write(w io.Writer, indentation string) {
	widths := t.widths()
	if len(widths) == 2 || t.wraps || render.IsTerminal(w) {
		widths = t.fit(render.Columns(w) - utf8.RuneCountInString(indentation))
	}
	for _, row := range t.rows {
		t.writeRow(w, indentation, row, widths)
	}
}

func (t *table) writeRow(w io.Writer, indentation string, row []string, widths []int) {
	lines := make([][]string, len(row)) // of each cell
	height := 1
	last := 0
	for i, cell := range row {
		lines[i] = []string{cell}
		if utf8.RuneCountInString(cell) > widths[i] {
			lines[i] = strings.Split(indent(cell, "", widths[i]), "\n")
		}
		if widths[i] > 0 {
			height = max(height, len(lines[i]))
			last = i
		}
	}
	for n := range height {
		line := ""
		value := ""
		for i := range row {
			cell := ""
			if n < len(lines[i]) {
				cell = lines[i][n]
			}
			space := strings.Repeat(" ", max(0, widths[i]-utf8.RuneCountInString(cell)))
			switch {
			case widths[i] == 0 && i != last:
			case i == last && t.right[i]:
				value = space + cell
			case i == last:
				value = cell
			case t.right[i]:
				line += space + cell + "  "
			default:
				line += cell + space + "  "
			}
		}
		t.writeLine(w, indentation+line, value, row[0], n == 0)
	}
}

// writeLine prints a line of a row, its label in colour on the first one.
func (t *table) writeLine(w io.Writer, before, value, label string, first bool) {
	value = strings.TrimRight(value, " ")
	if value == "" {
		before = strings.TrimRight(before, " ")
	}
	if m := labelMeanings[label]; m != render.Plain && first {
		indentation, rest, _ := strings.Cut(before, label)
		fmt.Fprint(w, indentation)
		render.Paint(w, m, label)
		before = rest
	}
	fmt.Fprint(w, before)
	render.Paint(w, valueMeanings[label], value)
	fmt.Fprintln(w)
}

// twoLines splits each heading of several words at the space nearest to its middle.
func twoLines(headings []string) (first, second []string) {
	for _, heading := range headings {
		cut := len(heading)
		for i, r := range heading {
			if r == ' ' && abs(2*i-len(heading)) < abs(2*cut-len(heading)) {
				cut = i
			}
		}
		first = append(first, heading[:cut])
		second = append(second, strings.TrimPrefix(heading[cut:], " "))
	}
	return first, second
}

func abs(n int) int { return max(n, -n) }
