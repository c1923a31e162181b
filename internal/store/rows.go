package store

import (
	"fmt"
	"slices"
	"strings"
)

// maxRows limits the rows of a statement. A statement for each row would wait for the server as often.
const maxRows = 200

// eachRows calls do with at most maxRows rows at a time.
func eachRows[T any](rows []T, do func(some []T) error) error {
	for some := range slices.Chunk(rows, maxRows) {
		if err := do(some); err != nil {
			return err
		}
	}
	return nil
}

// values are the rows of a statement with their parameters. args has those before the rows.
type values struct {
	text  strings.Builder
	args  []any
	types []string // of the columns; none: those of the table that the rows go to
}

// add adds a row.
func (v *values) add(columns ...any) {
	if v.text.Len() > 0 {
		v.text.WriteString(", ")
	}
	for i, value := range columns {
		v.args = append(v.args, value)
		v.text.WriteByte("(,"[min(i, 1)])
		if v.types == nil {
			fmt.Fprintf(&v.text, "$%d", len(v.args))
		} else {
			fmt.Fprintf(&v.text, "CAST($%d AS %s)", len(v.args), v.types[i])
		}
	}
	v.text.WriteByte(')')
}
