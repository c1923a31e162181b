package tune

import (
	"fmt"
)

// notes are warnings, in the order in which they arose.
type notes []string

func (n *notes) add(format string, args ...any) { *n = append(*n, fmt.Sprintf(format, args...)) }
