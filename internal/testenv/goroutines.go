package testenv

import (
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// RunWithoutLeaks runs a package's tests and exits. It fails if a goroutine that they started has not ended 2 s later.
func RunWithoutLeaks(m *testing.M) {
	left := goroutines()
	status := m.Run()
	if text := left(); status == 0 && text != "" {
		println("goroutines are left:\n" + text)
		status = 1
	}
	os.Exit(status)
}

// NoGoroutineLeft fails the test if a goroutine that started since has not ended 2 s after its other cleanups.
func NoGoroutineLeft(t *testing.T) {
	left := goroutines()
	t.Cleanup(func() {
		if text := left(); text != "" {
			t.Errorf("goroutines are left:\n%s", text)
		}
	})
}

// goroutines returns a function that waits at most 2 s for the end of all goroutines started since, and returns the
// stacks of the others.
func goroutines() (left func() string) {
	before := stacks()
	return func() (text string) {
		for range 100 {
			text = ""
			for id, stack := range stacks() {
				if before[id] == "" {
					text += id + stack + "\n\n"
				}
			}
			if text == "" {
				return ""
			}
			time.Sleep(20 * time.Millisecond)
		}
		return text
	}
}

// stacks returns the stack of each goroutine by its first words, "goroutine 7". Those of package testing and of
// signals, which never end, are left out.
func stacks() map[string]string {
	buffer := make([]byte, 8<<20)
	text := string(buffer[:runtime.Stack(buffer, true)])
	all := map[string]string{}
	for stack := range strings.SplitSeq(text, "\n\n") {
		id, rest, _ := strings.Cut(stack, " [")
		if !strings.Contains(rest, "testenv.stacks(") && !strings.Contains(rest, "testing.(*T).Run(") &&
			!strings.Contains(rest, "testing.tRunner.func") && !strings.Contains(rest, "os/signal.loop") {
			all[id] = " [" + rest
		}
	}
	return all
}
