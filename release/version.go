package main

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// version identifies the build.
type version struct {
	tag    string    // v1.2.3, or a made-up one of a tree without its tag
	commit string    // in full
	at     time.Time // of the commit: every time that goes into a file
}

// number returns the tag without its v.
func (v version) number() string { return strings.TrimPrefix(v.tag, "v") }

var (
	released = regexp.MustCompile(`^v\d+\.\d+\.\d+(-[0-9A-Za-z.]+)?$`)
	between  = regexp.MustCompile(`^(v\d+\.\d+\.\d+)(-[0-9A-Za-z.]+)?-(\d+)-g([0-9a-f]+)$`)
)

// describe returns the tree's version from git.
func describe(ctx context.Context, source, tag string) (version, error) {
	git := func(args ...string) (string, error) {
		out, err := exec.CommandContext(ctx, "git", append([]string{"-C", source}, args...)...).Output()
		if err != nil {
			return "", fmt.Errorf("git %s: %w", args[0], err)
		}
		return strings.TrimSpace(string(out)), nil
	}
	var v version
	seconds, err := git("log", "-1", "--format=%ct %H")
	if err != nil {
		return v, err
	}
	text, commit, _ := strings.Cut(seconds, " ")
	unix, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return v, fmt.Errorf("git log: %w", err)
	}
	v.at, v.commit = time.Unix(unix, 0).UTC(), commit
	if tag == "" {
		if tag, err = git("describe", "--tags", "--always", "--match", "v[0-9]*", "--abbrev=12"); err != nil {
			return v, err
		}
		tag = fromDescription(tag, v)
	}
	if v.tag = tag; !released.MatchString(tag) {
		return v, fmt.Errorf("%q is no version: v1.2.3 or v1.2.3-rc.1", tag)
	}
	return v, nil
}

// fromDescription returns the version for an output of git describe. A tag is its own version. Commits after a tag get
// a development version of the next release, which every package system sorts before that release.
func fromDescription(text string, v version) string {
	if released.MatchString(text) {
		return text
	}
	if m := between.FindStringSubmatch(text); m != nil {
		parts := strings.Split(strings.TrimPrefix(m[1], "v"), ".")
		patch, _ := strconv.Atoi(parts[2])
		if m[2] == "" {
			patch++
		}
		return fmt.Sprintf("v%s.%s.%d-dev.%s.g%s", parts[0], parts[1], patch, m[3], m[4])
	}
	return fmt.Sprintf("v0.0.0-dev.%s.g%.12s", v.at.Format("20060102150405"), v.commit)
}
