package e2e

import (
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/lab/still"
)

// undisturbed judges a measurement that the machine did not hold up.
func undisturbed(t *testing.T, measure func() (wrong error)) {
	t.Helper()
	still.Undisturbed(t, measure)
}
