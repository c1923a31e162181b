package host

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestReleaseCode checks that the pages of the program leave this process, and that it still runs.
func TestReleaseCode(t *testing.T) {
	resident := func() (kib int) {
		text, err := os.ReadFile("/proc/self/status")
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(text), "RssFile:")
		if _, err := fmt.Sscan(rest, &kib); err != nil {
			t.Fatal(err)
		}
		return kib
	}
	before := resident()
	ReleaseCode()
	if after := resident(); after > before*3/4 {
		t.Errorf("%d KiB of %d KiB remain", after, before)
	}
}
