//go:build linux

package pages

import (
	"fmt"
	"os"
	"testing"
)

// TestSweepPage opens a page in a real browser, on a desk and on a phone, light and dark: it fits, everything is
// drawn, cells are distinguishable, text is readable on its background.
func TestSweepPage(t *testing.T) {
	t.Parallel()
	html, err := os.ReadFile("../../internal/render/html/testdata/sweep.html")
	if err != nil {
		t.Fatal(err)
	}
	ctx := scripted(t)
	eachView(t, ctx, servedPage(t, html), "svg", func(name string) {
		const contrast = `(() => {
			const parts = c => c.match(/[\d.]+/g).slice(0, 3).map(v => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4 });
			const luminance = c => { const [r, g, b] = parts(c); return 0.2126 * r + 0.7152 * g + 0.0722 * b };
			const ratio = (a, b) => (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
			let least = 99;
			for (const cell of document.querySelectorAll('.label')) {
				const text = getComputedStyle(cell.querySelector('.v')), x = text.fill, y = text.stroke;
				least = Math.min(least, ratio(luminance(x), luminance(y)));
			}
			return least.toFixed(2);
		})()`
		var least float64
		if _, err := fmt.Sscan(evaluate(t, ctx, contrast), &least); err != nil || least < 4 || least > 21 {
			t.Errorf("%s: the least contrast of a cell's text is %v, %v", name, least, err)
		}
		if got := evaluate(t, ctx,
			`String(parseFloat(getComputedStyle(document.querySelector('.label .v')).fontSize) * document.querySelector('svg').getBoundingClientRect().width / document.querySelector('svg').viewBox.baseVal.width >= 9)`); got != "true" {
			t.Errorf("%s: the numbers are too small to read", name)
		}
	})
	prints(t, ctx)
}
