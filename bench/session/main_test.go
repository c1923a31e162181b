package main

import (
	"encoding/xml"
	"io"
	"slices"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	got := parse("\x1b[1mpeer\x1b[0m  host\n\n  \x1b[31;1mFAIL\x1b[0m now  ▊\x1b[K\n")
	want := []chunk{{0, 0, " bold", "peer"}, {0, 6, "", "host"}, {2, 2, " c1 bold", "FAIL"}, {2, 7, "", "now"},
		{2, 12, "", "▊"}}
	if !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
}

func TestClean(t *testing.T) {
	if got := clean("Linux 6.1.0-18-amd64, cubic\r\n\n \n"); got != "Linux 6.1.0, cubic\n" {
		t.Errorf("%q", got)
	}
}

func TestRun(t *testing.T) {
	var picture strings.Builder
	err := run(strings.NewReader("a < b & c\n\x1b[32mok\n"), &picture, "fullpipe x", `the "title"`)
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	decoder := xml.NewDecoder(strings.NewReader(picture.String()))
	for {
		token, err := decoder.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if text, ok := token.(xml.CharData); ok && strings.TrimSpace(string(text)) != "" {
			texts = append(texts, string(text))
		}
	}
	if want := []string{`the "title"`, style, "$ fullpipe x", "a < b & c", "ok"}; !slices.Equal(texts, want) {
		t.Errorf("%q", texts)
	}
	if run(strings.NewReader(" \n"), io.Discard, "", "") == nil {
		t.Error("an empty session was drawn")
	}
	if run(strings.NewReader(strings.Repeat("word  ", 10_000)), io.Discard, "", "") == nil {
		t.Error("a picture of more than 100 kB was drawn")
	}
}
