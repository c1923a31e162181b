package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"
)

// goTool runs the Go tool in the tree, for a target or for this system.
func (r *release) goTool(ctx context.Context, t *target, args ...string) error {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = r.source
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-trimpath -buildvcs=false", "GOWORK=off", "GOTOOLCHAIN=local",
		"GOAMD64=v1", "GOARM64=v8.0")
	if t != nil {
		cmd.Env = append(cmd.Env, "GOOS="+t.os, "GOARCH="+t.arch)
	}
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("go %s: %w: %s", args[0], err, said.Bytes())
	}
	return nil
}

// manual writes the manual pages and the completions into work/manual.
func (r *release) manual(ctx context.Context) error {
	statuses, err := filepath.Abs(filepath.Join(r.source, "docs", "exit-status.md"))
	if err != nil {
		return err
	}
	return r.goTool(ctx, nil, "run", "-tags", "manual", "./cmd/fullpipe", filepath.Join(r.work, "manual"),
		r.at.Format(time.DateOnly), statuses)
}

// build builds a program for a target and puts it into an archive.
func (r *release) build(ctx context.Context, p product, t target) error {
	name := p.name
	if t.os == "windows" {
		name += ".exe"
	}
	program := filepath.Join(r.work, t.os+"-"+t.arch, name)
	profile := "off"
	if p.profiled {
		profile = r.profile
	}
	const info = "github.com/fullpipe-net/fullpipe/internal/build"
	if err := r.goTool(ctx, &t, "build", "-pgo="+profile, "-o", program, "-ldflags", fmt.Sprintf(
		"-s -w -buildid= -X %[1]s.release=%[2]s -X %[1]s.revision=%[3]s -X %[1]s.revised=%[4]s", info, r.tag, r.commit,
		r.at.Format(time.RFC3339)), "./cmd/"+p.name); err != nil {
		return err
	}
	r.programs[built{p.name, t}] = program
	contents := []entry{{name, program, 0o755}, {"LICENSE", filepath.Join(r.source, "LICENSE"), 0o644}}
	if p.name == fullpipe.name {
		documents, err := r.documents()
		if err != nil {
			return err
		}
		contents = append(contents, documents...)
	}
	if t.os != "windows" {
		manual, err := r.under(filepath.Join(r.work, "manual"), "")
		if err != nil {
			return err
		}
		for _, page := range manual {
			if p.owns(filepath.Base(page.name)) {
				contents = append(contents, page)
			}
		}
	}
	root := fmt.Sprintf("%s-%s-%s-%s", p.name, r.number(), t.os, t.arch)
	ext, write := ".tar.gz", r.tarGz
	if t.os == "windows" {
		ext, write = ".zip", r.zip
	}
	if p.name == fullpipe.name {
		r.archives[t] = root + ext
	}
	return toFile(filepath.Join(r.out, root+ext), func(w io.Writer) error { return write(w, root+"/", contents) })
}

// entry is a file that goes into an archive.
type entry struct {
	name, from string
	mode       int64
}

// under lists the files below a directory, by name.
func (r *release) under(dir, prefix string) (all []entry, err error) {
	err = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		all = append(all, entry{prefix + filepath.ToSlash(name), path, 0o644})
		return err
	})
	return all, err
}

// tarGz writes a reproducible archive: its bytes depend only on its files.
func (r *release) tarGz(w io.Writer, root string, contents []entry) error {
	packed, err := gzip.NewWriterLevel(w, gzip.BestCompression)
	if err != nil {
		return err
	}
	archive := tar.NewWriter(packed)
	for _, e := range sorted(contents) {
		text, err := os.ReadFile(e.from)
		if err != nil {
			return err
		}
		if err := archive.WriteHeader(&tar.Header{Name: root + e.name, Mode: e.mode, Size: int64(len(text)), ModTime: r.at,
			Typeflag: tar.TypeReg, Format: tar.FormatPAX}); err != nil {
			return err
		}
		if _, err := archive.Write(text); err != nil {
			return err
		}
	}
	if err := archive.Close(); err != nil {
		return err
	}
	return packed.Close()
}

func (r *release) zip(w io.Writer, root string, contents []entry) error {
	archive := zip.NewWriter(w)
	for _, e := range sorted(contents) {
		text, err := os.ReadFile(e.from)
		if err != nil {
			return err
		}
		header := &zip.FileHeader{Name: root + e.name, Method: zip.Deflate, Modified: r.at}
		header.SetMode(os.FileMode(e.mode))
		file, err := archive.CreateHeader(header)
		if err != nil {
			return err
		}
		if _, err := file.Write(text); err != nil {
			return err
		}
	}
	return archive.Close()
}

func sorted(contents []entry) []entry {
	return slices.SortedFunc(slices.Values(contents), func(a, b entry) int {
		return bytes.Compare([]byte(a.name), []byte(b.name))
	})
}

// toFile writes a file.
func toFile(name string, write func(io.Writer) error) error {
	var text bytes.Buffer
	if err := write(&text); err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(name), err)
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return os.WriteFile(name, text.Bytes(), 0o644)
}
