package fullpipe_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestStatementsDoOneThing rejects statements that hide an assignment: one in the init of an if or switch (other than
// := and to err or ok), a tuple assignment (other than a swap or a call of several values), an index of a map literal
// in place of an if.
func TestStatementsDoOneThing(t *testing.T) {
	for _, p := range packages(t) {
		names, err := filepath.Glob(filepath.Join(p.Dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			files := token.NewFileSet()
			file, err := parser.ParseFile(files, name, nil, parser.SkipObjectResolution|parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			if ast.IsGenerated(file) {
				continue
			}
			for at, fault := range hiddenAssignments(file) {
				t.Errorf("%s:%d: %s", filepath.Join(p.path(), filepath.Base(name)), files.Position(at).Line, fault)
			}
		}
	}
}

// hiddenAssignments returns the faults of such statements by position.
func hiddenAssignments(file *ast.File) map[token.Pos]string {
	found := map[token.Pos]string{}
	loopParts := map[ast.Stmt]bool{} // for i, j := 0, n; ; i, j = i+1, j-1 is usual
	checkInit := func(init ast.Stmt) {
		switch s := init.(type) {
		case *ast.IncDecStmt:
			found[s.Pos()] = "an assignment in the init of a statement: write it before"
		case *ast.AssignStmt:
			if s.Tok != token.DEFINE && !assignsErrOrOK(s) {
				found[s.Pos()] = "an assignment in the init of a statement: write it before"
			}
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ForStmt:
			loopParts[n.Init] = true
			loopParts[n.Post] = true
		case *ast.IfStmt:
			checkInit(n.Init)
		case *ast.SwitchStmt:
			checkInit(n.Init)
		case *ast.TypeSwitchStmt:
			checkInit(n.Init)
		case *ast.AssignStmt:
			if len(n.Lhs) > 1 && len(n.Lhs) == len(n.Rhs) && !loopParts[n] && !isSwap(n) {
				found[n.Pos()] = "a tuple assignment: one statement each"
			}
		case *ast.IndexExpr:
			literal, _ := n.X.(*ast.CompositeLit)
			if literal == nil {
				break
			}
			if m, ok := literal.Type.(*ast.MapType); ok && types.ExprString(m.Key) == "bool" {
				found[n.Pos()] = "a map literal as an if"
			}
		}
		return true
	})
	return found
}

// assignsErrOrOK reports whether the last assigned variable is err or ok.
func assignsErrOrOK(s *ast.AssignStmt) bool {
	last, ok := s.Lhs[len(s.Lhs)-1].(*ast.Ident)
	return ok && (last.Name == "err" || last.Name == "ok")
}

// isSwap reports whether both sides have the same variables.
func isSwap(s *ast.AssignStmt) bool {
	var left, right []string
	for i := range s.Lhs {
		left = append(left, types.ExprString(s.Lhs[i]))
		right = append(right, types.ExprString(s.Rhs[i]))
	}
	slices.Sort(left)
	slices.Sort(right)
	return slices.Equal(left, right)
}

func TestHiddenAssignments_Found(t *testing.T) {
	for text, want := range map[string]int{
		"if n = f(); n > 1 {}":                                1,
		"if n++; n > 1 {}":                                    1,
		"switch n = 1; { case n > 1: }":                       1,
		"switch s.x = y; x := s.x.(type) { case int: _ = x }": 1,
		"a, b := 1, 2":                                        1,
		"s.a, s.b = x, y":                                     1,
		"n := map[bool]int{true: 1}[x]":                       1,
		"if n := f(); n > 1 {}":                               0,
		"if err = f(); err != nil {}":                         0,
		"if v, ok = m[k]; ok {}":                              0,
		"a, b = b, a":                                         0,
		"a, b, c = c, a, b":                                   0,
		"a, err := f()":                                       0,
		"for i, j := 0, 9; i < j; i, j = i+1, j-1 {}":         0,
		`n := map[string]int{"K": 1e3}[x]`:                    0,
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "", "package p\nfunc f() {\n"+text+"\n}", 0)
		if err != nil {
			t.Fatal(text, err)
		}
		if got := len(hiddenAssignments(file)); got != want {
			t.Errorf("%s: %d found, want %d", text, got, want)
		}
	}
}

// TestDefaultPort_InOnePlace checks that only its constant has the number of the default port.
func TestDefaultPort_InOnePlace(t *testing.T) {
	found := []string{}
	eachProductFile(t, func(name string, file *ast.File) {
		ast.Inspect(file, func(n ast.Node) bool {
			lit, ok := n.(*ast.BasicLit)
			if ok && (lit.Value == "5201" || lit.Value == `"5201"` || lit.Value == `":5201"`) {
				found = append(found, name)
			}
			return true
		})
	})
	if len(found) != 1 {
		t.Errorf("%q have 5201; use transfer.DefaultPort", found)
	}
}
