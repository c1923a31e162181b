package fullpipe_test

import (
	"go/ast"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestOneHTTPServer checks that one constructor makes every http.Server with all limits set, and that net/http's own
// serve functions are not used.
func TestOneHTTPServer(t *testing.T) {
	const constructor = "internal/httpserver/httpserver.go"
	bounds := []string{"ErrorLog", "ReadHeaderTimeout", "ReadTimeout", "WriteTimeout", "IdleTimeout", "MaxHeaderBytes",
		"ConnState"}
	made := 0
	eachProductFile(t, func(name string, file *ast.File) {
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CompositeLit:
				if isOf(n.Type, "http", "Server") {
					made++
					var set []string
					for _, e := range n.Elts {
						if pair, is := e.(*ast.KeyValueExpr); is {
							set = append(set, pair.Key.(*ast.Ident).Name)
						}
					}
					for _, bound := range bounds {
						if !slices.Contains(set, bound) {
							t.Errorf("%s: the HTTP server has no %s", name, bound)
						}
					}
					if name != constructor {
						t.Errorf("%s makes an http.Server; only %s does", name, constructor)
					}
				}
			case *ast.CallExpr:
				for _, serve := range []string{"Serve", "ServeTLS", "ListenAndServe", "ListenAndServeTLS"} {
					if isOf(n.Fun, "http", serve) {
						t.Errorf("%s calls http.%s, which has no limits", name, serve)
					}
				}
				if isOf(n.Fun, "", "new") && len(n.Args) == 1 && isOf(n.Args[0], "http", "Server") {
					t.Errorf("%s makes an http.Server without limits", name)
				}
			case *ast.ValueSpec:
				if isOf(n.Type, "http", "Server") {
					t.Errorf("%s declares an http.Server without limits", name)
				}
			}
			return true
		})
	})
	if made != 1 {
		t.Errorf("http.Server is made %d times, want once", made)
	}
}

// TestServersWriteToTheirLog checks that only the command writes to standard error, which servers turn into a log
// (logStderr): packages use neither os.Stderr nor the standard logger.
func TestServersWriteToTheirLog(t *testing.T) {
	// Separate processes that are not servers, and tests.
	mayWrite := []string{"cmd/fullpipe/main.go", "cmd/fullpipe/manual.go", "cmd/fullpipe-hub/main.go",
		"internal/lab/", "internal/testenv/"}
	eachProductFile(t, func(name string, file *ast.File) {
		allowed := slices.ContainsFunc(mayWrite, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
		ast.Inspect(file, func(n ast.Node) bool {
			s, is := n.(*ast.SelectorExpr)
			if !is {
				return true
			}
			if isOf(s, "os", "Stderr") && !allowed {
				t.Errorf("%s writes to os.Stderr", name)
			}
			if x, is := s.X.(*ast.Ident); is && x.Name == "log" && imports(file, "log") &&
				!slices.Contains([]string{"New", "Logger"}, s.Sel.Name) {
				t.Errorf("%s uses log.%s", name, s.Sel.Name)
			}
			return true
		})
	})
}

// eachProductFile parses the files of the programs, without tests and without build and benchmark tools.
func eachProductFile(t *testing.T, visit func(name string, file *ast.File)) {
	t.Helper()
	for _, p := range packages(t) {
		if !strings.HasPrefix(p.path(), "e2e") {
			eachFile(t, p, visit)
		}
	}
}

// isOf reports whether an expression is a name of a package; "" means no package.
func isOf(e ast.Expr, pkg, name string) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return pkg == "" && e.Name == name
	case *ast.SelectorExpr:
		x, is := e.X.(*ast.Ident)
		return is && x.Name == pkg && e.Sel.Name == name
	}
	return false
}

func imports(file *ast.File, path string) bool {
	return slices.ContainsFunc(file.Imports, func(i *ast.ImportSpec) bool { return i.Path.Value == `"`+path+`"` })
}

// listenersOf says of a file how many calls open listeners, and which rows of TestServers_FloodedLogs flood them.
type listenersOf struct {
	calls int
	rows  []string // none: strangers cause no line there
}

var listeners = map[string]listenersOf{
	"internal/server/server.go": {1, []string{"serve", "serve --json", "serve --keys, no file", "serve --iperf3",
		"iperf3 -s", "agent"}},
	"internal/server/windows.go":   {3, []string{"serve", "iperf3 -s", "agent"}},
	"internal/server/streams.go":   {1, nil}, // for one test; its other connections are closed without a word
	"internal/cli/serve/iperf2.go": {2, []string{"serve --iperf2"}},
	"internal/cli/listener/listener.go": {1, []string{"serve --web", "serve --web, TLS", "ui", "ui, TLS",
		"watch --listen", "watch --listen, TLS", "recheck --listen", "recheck --listen, TLS"}},
	"internal/cli/listener/pages.go": {1, []string{"serve --iperf3", "iperf3 -s"}}, // datagrams
	"internal/cli/hub/serve.go":      {2, []string{"fullpipe-hub serve"}},
	"autobuf/autobuf.go":             {1, nil}, // a library
	"internal/lab/ask_linux.go":      {1, nil}, // sockets of this host
	"internal/lab/atfar_linux.go":    {1, nil},
	"internal/peer/ssh_far.go":       {1, nil}, // finds a free port
	"internal/socket/ports_other.go": {1, nil},
	"internal/socket/socket.go":      {1, nil}, // for the packages above
	"internal/socket/flow.go":        {1, nil},
}

// TestEveryListenerIsFlooded checks that each call that opens a listener has a row of TestServers_FloodedLogs.
func TestEveryListenerIsFlooded(t *testing.T) {
	found := map[string]int{}
	eachProductFile(t, func(name string, file *ast.File) {
		if strings.HasPrefix(name, "internal/testenv/") {
			return
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				s, is := n.Fun.(*ast.SelectorExpr)
				if is && strings.HasPrefix(s.Sel.Name, "Listen") && s.Sel.Name != "Listener" &&
					(isOf(s, "net", s.Sel.Name) || isOf(s, "socket", s.Sel.Name)) {
					found[name]++
				}
			case *ast.SelectorExpr:
				if isOf(n, "net", "ListenConfig") {
					found[name]++
				}
			}
			return true
		})
	})
	const floodTest = "internal/cli/flood_test.go"
	rows, err := os.ReadFile(floodTest)
	if err != nil {
		t.Fatal(err)
	}
	for name, calls := range found {
		if of, listed := listeners[name]; !listed || of.calls != calls {
			t.Errorf("%s opens listeners in %d places, and the list has %d: flood them in %s", name, calls, of.calls, floodTest)
		}
	}
	for name, of := range listeners {
		if found[name] == 0 {
			t.Errorf("%s opens no listener", name)
		}
		for _, row := range of.rows {
			if !strings.Contains(string(rows), strconv.Quote(row)+":") {
				t.Errorf("%s has no row %q", floodTest, row)
			}
		}
	}
}
