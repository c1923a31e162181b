//go:build linux

package live

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
	"github.com/fullpipe-net/fullpipe/internal/lab"
	"github.com/fullpipe-net/fullpipe/internal/lab/stalltest"
)

// TestDownloads_Verdicts checks that a download's own receive window is named, and that a server's send buffer
// and a full path stay open, because a receiver cannot distinguish them.
func TestDownloads_Verdicts(t *testing.T) {
	t.Parallel()
	l, env := harness.StartWebSite(t, "rate=20mbit,rtt=40ms,queue=1bdp")
	for _, c := range []struct {
		name, url string
		args      []string
		window    bool    // limits
		atMost    float64 // bit/s
	}{
		{"the path", "http://HOST/object", nil, false, 20e6},
		{"a redirect", "http://HOST/moved", nil, false, 20e6},
		{"TLS", "https://HOST:444/object", nil, false, 20e6},
		{"HTTP/2", "https://HOST/object", nil, false, 20e6},
		{"a window", "http://HOST/object", []string{"--receive-buffer", "16KiB"}, true, 5e6},
		{"a window, HTTP/2", "https://HOST/object", []string{"--receive-buffer", "32KiB"}, true, 10e6},
		{"the server's send buffer", "http://HOST:81/object", nil, false, 15e6},
	} {
		t.Run(c.name, func(t *testing.T) {
			url := strings.Replace(c.url, "HOST", lab.FarAddr.String(), 1)
			stalltest.Undisturbed(t, func() error {
				var doc harness.MeasureDoc
				harness.RunJSON(t, l.Near, &doc, env, append([]string{"measure", url, "--json", "-t", "1s"}, c.args...)...)
				if len(doc.Directions) != 1 {
					return fmt.Errorf("%+v", doc)
				}
				d := doc.Directions[0]
				if share := d.Shares["receiver-window"]; d.Bytes == 0 || d.GoodputBps > c.atMost || c.window != (share > 0.3) {
					return fmt.Errorf("%+v", d)
				}
				// Limiters that only the sender can distinguish stay open, and nothing else.
				if !c.window && (d.Limiter != "unknown" || slices.Contains(d.Candidates, "receiver-window") ||
					!slices.Contains(d.Candidates, "send-buffer") || !slices.Contains(d.Candidates, "bottleneck")) {
					return fmt.Errorf("%s, candidates %v", d.Limiter, d.Candidates)
				}
				over2 := slices.ContainsFunc(d.Warnings, func(w string) bool { return strings.Contains(w, "HTTP/2") })
				if want := strings.Contains(c.name, "HTTP/2"); over2 != want {
					return fmt.Errorf("over HTTP/2: %v; warnings %q", over2, d.Warnings)
				}
				return nil
			})
		})
	}
}
