package threshold

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"
)

// Every number has a unit and an origin: "unit | origin" behind it.
func TestEveryThresholdHasAUnitAndAnOrigin(t *testing.T) {
	var declarations []ast.Decl
	for _, name := range []string{"threshold.go", "network.go", "captures.go", "watch.go", "watched_arrivals.go"} {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		declarations = append(declarations, file.Decls...)
	}
	n := 0
	for _, decl := range declarations {
		block, ok := decl.(*ast.GenDecl)
		if !ok || block.Tok != token.CONST {
			continue
		}
		for _, spec := range block.Specs {
			v := spec.(*ast.ValueSpec)
			unit, origin, _ := strings.Cut(v.Comment.Text(), "|")
			if strings.TrimSpace(unit) == "" || strings.TrimSpace(origin) == "" {
				t.Errorf("%s: no unit and origin behind it, but %q", v.Names[0].Name, v.Comment.Text())
			}
			n++
		}
	}
	if n < 50 {
		t.Errorf("only %d thresholds were found", n)
	}
}
