// Package foreign makes text of far ends, files and agents harmless: a terminal shows it and obeys nothing in it.
package foreign

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Line returns text as one line, with all control characters escaped.
func Line(s string) string {
	if !strings.ContainsFunc(s, IsObeyed) && utf8.ValidString(s) {
		return s
	}
	return string(Escape(nil, []byte(s), IsObeyed))
}

// IsObeyed reports whether a terminal or a browser may act on a character instead of showing it:
// C0 and C1 controls, format characters (Unicode's Cf, as those that turn the direction
// or have no width), and line and paragraph separators.
func IsObeyed(r rune) bool {
	if r >= ' ' && r < 0x7f {
		return false
	}
	return unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp)
}

// Escape appends text. It escapes selected characters as JSON does, and writes U+FFFD for bytes that are no UTF-8: an
// 8-bit terminal would take some of them for controls.
func Escape(to, text []byte, selected func(rune) bool) []byte {
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		switch {
		case !selected(r):
			to = utf8.AppendRune(to, r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			to = fmt.Appendf(to, `\u%04x\u%04x`, high, low)
		default:
			to = fmt.Appendf(to, `\u%04x`, r)
		}
		text = text[size:]
	}
	return to
}
