package tune

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"
)

// TestThresholds_UnitAndOrigin checks that "unit | origin" follows each threshold.
func TestThresholds_UnitAndOrigin(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "thresholds.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, decl := range file.Decls {
		for _, spec := range decl.(*ast.GenDecl).Specs {
			v := spec.(*ast.ValueSpec)
			unit, origin, _ := strings.Cut(v.Comment.Text(), "|")
			if strings.TrimSpace(unit) == "" || strings.TrimSpace(origin) == "" {
				t.Errorf("%s: no unit and origin, but %q", v.Names[0].Name, v.Comment.Text())
			}
			n++
		}
	}
	if n < 15 {
		t.Errorf("only %d thresholds were found", n)
	}
}
