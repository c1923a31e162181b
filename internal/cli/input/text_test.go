package input

import (
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// TestTextOf: what PowerShell and editors write is read, and what has no mark is left alone.
func TestTextOf(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "{": "{", "{}\n": "{}\n", "\xef\xbb\xbf{}": "{}", "\xef\xbb": "\xef\xbb", "\x00\x01": "\x00\x01",
		"\xff\xfe{\x00}\x00": "{}", "\xfe\xff\x00{\x00}": "{}", "\xff\xfe=\xd8\x00\xde\xe4\x00": "😀ä",
		"\xff\xfe=\xd8x\x00": "\ufffdx", "\xff\xfe=\xd8": "\ufffd", "\xff\xfe": "",
	} {
		for name, in := range map[string]io.Reader{"at once": strings.NewReader(text),
			"byte by byte": iotest.OneByteReader(strings.NewReader(text))} {
			if got, err := io.ReadAll(Text(in)); err != nil || string(got) != want {
				t.Errorf("%q, %s: %q, %v", text, name, got, err)
			}
		}
	}
	if _, err := io.ReadAll(Text(strings.NewReader("\xff\xfe{"))); err == nil {
		t.Error("half a character at the end is none")
	}
}
