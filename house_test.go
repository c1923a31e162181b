// Package fullpipe_test checks the architecture: the direction of imports, the
// packages without I/O, the packages with raw system calls.
package fullpipe_test

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/fullpipe-net/fullpipe"

// layers lists the packages from the bottom up: a package imports from its own layer or
// a lower one.
var layers = [][]string{
	// types and arithmetic
	{"internal/units", "internal/didyoumean", "internal/model", "internal/stats", "internal/transfer",
		"internal/verdict/threshold", "internal/openmetrics", "internal/admission", "internal/foreign", "internal/secret",
		"internal/build", "internal/turns"},
	// analysis
	{"internal/config", "internal/verdict", "internal/verdict/rule", "internal/verdict/live",
		"internal/verdict/timeline", "internal/verdict/trust", "internal/verdict/compare",
		"internal/search", "internal/search/simpath",
		"internal/catalog", "internal/plan", "internal/audit",
		"internal/link", "internal/flow", "internal/lost", "internal/changepoint",
		"internal/predict", "internal/advice", "internal/record",
		"internal/record/guard",
		"internal/watch/paths", "internal/watch/legs", "internal/recheck", "internal/fleet/mesh",
		"internal/fleet/incident"},
	// instruments
	{"internal/testenv", "internal/testenv/summary", "internal/testenv/hostile", "internal/testenv/must",
		"internal/bpf", "internal/drops", "internal/segments", "internal/waits",
		"internal/socket", "internal/atomicfile", "internal/outbox", "internal/path", "internal/bulk", "internal/datagram",
		"internal/requests",
		"internal/probe", "internal/iperf2", "internal/iperf3", "internal/ndt7", "internal/download", "internal/server",
		"internal/mcp", "internal/peer", "internal/capture", "internal/httpserver", "internal/serverlog",
		"internal/lab", "internal/lab/stalltest", "internal/host", "internal/sockops",
		"internal/sockdiag", "internal/socklist", "internal/fleet/bus", "internal/fleet/bus/embed",
		"internal/fleet/bus/callout",
		"autobuf"},
	// loops
	{"internal/watch", "internal/tune", "internal/tune/simpeer", "internal/sweep", "internal/rfc6349",
		"internal/diagnose", "internal/store", "internal/store/pgtest", "internal/recheck/runner",
		"internal/fleet/agent", "internal/fleet/hub"},
	// output
	{"internal/report", "internal/render", "internal/render/iperf3", "internal/render/text", "internal/render/svg",
		"internal/render/html"},
	{"internal/tui", "internal/web"},
	// shared by commands
	{"internal/cli/exit", "internal/cli/cmdflag", "internal/cli/console", "internal/cli/progress", "internal/cli/input",
		"internal/cli/hook", "internal/cli/settings", "internal/cli/serverkey", "internal/cli/help"},
	{"internal/history"},
	{"internal/cli/present", "internal/cli/farend", "internal/cli/listener"},
	// commands
	{"internal/cli/tune", "internal/cli/measure", "internal/cli/sweep", "internal/cli/rfc6349", "internal/cli/serve",
		"internal/cli/plan", "internal/cli/predict", "internal/cli/audit", "internal/cli/apply", "internal/cli/undo",
		"internal/cli/explain", "internal/cli/exec", "internal/cli/lab", "internal/cli/diagnose", "internal/cli/show",
		"internal/cli/version", "internal/cli/watch", "internal/cli/history", "internal/cli/ui", "internal/cli/recheck",
		"internal/cli/iperf3", "internal/cli/key", "internal/cli/mcp",
		"internal/cli/agent", "internal/cli/hub"},
	{"internal/cli"},
	{"cmd/fullpipe", "cmd/fullpipe-hub"},
}

// pureLayers is the number of lowest layers without I/O.
const pureLayers = 2

// mayCallTheKernel are the packages that may make raw system calls.
var mayCallTheKernel = []string{"internal/socket", "internal/atomicfile", "internal/path", "internal/capture",
	"internal/lab", "internal/host",
	"internal/bpf", "internal/sockops", "internal/sockdiag", "internal/socklist", "internal/testenv",
	"internal/waits", "internal/drops"}

// mayChangeFiles are the packages that may create, change, rename or remove files, with the files.
var mayChangeFiles = map[string]string{
	"internal/atomicfile":      "files that a user names, and small files of fullpipe",
	"internal/outbox":          "results that wait until they are stored",
	"internal/store":           "the history",
	"internal/store/pgtest":    "servers for tests",
	"internal/host":            "the journal and the system's configuration",
	"internal/testenv":         "probes for tests",
	"internal/testenv/summary": "the list of skipped tests",
	"internal/lab":             "kernel settings under /proc",
	"internal/sockops":         "cgroups under /sys",
}

// changesFiles are the functions of package os that create, change, rename or remove files. A
// read-only file is opened by os.Open, or by os.OpenFile with flags of readFlags.
var changesFiles = []string{"WriteFile", "Create", "CreateTemp", "MkdirTemp", "OpenFile", "Remove", "RemoveAll",
	"Rename", "Truncate", "Link", "Symlink", "Chmod", "Chown", "Lchown", "CopyFS", "OpenRoot"}

var readFlags = []string{"O_RDONLY", "O_NONBLOCK"}

type pkg struct {
	ImportPath   string
	Dir          string
	Doc          string
	GoFiles      []string
	IgnoredFiles []string `json:"IgnoredGoFiles"`
	Imports      []string
}

func (p pkg) path() string { return strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/") }

func packages(t *testing.T) []pkg {
	t.Helper()
	all, err := listed()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	return all
}

// listed returns the packages of this module. It runs `go list` once.
var listed = sync.OnceValues(func() (all []pkg, err error) {
	out, err := exec.Command("go", "list", "-json=ImportPath,Dir,Doc,GoFiles,IgnoredGoFiles,Imports", "./...").Output()
	if err != nil {
		return nil, err
	}
	for dec := json.NewDecoder(bytes.NewReader(out)); dec.More(); {
		var p pkg
		if err := dec.Decode(&p); err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
})

func layerOf(path string) int {
	return slices.IndexFunc(layers, func(paths []string) bool { return slices.Contains(paths, path) })
}

func TestImportsPointDown(t *testing.T) {
	for _, p := range packages(t) {
		from := layerOf(p.path())
		if from < 0 {
			if len(p.GoFiles) > 0 && !strings.HasPrefix(p.path(), "e2e") {
				t.Errorf("%s is in no layer; add it to layers in house_test.go", p.path())
			}
			continue
		}
		for _, imported := range p.Imports {
			if to := layerOf(strings.TrimPrefix(imported, module+"/")); to > from {
				t.Errorf("%s imports %s from a higher layer", p.path(), imported)
			}
		}
	}
}

// TestLikelyGains_ActOnNothing checks that unattended measurements cannot act on the gain of a tuning, which may be
// only likely. Behaviour is tested where gains are read: TestRuleForAPath_LikelyGain, TestApplied_KeepsLikely, and
// series of the history.
func TestLikelyGains_ActOnNothing(t *testing.T) {
	checked := 0
	for _, p := range packages(t) {
		alone := strings.Contains(p.path(), "recheck") || strings.Contains(p.path(), "rfc6349") ||
			strings.Contains(p.path(), "fleet")
		if !alone {
			continue
		}
		checked++
		if slices.Contains(p.Imports, module+"/internal/tune") {
			t.Errorf("%s imports tune", p.path())
		}
	}
	if checked < 3 {
		t.Errorf("only %d packages were found", checked)
	}
}

// TestCommandsImportNoCommand checks that commands share code through lower packages only.
func TestCommandsImportNoCommand(t *testing.T) {
	commands := layers[layerOf("internal/cli")-1]
	for _, p := range packages(t) {
		if !slices.Contains(commands, p.path()) {
			continue
		}
		for _, imported := range p.Imports {
			if slices.Contains(commands, strings.TrimPrefix(imported, module+"/")) {
				t.Errorf("%s imports %s, another command", p.path(), imported)
			}
		}
	}
}

func TestPurePackagesDoNoIO(t *testing.T) {
	forbidden := []string{"net", "os", "syscall", "os/exec", "net/http", "io/fs", "golang.org/x/sys/unix"}
	for _, p := range packages(t) {
		f := layerOf(p.path())
		if (f < 0 || f >= pureLayers) && p.path() != "internal/report" {
			continue
		}
		for _, imported := range p.Imports {
			if slices.Contains(forbidden, imported) {
				t.Errorf("%s is pure but imports %s", p.path(), imported)
			}
		}
		eachFile(t, p, func(name string, file *ast.File) {
			ast.Inspect(file, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.GoStmt:
					t.Errorf("%s is pure but starts a goroutine", name)
				case *ast.SelectorExpr:
					if x, ok := n.X.(*ast.Ident); ok && x.Name == "time" && (n.Sel.Name == "Now" || n.Sel.Name == "Sleep") {
						t.Errorf("%s is pure but calls time.%s", name, n.Sel.Name)
					}
				}
				return true
			})
		})
	}
}

func TestRawSystemCalls_InFewPackages(t *testing.T) {
	for _, p := range packages(t) {
		if slices.Contains(mayCallTheKernel, p.path()) || strings.HasPrefix(p.path(), "e2e") {
			continue
		}
		eachFile(t, p, func(name string, file *ast.File) {
			for _, imported := range file.Imports {
				if path, _ := strconv.Unquote(imported.Path.Value); path == "golang.org/x/sys/unix" ||
					path == "golang.org/x/sys/windows" {
					t.Errorf("%s imports %s; raw system calls belong to %v", name, path, mayCallTheKernel)
				}
			}
		})
	}
}

func TestFilesAreChangedInFewPackages(t *testing.T) {
	for _, p := range packages(t) {
		if mayChangeFiles[p.path()] != "" || strings.HasPrefix(p.path(), "e2e") {
			continue
		}
		eachFile(t, p, func(name string, file *ast.File) {
			for _, imported := range file.Imports {
				if path, _ := strconv.Unquote(imported.Path.Value); path == "os" && imported.Name != nil || path == "io/ioutil" {
					t.Errorf("%s imports %s under another name, which this test cannot check", name, path)
				}
			}
			reads := map[ast.Node]bool{}
			ast.Inspect(file, func(n ast.Node) bool {
				switch s := n.(type) {
				case *ast.CallExpr:
					reads[s.Fun] = len(s.Args) == 3 && hasOnlyReadFlags(s.Args[1])
				case *ast.SelectorExpr:
					x, ok := s.X.(*ast.Ident)
					if ok && x.Name == "os" && slices.Contains(changesFiles, s.Sel.Name) && !(s.Sel.Name == "OpenFile" && reads[s]) {
						t.Errorf("%s uses os.%s; use package output, which handles links, devices and FIFOs", name, s.Sel.Name)
					}
				}
				return true
			})
		})
	}
}

// hasOnlyReadFlags reports whether an expression is one of readFlags, or several with |.
func hasOnlyReadFlags(flags ast.Expr) bool {
	switch e := flags.(type) {
	case *ast.BinaryExpr:
		return e.Op == token.OR && hasOnlyReadFlags(e.X) && hasOnlyReadFlags(e.Y)
	case *ast.SelectorExpr:
		return slices.Contains(readFlags, e.Sel.Name)
	}
	return false
}

func TestEveryPackageHasAComment(t *testing.T) {
	for _, p := range packages(t) {
		if len(p.GoFiles) > 0 && p.Doc == "" {
			t.Errorf("%s has no package comment", p.path())
		}
	}
}

func TestPackageNames_AreSpecific(t *testing.T) {
	for _, p := range packages(t) {
		if slices.Contains([]string{"util", "utils", "common", "helper", "helpers", "misc", "types"},
			filepath.Base(p.path())) {
			t.Errorf("%s: the name does not describe the package", p.path())
		}
	}
}

// TestRSAIsDecryptedInOnePlace checks the defence against CVE-2024-26306, a timing side channel of RSA decryption: only
// one file decrypts, and its errors reveal neither the cause nor the time.
func TestRSAIsDecryptedInOnePlace(t *testing.T) {
	const owner, gate = "internal/iperf3", "internal/iperf3/auth.go"
	for _, p := range packages(t) {
		if !slices.Contains(p.Imports, "crypto/rsa") {
			continue
		}
		if p.path() != owner {
			t.Errorf("%s imports crypto/rsa; only iperf3's logins need it", p.path())
		}
		eachFile(t, p, func(name string, file *ast.File) {
			ast.Inspect(file, func(n ast.Node) bool {
				if call, ok := n.(*ast.SelectorExpr); ok {
					if x, ok := call.X.(*ast.Ident); ok && x.Name == "rsa" && !slices.Contains([]string{"PublicKey", "EncryptOAEP",
						"EncryptPKCS1v15"}, call.Sel.Name) && name != gate {
						t.Errorf("%s uses rsa.%s", name, call.Sel.Name)
					}
				}
				return true
			})
		})
	}
}

// eachFile parses a package's files for every system, tests excluded.
func eachFile(t *testing.T, p pkg, visit func(name string, file *ast.File)) {
	t.Helper()
	for _, name := range append(slices.Clone(p.GoFiles), p.IgnoredFiles...) {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		visit(filepath.Join(p.path(), name), file)
	}
}
