package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestManifestsNameTheArchivesAndTheirSums writes the manifests for archives that are made
// up, and looks for each of them with its own sum.
func TestManifestsNameTheArchivesAndTheirSums(t *testing.T) {
	r := &release{out: t.TempDir(), archives: map[target]string{}, version: version{tag: "v1.2.3",
		at: time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)}}
	for _, at := range targets {
		ext := ".tar.gz"
		if at.os == "windows" {
			ext = ".zip"
		}
		r.archives[at] = "fullpipe-1.2.3-" + at.os + "-" + at.arch + ext
		if err := os.WriteFile(filepath.Join(r.out, r.archives[at]), []byte(at.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.manifests(); err != nil {
		t.Fatal(err)
	}
	for name, named := range map[string][]target{
		"homebrew/fullpipe.rb":                    {{"darwin", "amd64"}, {"darwin", "arm64"}, {"linux", "amd64"}, {"linux", "arm64"}},
		"scoop/fullpipe.json":                     {{"windows", "amd64"}, {"windows", "arm64"}},
		"winget/Fullpipe.Fullpipe.installer.yaml": {{"windows", "amd64"}, {"windows", "arm64"}},
	} {
		text, err := os.ReadFile(filepath.Join(r.out, name))
		if err != nil {
			t.Error(err)
			continue
		}
		for _, at := range named {
			sum, _ := sumOf(filepath.Join(r.out, r.archives[at]))
			// The sum follows its archive with nothing but the next key's name between them.
			pair := regexp.MustCompile(`(?i)/v1\.2\.3/` + regexp.QuoteMeta(r.archives[at]) + `"?,?\s+"?\w+"?:? "?` + sum)
			if !pair.Match(reverse(string(text), name)) {
				t.Errorf("%s does not name %s with its sum:\n%s", name, r.archives[at], text)
			}
		}
		if strings.HasSuffix(name, ".json") && !json.Valid(text) {
			t.Errorf("%s is no JSON", name)
		}
	}
	for _, name := range []string{"winget/Fullpipe.Fullpipe.yaml", "winget/Fullpipe.Fullpipe.locale.en-US.yaml"} {
		if text, err := os.ReadFile(filepath.Join(r.out, name)); err != nil || !strings.Contains(string(text),
			"PackageVersion: 1.2.3\n") {
			t.Errorf("%s: %v\n%s", name, err, text)
		}
	}
}

// reverse puts the keys of Scoop's JSON, which come by the alphabet, into the others' order.
func reverse(text, name string) []byte {
	if !strings.HasSuffix(name, ".json") {
		return []byte(text)
	}
	return regexp.MustCompile(`("hash": "\w+"),\s+("url": "[^"]+")`).ReplaceAll([]byte(text), []byte("$2, $1"))
}
