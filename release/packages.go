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

// packages writes a deb and an rpm for each Linux architecture.
func (r *release) packages() error {
	for _, t := range r.targets {
		if t.os != "linux" {
			continue
		}
		for _, format := range []string{"deb", "rpm"} {
			if err := r.pack(format, t); err != nil {
				return fmt.Errorf("%s for %s: %w", format, t.arch, err)
			}
		}
	}
	return nil
}

func (r *release) pack(format string, t target) error {
	contents, err := r.installed(format, t)
	if err != nil {
		return err
	}
	script := func(name string) string { return filepath.Join(r.source, "contrib", "package", name) }
	info := nfpm.WithDefaults(&nfpm.Info{Name: "fullpipe", Arch: t.arch, Platform: "linux", Version: r.tag, Release: "1",
		Section: "net", Priority: "optional", Maintainer: "fullpipe maintainers <fullpipe@users.noreply.github.com>", Vendor: "fullpipe",
		Homepage: homepage, License: "Apache-2.0", Description: description, MTime: r.at,
		Overridables: nfpm.Overridables{Contents: contents, Scripts: nfpm.Scripts{PostInstall: script("postinst"),
			PreRemove: script("prerm"), PostRemove: script("postrm")}, RPM: nfpm.RPM{Summary: summary, BuildHost: "fullpipe",
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
func (r *release) installed(format string, t target) (files.Contents, error) {
	var all files.Contents
	add := func(from, to string, mode os.FileMode) {
		all = append(all, &files.Content{Source: from, Destination: to, FileInfo: &files.ContentFileInfo{Owner: "root",
			Group: "root", Mode: mode, MTime: r.at}})
	}
	manual := filepath.Join(r.work, "manual")
	zsh := "/usr/share/zsh/vendor-completions/_fullpipe"
	if format == "rpm" {
		zsh = "/usr/share/zsh/site-functions/_fullpipe"
	}
	add(r.programs[t], "/usr/bin/fullpipe", 0o755)
	add(filepath.Join(manual, "bash", "fullpipe"), "/usr/share/bash-completion/completions/fullpipe", 0o644)
	add(filepath.Join(manual, "zsh", "_fullpipe"), zsh, 0o644)
	add(filepath.Join(manual, "fish", "fullpipe.fish"), "/usr/share/fish/vendor_completions.d/fullpipe.fish", 0o644)
	add(filepath.Join(r.source, "LICENSE"), "/usr/share/doc/fullpipe/copyright", 0o644)
	documents, err := r.documents()
	if err != nil {
		return nil, err
	}
	for _, doc := range documents {
		add(doc.from, "/usr/share/doc/fullpipe/"+doc.name, 0o644)
	}
	add(filepath.Join(r.source, "contrib", "package", "sysusers.conf"), "/usr/lib/sysusers.d/fullpipe.conf", 0o644)
	for _, pattern := range []string{"grafana.json", "alerts.yml"} { // for Grafana and Prometheus
		found, err := filepath.Glob(filepath.Join(r.source, "contrib", "*", pattern))
		if err != nil {
			return nil, err
		}
		for _, file := range found {
			add(file, "/usr/share/fullpipe/"+filepath.Base(filepath.Dir(file))+"/"+pattern, 0o644)
		}
	}
	pages, err := r.under(filepath.Join(manual, "man1"), "")
	if err != nil {
		return nil, err
	}
	for _, page := range pages {
		packed := filepath.Join(r.work, "packed", page.name+".gz")
		if err := squeeze(page.from, packed); err != nil {
			return nil, err
		}
		add(packed, "/usr/share/man/man1/"+page.name+".gz", 0o644)
	}
	for _, unit := range []string{"fullpipe.service", "fullpipe-watch.service", "fullpipe-recheck.service",
		"fullpipe-recheck-once.service", "fullpipe-recheck-once.timer"} {
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
