package text

import (
	"strconv"
)

func Trimmed(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }
