// Package fullpipe_test holds the architecture: which way imports point, which
// packages are pure, where raw system calls live.
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

// floors lists the house from the ground up: a package imports from its own floor or
// from below.
var floors = [][]string{
	// nouns
	{"internal/units", "internal/spell", "internal/model", "internal/stats", "internal/transfer",
		"internal/verdict/threshold", "internal/openmetrics", "internal/admission", "internal/build"},
	// judgement
	{"internal/config", "internal/verdict", "internal/verdict/rule", "internal/verdict/live",
		"internal/verdict/watched",
		"internal/verdict/timeline", "internal/verdict/trust", "internal/verdict/compare",
		"internal/search", "internal/search/simpath",
		"internal/catalog", "internal/plan", "internal/audit",
		"internal/link", "internal/flow", "internal/change", "internal/predict", "internal/remedy", "internal/record",
		"internal/record/guard",
		"internal/watch/paths", "internal/recheck", "internal/fleet/mesh"},
	// instruments
	{"internal/testenv", "internal/testenv/summary",
		"internal/socket", "internal/output", "internal/outbox", "internal/path", "internal/engine", "internal/datagram",
		"internal/probe", "internal/iperf2", "internal/iperf3", "internal/ndt7", "internal/download", "internal/server",
		"internal/peer", "internal/capture", "internal/httpserver", "internal/serverlog",
		"internal/lab", "internal/lab/still", "internal/host", "internal/steer",
		"internal/sockdiag", "internal/socklist", "internal/fleet/bus", "internal/fleet/bus/embed",
		"internal/fleet/bus/callout",
		"autobuf"},
	// loops
	{"internal/watch", "internal/tune", "internal/tune/simpeer", "internal/sweep", "internal/rfc6349",
		"internal/diagnose", "internal/store", "internal/store/pgtest", "internal/recheck/runner",
		"internal/fleet/agent", "internal/fleet/hub"},
	// faces
	{"internal/report", "internal/render", "internal/render/iperf3", "internal/render/text", "internal/render/svg",
		"internal/render/html"},
	{"internal/tui", "internal/web"},
	// what commands share
	{"internal/cli/exit", "internal/cli/cmdflag", "internal/cli/console", "internal/cli/progress", "internal/cli/input",
		"internal/cli/hook", "internal/cli/settings", "internal/cli/serverkey"},
	{"internal/history"},
	{"internal/cli/present", "internal/cli/farend", "internal/cli/listener"},
	// commands
	{"internal/cli/tune", "internal/cli/measure", "internal/cli/sweep", "internal/cli/rfc6349", "internal/cli/serve",
		"internal/cli/plan", "internal/cli/predict", "internal/cli/audit", "internal/cli/apply", "internal/cli/undo",
		"internal/cli/explain", "internal/cli/exec", "internal/cli/lab", "internal/cli/diagnose", "internal/cli/show",
		"internal/cli/version", "internal/cli/watch", "internal/cli/history", "internal/cli/ui", "internal/cli/recheck",
		"internal/cli/iperf3", "internal/cli/key", "internal/cli/agent", "internal/cli/hub"},
	{"internal/cli"},
	{"cmd/fullpipe", "cmd/fullpipe-hub"},
}

// pureFloors are how many floors from the ground do no I/O.
const pureFloors = 2

// mayCallTheKernel are the packages in which raw system calls live.
var mayCallTheKernel = []string{"internal/socket", "internal/output", "internal/path", "internal/capture",
	"internal/lab", "internal/host",
	"internal/steer", "internal/sockdiag", "internal/socklist", "internal/testenv"}

// mayChangeFiles are the packages that make, change, rename or remove files, and which.
var mayChangeFiles = map[string]string{
	"internal/output":          "files that a user names, and small ones of our own",
	"internal/outbox":          "results that wait until they are stored",
	"internal/store":           "the history",
	"internal/store/pgtest":    "servers for tests",
	"internal/host":            "the journal and the system's configuration",
	"internal/testenv":         "probes for tests",
	"internal/testenv/summary": "the list of tests that were left out",
	"internal/lab":             "kernel settings under /proc",
	"internal/steer":           "cgroups under /sys",
}

// changesFiles are the functions of package os that make, change, rename or remove files. A
// file that is only read is opened by os.Open, or by os.OpenFile with flags of readFlags.
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

func (p pkg) room() string { return strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/") }

func packages(t *testing.T) []pkg {
	t.Helper()
	all, err := listed()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	return all
}

// listed returns the packages of this module. It asks go once.
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

func floor(room string) int {
	return slices.IndexFunc(floors, func(rooms []string) bool { return slices.Contains(rooms, room) })
}

func TestImportsPointDown(t *testing.T) {
	for _, p := range packages(t) {
		from := floor(p.room())
		if from < 0 {
			if len(p.GoFiles) > 0 && !strings.HasPrefix(p.room(), "e2e") {
				t.Errorf("%s stands on no floor of ARCHITECTURE.md", p.room())
			}
			continue
		}
		for _, imported := range p.Imports {
			if to := floor(strings.TrimPrefix(imported, module+"/")); to > from {
				t.Errorf("%s imports %s, which stands above it", p.room(), imported)
			}
		}
	}
}

// TestCommandsImportNoCommand holds what commands share below them.
func TestCommandsImportNoCommand(t *testing.T) {
	commands := floors[floor("internal/cli")-1]
	for _, p := range packages(t) {
		if !slices.Contains(commands, p.room()) {
			continue
		}
		for _, imported := range p.Imports {
			if slices.Contains(commands, strings.TrimPrefix(imported, module+"/")) {
				t.Errorf("%s imports %s, another command", p.room(), imported)
			}
		}
	}
}

func TestPurePackagesDoNoIO(t *testing.T) {
	forbidden := []string{"net", "os", "syscall", "os/exec", "net/http", "io/fs", "golang.org/x/sys/unix"}
	for _, p := range packages(t) {
		f := floor(p.room())
		if (f < 0 || f >= pureFloors) && p.room() != "internal/report" {
			continue
		}
		for _, imported := range p.Imports {
			if slices.Contains(forbidden, imported) {
				t.Errorf("%s is pure but imports %s", p.room(), imported)
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

func TestRawSystemCallsLiveInFewRooms(t *testing.T) {
	for _, p := range packages(t) {
		if slices.Contains(mayCallTheKernel, p.room()) || strings.HasPrefix(p.room(), "e2e") {
			continue
		}
		eachFile(t, p, func(name string, file *ast.File) {
			for _, imported := range file.Imports {
				if path, _ := strconv.Unquote(imported.Path.Value); path == "golang.org/x/sys/unix" ||
					path == "golang.org/x/sys/windows" {
					t.Errorf("%s imports %s; raw system calls live in %v", name, path, mayCallTheKernel)
				}
			}
		})
	}
}

func TestFilesAreChangedInFewPackages(t *testing.T) {
	for _, p := range packages(t) {
		if mayChangeFiles[p.room()] != "" || strings.HasPrefix(p.room(), "e2e") {
			continue
		}
		eachFile(t, p, func(name string, file *ast.File) {
			for _, imported := range file.Imports {
				if path, _ := strconv.Unquote(imported.Path.Value); path == "os" && imported.Name != nil || path == "io/ioutil" {
					t.Errorf("%s imports %s in a way that this test cannot follow", name, path)
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
						t.Errorf("%s uses os.%s; package output does that with links, devices and FIFOs in mind", name, s.Sel.Name)
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

func TestEveryPackageSaysWhatItIs(t *testing.T) {
	for _, p := range packages(t) {
		if len(p.GoFiles) > 0 && p.Doc == "" {
			t.Errorf("%s has no package comment", p.room())
		}
	}
}

func TestNoDustRooms(t *testing.T) {
	for _, p := range packages(t) {
		if slices.Contains([]string{"util", "utils", "common", "helper", "helpers", "misc", "types"},
			filepath.Base(p.room())) {
			t.Errorf("%s: a name that says nothing", p.room())
		}
	}
}

// CVE-2024-26306 is a server whose time to decrypt by RSA tells of the key: here one file
// decrypts, and tells nobody what went wrong, nor when.
func TestRSAIsDecryptedInOnePlace(t *testing.T) {
	const room, gate = "internal/iperf3", "internal/iperf3/auth.go"
	for _, p := range packages(t) {
		if !slices.Contains(p.Imports, "crypto/rsa") {
			continue
		}
		if p.room() != room {
			t.Errorf("%s imports crypto/rsa; only iperf3's logins need it", p.room())
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

// eachFile parses a package's files for every system, tests left out.
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
		visit(filepath.Join(p.room(), name), file)
	}
}
