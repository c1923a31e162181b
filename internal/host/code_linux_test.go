package host

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// TestReleaseCode checks that the pages of the program leave this process, and that it still runs.
func TestReleaseCode(t *testing.T) {
	resident := func() (kib int) {
		text := must.Get(os.ReadFile("/proc/self/status"))(t)
		_, rest, _ := strings.Cut(string(text), "RssFile:")
		must.Get(fmt.Sscan(rest, &kib))(t)
		return kib
	}
	before := resident()
	ReleaseCode()
	if after := resident(); after > before*3/4 {
		t.Errorf("%d KiB of %d KiB remain", after, before)
	}
}
