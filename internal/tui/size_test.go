package tui

import (
	"testing"

	tea "charm.land/bubbletea/v2"
)

// TestSizesThatDoNotFit rejects sizes whose picture would take gigabytes, as pasted text may claim.
func TestSizesThatDoNotFit(t *testing.T) {
	for size, want := range map[tea.WindowSizeMsg]bool{{Width: 80, Height: 24}: true, {}: true,
		{Width: 65535, Height: 65535}: false, {Width: 80, Height: 1 << 30}: false} {
		if got := fitted(nil, size) != nil; got != want || Fits(size.Width, size.Height) != want {
			t.Errorf("%+v: %v, want %v", size, got, want)
		}
	}
}
