// Command release builds all files of a release of fullpipe from the source tree, without the network: archives for
// each system, deb and rpm packages, an OCI layout, manifests for Homebrew, Scoop and winget, a bill of materials and
// checksums. It is a module of its own, so that fullpipe does not depend on the packaging libraries.
//
// Builds are reproducible: the files contain the time of the commit, but no other time, no path and no host name.
package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
)

// target is a system that a program is built for.
type target struct{ os, arch string }

func (t target) String() string { return t.os + "/" + t.arch }

var targets = []target{{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"},
	{"windows", "amd64"}, {"windows", "arm64"}, {"freebsd", "amd64"}}

// release is the configuration and the results of one run.
type release struct {
	source string // the tree
	out    string // where the results go
	work   string // temporary files
	// profile is go build's -pgo.
	profile string
	version
	targets []target

	programs map[built]string  // where each was built
	archives map[target]string // the names of fullpipe's in out
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	fl := flag.NewFlagSet("release", flag.ContinueOnError)
	source := fl.String("source", "..", "the `tree` to build")
	out := fl.String("out", "../dist", "`directory` for the results; its contents are deleted")
	only := fl.String("only", "", "build only these systems: linux/amd64,linux/arm64")
	profile := fl.String("profile", "cmd/fullpipe/busy.pgo", "CPU profile for profile-guided optimization, "+
		"a `file` in the tree; off: none")
	tag := fl.String("version", "", "version instead of the one from git describe")
	if err := fl.Parse(args); err != nil {
		return err
	}
	r := &release{source: *source, out: *out, profile: *profile, programs: map[built]string{},
		archives: map[target]string{}}
	for _, t := range targets {
		if *only == "" || slices.Contains(strings.Split(*only, ","), t.String()) {
			r.targets = append(r.targets, t)
		}
	}
	if len(r.targets) == 0 {
		return fmt.Errorf("-only %s: none of %v", *only, targets)
	}
	var err error
	if r.version, err = describe(ctx, r.source, *tag); err != nil {
		return err
	}
	if r.work, err = os.MkdirTemp("", "fullpipe-release-"); err != nil {
		return err
	}
	defer os.RemoveAll(r.work)
	if err := errors.Join(os.RemoveAll(r.out), os.MkdirAll(r.out, 0o755)); err != nil {
		return err
	}
	return r.make(ctx)
}

// make runs the steps in order.
func (r *release) make(ctx context.Context) error {
	if err := r.manual(ctx); err != nil {
		return err
	}
	for _, t := range r.targets {
		for _, p := range products {
			if !p.isFor(t) {
				continue
			}
			if err := r.build(ctx, p, t); err != nil {
				return fmt.Errorf("%s for %v: %w", p.name, t, err)
			}
		}
	}
	for _, step := range []func() error{r.packages, r.images, r.manifests, r.materials, r.sums} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// sums writes SHA256SUMS for all files.
func (r *release) sums() error {
	var lines strings.Builder
	err := filepath.WalkDir(r.out, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		sum, err := sumOf(path)
		name, _ := filepath.Rel(r.out, path)
		fmt.Fprintf(&lines, "%s  %s\n", sum, filepath.ToSlash(name))
		return err
	})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.out, "SHA256SUMS"), []byte(lines.String()), 0o644)
}

func sumOf(path string) (string, error) {
	text, err := os.ReadFile(path)
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), err
}
