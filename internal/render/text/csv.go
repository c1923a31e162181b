package text

import (
	"encoding/csv"
	"io"
	"strconv"
	"strings"
)

// CSVWriter writes comma-separated values (RFC 4180). A cell that a spreadsheet would take for a
// formula, as names from elsewhere can be, gets an apostrophe in front; numbers stay.
type CSVWriter struct{ *csv.Writer }

// NewCSVWriter writes to w.
func NewCSVWriter(w io.Writer) CSVWriter { return CSVWriter{csv.NewWriter(w)} }

// Write writes a line; Flush and Error are csv's.
func (c CSVWriter) Write(cells []string) error {
	safe := make([]string, len(cells))
	for i, cell := range cells {
		if _, err := strconv.ParseFloat(cell, 64); err != nil && strings.IndexAny(cell, "=+-@\t\r") == 0 {
			cell = "'" + cell
		}
		safe[i] = cell
	}
	return c.Writer.Write(safe)
}
