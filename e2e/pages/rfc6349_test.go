//go:build linux

package pages

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	pages "github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render/html"
	reports "github.com/fullpipe-net/fullpipe/internal/report"
	"github.com/fullpipe-net/fullpipe/internal/rfc6349"
	"github.com/fullpipe-net/fullpipe/internal/search/simpath"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/tune/simpeer"
)

// TestRFC6349Page opens a report in a real browser, on a desk and on a phone, light, dark and printed: it fits, is
// complete without external resources, and its text can be read.
func TestRFC6349Page(t *testing.T) {
	t.Parallel()
	line := &simpath.Path{RateBps: 100e6, RTT: 40 * time.Millisecond, MSS: 1448, Queue: 500e3, Harm: 1, AutoWindow: 1e6,
		Noise: simpath.Noise{Dev: 0.002}}
	cfg := rfc6349.Config{Peer: simpeer.New(line, 1), Directions: []transfer.Direction{transfer.Up, transfer.Down},
		Tolerance: 0.05,
		Committed: map[transfer.Direction]float64{transfer.Up: 100e6, transfer.Down: 150e6},
		Frames:    rfc6349.Frames{Sizes: rfc6349.FrameSizes()}}
	r, err := rfc6349.Run(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	var written bytes.Buffer
	if err := html.Write(&written, reports.RFC6349(pages.Header{StartedAt: time.Now()}, "far.example.net",
		"A line whose name is rather long for a phone", cfg, r)); err != nil {
		t.Fatal(err)
	}
	for _, outside := range []string{"http://", "https://", "src=", "@import", "<script"} {
		if strings.Contains(written.String(), outside) {
			t.Errorf("the page contains %s", outside)
		}
	}
	ctx := scripted(t)
	eachView(t, ctx, servedPage(t, written.Bytes()), "svg.figure", func(name string) {
		const contrast = `(() => {
			const linear = v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
			const luminance = c => {
				const [r, g, b] = c.match(/[\d.]+/g).slice(0, 3).map(v => linear(v / 255));
				return 0.2126 * r + 0.7152 * g + 0.0722 * b };
			const paper = luminance(getComputedStyle(document.body).backgroundColor);
			let least = 99;
			for (const e of document.querySelectorAll('td, th, p, figcaption, svg text')) {
				const ink = luminance(e.tagName === 'text' ? getComputedStyle(e).fill : getComputedStyle(e).color);
				least = Math.min(least, (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05));
			}
			return least.toFixed(2);
		})()`
		var least float64
		if _, err := fmt.Sscan(evaluate(t, ctx, contrast), &least); err != nil || least < 4 || least > 21 {
			t.Errorf("%s: the least contrast of text is %v, %v", name, least, err)
		}
	})
	prints(t, ctx)
}
