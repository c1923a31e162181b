package input

import (
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"
)

// TestText reads files of PowerShell and editors. Text of bytes without a mark stays unchanged.
func TestText(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "{": "{", "{}\n": "{}\n", "\xef\xbb\xbf{}": "{}", "\xef\xbb": "\xef\xbb", "\x00\x01": "\x00\x01",
		"\xff\xfe{\x00}\x00": "{}", "\xfe\xff\x00{\x00}": "{}", "\xff\xfe=\xd8\x00\xde\xe4\x00": "😀ä",
		"\xff\xfe=\xd8x\x00": "\ufffdx", "\xff\xfe=\xd8": "\ufffd", "\xff\xfe": "",
		"\r\x00\n\x00\xe4\x00": "\r\nä", "\x00[\x20\xac": "[€", "\x00\x00": "\x00\x00",
	} {
		for name, in := range map[string]io.Reader{"at once": strings.NewReader(text),
			"byte by byte": iotest.OneByteReader(strings.NewReader(text))} {
			if got, err := io.ReadAll(Text(in)); err != nil || string(got) != want {
				t.Errorf("%q, %s: %q, %v", text, name, got, err)
			}
		}
	}
	whole := io.NopCloser(strings.NewReader("\xff\xfe{\x00}\x00"))
	if got, err := ReadAll(whole, "file", 2); err != nil || string(got) != "{}" {
		t.Errorf("a whole file: %q, %v", got, err)
	}
	if _, err := io.ReadAll(Text(strings.NewReader("\xff\xfe{"))); err == nil {
		t.Error("half a character at the end is none")
	}
}

// FuzzText checks that any UTF-16 becomes valid UTF-8, of at most three bytes for each unit.
func FuzzText(f *testing.F) {
	f.Add([]byte("{\x00}\x00=\xd8x\x00"))
	f.Fuzz(func(t *testing.T, units []byte) {
		for _, mark := range []string{"\xff\xfe", "\xfe\xff"} {
			got, err := io.ReadAll(Text(strings.NewReader(mark + string(units))))
			if !utf8.Valid(got) || len(got) > 3*len(units)/2 || (err != nil) != (len(units)%2 == 1) {
				t.Errorf("%q: %q, %v", units, got, err)
			}
		}
	})
}
