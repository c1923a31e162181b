package fullpipe_test

import (
	"encoding/json"
	"go/ast"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/bpf"
)

// licences are the licences that may be linked into a program under Apache-2.0, with a pattern
// that matches only their text.
var licences = map[string]*regexp.Regexp{
	"Apache-2.0": regexp.MustCompile(`Apache License\s+Version 2\.0`),
	"MIT":        regexp.MustCompile(`Permission is hereby granted, free of charge, to any person obtaining\s+a copy`),
	"BSD":        regexp.MustCompile(`Redistribution and use in source and binary forms`),
	"ISC":        regexp.MustCompile(`Permission to use, copy, modify, and/?(?:or)? distribute this software`),
}

// TestLicences checks the licence of every module linked into a program, on every
// supported system.
func TestLicences(t *testing.T) {
	modules := map[string]string{}
	for _, system := range []string{"linux", "windows", "darwin", "freebsd"} {
		cmd := exec.Command("go", "list", "-deps", "-json=Module", "./cmd/fullpipe", "./cmd/fullpipe-hub")
		cmd.Env = append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0")
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("go list: %v", err)
		}
		for dec := json.NewDecoder(strings.NewReader(string(out))); dec.More(); {
			var p struct {
				Module *struct {
					Path, Dir string
					Main      bool
				}
			}
			if err := dec.Decode(&p); err != nil {
				t.Fatal(err)
			}
			if p.Module != nil && !p.Module.Main {
				modules[p.Module.Path] = p.Module.Dir
			}
		}
	}
	if len(modules) < 10 {
		t.Fatalf("only %d modules", len(modules))
	}
	modules["uPlot"] = "internal/web/static/uplot" // in the program too, and no module
	for path, dir := range modules {
		files, err := filepath.Glob(filepath.Join(dir, "[LC][IO][CP][EY]*"))
		if err != nil || len(files) == 0 {
			t.Errorf("%s has no licence in %s", path, dir)
			continue
		}
		found := ""
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for name, words := range licences {
				if words.Match(text) {
					found = name
				}
			}
		}
		if found == "" {
			t.Errorf("%s: no licence that is known to go with Apache-2.0: %v", path, files)
		}
	}
}

// TestEBPFLicences checks that LICENSE permits what the programs declare to the kernel.
func TestEBPFLicences(t *testing.T) {
	text, err := os.ReadFile("LICENSE")
	if err != nil {
		t.Fatal(err)
	}
	apache, more, _ := strings.Cut(string(text), "ADDITIONAL PERMISSION FOR eBPF PROGRAMS")
	if !licences["Apache-2.0"].MatchString(apache) || !licences["MIT"].MatchString(more) {
		t.Error("LICENSE has not both texts")
	}
	for _, p := range bpf.Programs() {
		named := regexp.MustCompile(`\s` + p.Hook + `[\s,]`).MatchString(more)
		if named != (p.License == bpf.Dual) || p.License != bpf.Dual && p.License != bpf.Apache {
			t.Errorf("%s declares %s; LICENSE names it under MIT and GPL: %v", p.Hook, p.License, named)
		}
	}
}

// TestEBPFPrograms_LoadInOnePlace checks that every program is loaded by internal/bpf, and so is a row of its table.
func TestEBPFPrograms_LoadInOnePlace(t *testing.T) {
	for _, p := range packages(t) {
		if p.path() == "internal/bpf" {
			continue
		}
		eachFile(t, p, func(name string, file *ast.File) {
			ast.Inspect(file, func(n ast.Node) bool {
				if s, ok := n.(*ast.SelectorExpr); ok && slices.Contains([]string{"NewProgram", "NewCollection", "NewMap",
					"AttachTracing", "AttachCgroup", "AttachIter"}, s.Sel.Name) {
					if x, ok := s.X.(*ast.Ident); ok && (x.Name == "ebpf" || x.Name == "link") {
						t.Errorf("%s calls %s.%s; internal/bpf loads and attaches", name, x.Name, s.Sel.Name)
					}
				}
				return true
			})
		})
	}
}
