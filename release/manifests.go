package main

import (
	"encoding/json"
	"io"
	"path/filepath"
	"strings"
	"text/template"
	"time"
)

// published is the input of the manifest templates.
type published struct {
	Version, Tag, Summary, Homepage, Date string
	base                                  string
	archives, sums                        map[string]string // by OS/ARCH
}

// URL returns the URL of a system's archive.
func (p published) URL(system string) string { return p.base + p.archives[system] }

// Sum returns the archive's SHA-256.
func (p published) Sum(system string) string { return p.sums[system] }

// Sum256 returns the SHA-256 in the form of winget: upper case.
func (p published) Sum256(system string) string { return strings.ToUpper(p.sums[system]) }

// Has reports whether a system's archive was built.
func (p published) Has(system string) bool { return p.archives[system] != "" }

// manifests writes the manifests of Homebrew, Scoop and winget, each only if all archives that it names were built.
func (r *release) manifests() error {
	p := published{Version: r.number(), Tag: r.tag, Summary: summary, Homepage: homepage, Date: r.at.Format(time.DateOnly),
		base: homepage + "/releases/download/" + r.tag + "/", archives: map[string]string{}, sums: map[string]string{}}
	for t, name := range r.archives {
		sum, err := sumOf(filepath.Join(r.out, name))
		if err != nil {
			return err
		}
		p.archives[t.String()], p.sums[t.String()] = name, sum
	}
	if p.Has("darwin/amd64") && p.Has("darwin/arm64") && p.Has("linux/amd64") && p.Has("linux/arm64") {
		if err := r.fill("homebrew/fullpipe.rb", homebrew, p); err != nil {
			return err
		}
	}
	if !p.Has("windows/amd64") || !p.Has("windows/arm64") {
		return nil
	}
	if err := r.scoop(p); err != nil {
		return err
	}
	for name, text := range map[string]string{"": wingetVersion, ".installer": wingetInstaller,
		".locale.en-US": wingetLocale} {
		if err := r.fill("winget/Fullpipe.Fullpipe"+name+".yaml", text, p); err != nil {
			return err
		}
	}
	return nil
}

func (r *release) fill(name, text string, p published) error {
	t, err := template.New(name).Option("missingkey=error").Parse(text)
	if err != nil {
		return err
	}
	return toFile(filepath.Join(r.out, name), func(w io.Writer) error { return t.Execute(w, p) })
}

const homebrew = `class Fullpipe < Formula
  desc "{{.Summary}}"
  homepage "{{.Homepage}}"
  version "{{.Version}}"
  license "Apache-2.0"

  on_macos do
    on_arm do
      url "{{.URL "darwin/arm64"}}"
      sha256 "{{.Sum "darwin/arm64"}}"
    end
    on_intel do
      url "{{.URL "darwin/amd64"}}"
      sha256 "{{.Sum "darwin/amd64"}}"
    end
  end
  on_linux do
    on_arm do
      url "{{.URL "linux/arm64"}}"
      sha256 "{{.Sum "linux/arm64"}}"
    end
    on_intel do
      url "{{.URL "linux/amd64"}}"
      sha256 "{{.Sum "linux/amd64"}}"
    end
  end

  def install
    bin.install "fullpipe"
    man1.install Dir["man1/*.1"]
    bash_completion.install "bash/fullpipe"
    zsh_completion.install "zsh/_fullpipe"
    fish_completion.install "fish/fullpipe.fish"
  end

  test do
    assert_match "v{{.Version}}", shell_output("#{bin}/fullpipe version")
  end
end
`

func (r *release) scoop(p published) error {
	one := func(system string) map[string]string {
		return map[string]string{"url": p.URL(system), "hash": p.Sum(system),
			"extract_dir": strings.TrimSuffix(p.archives[system], ".zip")}
	}
	return toFile(filepath.Join(r.out, "scoop", "fullpipe.json"), func(w io.Writer) error {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(map[string]any{"version": p.Version, "description": p.Summary, "homepage": p.Homepage,
			"license": "Apache-2.0", "bin": "fullpipe.exe",
			"architecture": map[string]any{"64bit": one("windows/amd64"), "arm64": one("windows/arm64")}})
	})
}

const (
	wingetVersion = `PackageIdentifier: Fullpipe.Fullpipe
PackageVersion: {{.Version}}
DefaultLocale: en-US
ManifestType: version
ManifestVersion: 1.6.0
`
	wingetLocale = `PackageIdentifier: Fullpipe.Fullpipe
PackageVersion: {{.Version}}
PackageLocale: en-US
Publisher: fullpipe
PackageName: fullpipe
License: Apache-2.0
ShortDescription: {{.Summary}}
PackageUrl: {{.Homepage}}
ManifestType: defaultLocale
ManifestVersion: 1.6.0
`
	wingetInstaller = `PackageIdentifier: Fullpipe.Fullpipe
PackageVersion: {{.Version}}
InstallerType: zip
NestedInstallerType: portable
ReleaseDate: {{.Date}}
Installers:
{{- range $arch, $system := .Windows}}
- Architecture: {{$arch}}
  InstallerUrl: {{$.URL $system}}
  InstallerSha256: {{$.Sum256 $system}}
  NestedInstallerFiles:
  - RelativeFilePath: {{$.Root $system}}\fullpipe.exe
    PortableCommandAlias: fullpipe
{{- end}}
ManifestType: installer
ManifestVersion: 1.6.0
`
)

// Windows returns winget's names of the systems.
func (p published) Windows() map[string]string {
	return map[string]string{"x64": "windows/amd64", "arm64": "windows/arm64"}
}

// Root returns the top directory of a system's archive.
func (p published) Root(system string) string { return strings.TrimSuffix(p.archives[system], ".zip") }
