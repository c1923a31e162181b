package hostile

import (
	"strings"
	"testing"
)

// TestActiveContent_FindsEachHostileText writes each text where it is active and where it is escaped.
func TestActiveContent_FindsEachHostileText(t *testing.T) {
	for page, want := range map[string]int{
		`<p>"><script>hostile()</script></p>`:                             1,
		`<p>'><img src=x onerror=hostile()></p>`:                          2,
		`<p title="" onmouseover="hostile()">x</p>`:                       1,
		`<svg onload=hostile()></svg>`:                                    1,
		`<a href="javascript:hostile()">x</a>`:                            1,
		"<a href=\" java\nscript:hostile()\">x</a>":                       1,
		`<a href="//hostile.example">x</a>`:                               1,
		`<a href="\\hostile.example">x</a>`:                               1,
		`<a href="https://hostile.example">x</a>`:                         1,
		`<a href="about:invalid#x">x</a>`:                                 1,
		`<base href="/x"><iframe srcdoc="x"></iframe>`:                    3,
		`<meta http-equiv="Refresh" content="0; url=//x">`:                1,
		`<style>p { } </style><p style="color: url(x)">x</p>`:             1,
		`<script type="application/json">{"a": 1}</script>`:               0,
		`<script type="application/json">{"a": </script>`:                 1,
		`<script type="module" src="/static/a.js"></script>`:              1,
		`<a href="/runs/a:b?x=javascript:1#c:d">x</a><a href="#a:b"></a>`: 0,
		`<meta http-equiv="refresh" content="0; url=/s/1/">`:              0,
		`<p title="&#34; onclick=&#34;x">&lt;script&gt;</p>`:              0,
	} {
		if got := ActiveContent(page); len(got) != want {
			t.Errorf("%s: found %q, want %d", page, got, want)
		}
	}
	for _, text := range Texts[:6] {
		if len(ActiveContent("<p>"+text+"</p>")) == 0 {
			t.Errorf("%s is not found", strings.TrimSpace(text))
		}
	}
}
