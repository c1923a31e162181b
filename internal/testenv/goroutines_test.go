package testenv

import (
	"strings"
	"testing"
)

func TestGoroutines_FindsOneThatIsLeft(t *testing.T) {
	left := goroutines()
	if text := left(); text != "" {
		t.Errorf("before: %s", text)
	}
	end := make(chan struct{})
	go func() { <-end }()
	if text := left(); !strings.Contains(text, "FindsOneThatIsLeft.func") {
		t.Errorf("found %q", text)
	}
	close(end)
	if text := left(); text != "" {
		t.Errorf("after: %s", text)
	}
}
