package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb" // registers the format
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm" // registers the format
)

const (
	homepage    = "https://github.com/fullpipe-net/fullpipe"
	summary     = "find out why a TCP transfer is slow, fix it and prove it"
	description = summary + `
fullpipe measures a path, names what limits a TCP transfer on it with evidence,
computes the right windows and buffers, tries them and proves the gain.`
)

// packages writes a deb and an rpm of each product for each Linux architecture.
func (r *release) packages() error {
	for _, t := range r.targets {
		if t.os != "linux" {
			continue
		}
		for _, p := range products {
			for _, format := range []string{"deb", "rpm"} {
				if err := r.pack(format, p, t); err != nil {
					return fmt.Errorf("%s of %s for %s: %w", format, p.name, t.arch, err)
				}
			}
		}
	}
	return nil
}

func (r *release) pack(format string, p product, t target) error {
	contents, err := r.installed(format, p, t)
	if err != nil {
		return err
	}
	script := func(name string) string {
		if p.name == hub.name {
			name = "hub-" + name
		}
		return filepath.Join(r.source, "contrib", "package", name)
	}
	info := nfpm.WithDefaults(&nfpm.Info{Name: p.name, Arch: t.arch, Platform: "linux", Version: r.tag, Release: "1",
		Section: "net", Priority: "optional", Maintainer: "fullpipe maintainers <fullpipe@users.noreply.github.com>", Vendor: "fullpipe",
		Homepage: homepage, License: "Apache-2.0", Description: p.description, MTime: r.at,
		Overridables: nfpm.Overridables{Contents: contents, Recommends: p.recommends, Scripts: nfpm.Scripts{PostInstall: script("postinst"),
			PreRemove: script("prerm"), PostRemove: script("postrm")}, RPM: nfpm.RPM{Summary: p.summary, BuildHost: "fullpipe",
			Group: "Applications/Internet"}}})
	if err := nfpm.PrepareForPackager(info, format); err != nil {
		return err
	}
	packager, err := nfpm.Get(format)
	if err != nil {
		return err
	}
	return toFile(filepath.Join(r.out, packager.ConventionalFileName(info)), func(w io.Writer) error {
		return packager.Package(info, w)
	})
}

// installed lists the files of a package and their targets.
func (r *release) installed(format string, p product, t target) (files.Contents, error) {
	var all files.Contents
	add := func(from, to string, mode os.FileMode) {
		all = append(all, &files.Content{Source: from, Destination: to, FileInfo: &files.ContentFileInfo{Owner: "root",
			Group: "root", Mode: mode, MTime: r.at}})
	}
	manual := filepath.Join(r.work, "manual")
	zsh := "/usr/share/zsh/vendor-completions/_"
	if format == "rpm" {
		zsh = "/usr/share/zsh/site-functions/_"
	}
	add(r.programs[built{p.name, t}], "/usr/bin/"+p.name, 0o755)
	add(filepath.Join(manual, "bash", p.name), "/usr/share/bash-completion/completions/"+p.name, 0o644)
	add(filepath.Join(manual, "zsh", "_"+p.name), zsh+p.name, 0o644)
	add(filepath.Join(manual, "fish", p.name+".fish"), "/usr/share/fish/vendor_completions.d/"+p.name+".fish", 0o644)
	add(filepath.Join(r.source, "LICENSE"), "/usr/share/doc/"+p.name+"/copyright", 0o644)
	if p.name == fullpipe.name {
		if err := r.shared(add); err != nil {
			return nil, err
		}
	}
	pages, err := r.under(filepath.Join(manual, "man1"), "")
	if err != nil {
		return nil, err
	}
	for _, page := range pages {
		if !p.owns(page.name) {
			continue
		}
		packed := filepath.Join(r.work, "packed", page.name+".gz")
		if err := squeeze(page.from, packed); err != nil {
			return nil, err
		}
		add(packed, "/usr/share/man/man1/"+page.name+".gz", 0o644)
	}
	for _, unit := range p.units {
		text, err := os.ReadFile(filepath.Join(r.source, "contrib", unit))
		if err != nil {
			return nil, err
		}
		placed := filepath.Join(r.work, "units", unit)
		if err := toFile(placed, func(w io.Writer) error {
			_, err := io.WriteString(w, strings.ReplaceAll(string(text), "/usr/local/bin/", "/usr/bin/"))
			return err
		}); err != nil {
			return nil, err
		}
		add(placed, "/usr/lib/systemd/system/"+unit, 0o644)
	}
	return all, nil
}

// shared adds the files of the package fullpipe alone: documents, the user of the services, files for Grafana and
// Prometheus.
func (r *release) shared(add func(from, to string, mode os.FileMode)) error {
	documents, err := r.documents()
	if err != nil {
		return err
	}
	for _, doc := range documents {
		add(doc.from, "/usr/share/doc/fullpipe/"+doc.name, 0o644)
	}
	add(filepath.Join(r.source, "contrib", "package", "sysusers.conf"), "/usr/lib/sysusers.d/fullpipe.conf", 0o644)
	for _, pattern := range []string{"grafana.json", "alerts.yml"} {
		found, err := filepath.Glob(filepath.Join(r.source, "contrib", "*", pattern))
		if err != nil {
			return err
		}
		for _, file := range found {
			add(file, "/usr/share/fullpipe/"+filepath.Base(filepath.Dir(file))+"/"+pattern, 0o644)
		}
	}
	return nil
}

// squeeze compresses a file with gzip, without name and time in the header.
func squeeze(from, to string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	var packed bytes.Buffer
	w, _ := gzip.NewWriterLevel(&packed, gzip.BestCompression) // the level is one
	w.Write(text)
	w.Close()
	return toFile(to, func(w io.Writer) error {
		_, err := w.Write(packed.Bytes())
		return err
	})
}
