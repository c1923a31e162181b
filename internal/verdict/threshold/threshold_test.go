package threshold

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// TestThresholds_HaveUnitAndOrigin expects "unit | origin" in the comment of every constant.
func TestThresholds_HaveUnitAndOrigin(t *testing.T) {
	var declarations []ast.Decl
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
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
				t.Errorf("%s: the comment %q has no unit and origin", v.Names[0].Name, v.Comment.Text())
			}
			n++
		}
	}
	if n < 50 {
		t.Errorf("only %d thresholds", n)
	}
}
