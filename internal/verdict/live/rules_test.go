package live

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"testing"
)

// TestRules_NameTheThresholdTheyUse checks that a rule prints the threshold that it compares with: wherever a call has
// a name and threshold.X after it, the name is X.
func TestRules_NameTheThresholdTheyUse(t *testing.T) {
	found := 0
	for _, name := range []string{"facts.go", "network_rules.go", "time_rules.go", "arrival_rules.go", "datagrams.go",
		"confidence.go", "undecided.go"} {
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) < 2 {
				return true
			}
			literal, ok := call.Args[0].(*ast.BasicLit)
			if !ok || literal.Kind != token.STRING {
				return true
			}
			value := call.Args[1]
			if inner, ok := value.(*ast.CallExpr); ok && len(inner.Args) == 1 { // ofTime(threshold.X)
				value = inner.Args[0]
			}
			selector, ok := value.(*ast.SelectorExpr)
			if !ok || selector.X.(*ast.Ident).Name != "threshold" {
				return true
			}
			found++
			if printed, _ := strconv.Unquote(literal.Value); printed != selector.Sel.Name {
				t.Errorf("%s: %s is printed as %s", files.Position(call.Pos()), selector.Sel.Name, printed)
			}
			return true
		})
	}
	if found < 100 {
		t.Errorf("%d thresholds found in the rules, want at least 100", found)
	}
}

// TestRules_Complete checks that every rule has a name of its own, an outcome and inputs, and that every threshold has
// a unit and an origin. A list in which the first rule decides ends with one that always applies.
func TestRules_Complete(t *testing.T) {
	for _, l := range Rules() {
		var names []string
		for _, r := range l.Rows {
			if r.Name == "" || r.When == "" || r.Outcome == "" || slices.Contains(names, r.Name) {
				t.Errorf("%s: %+v", l.Title, r)
			}
			names = append(names, r.Name)
		}
		for _, in := range l.Inputs {
			if in.Name == "" || in.Means == "" {
				t.Errorf("%s: input %q has no meaning", l.Title, in.Name)
			}
		}
		for _, n := range l.Thresholds {
			if n.Unit() == "" || n.Origin() == "" {
				t.Errorf("%s: %s has no unit or origin", l.Title, n.Name)
			}
		}
	}
	for name, always := range map[string]bool{
		"network":   networkRules[len(networkRules)-1].when.IsAlways(),
		"remainder": remainderRules[len(remainderRules)-1].when.IsAlways(),
		"datagram":  datagramRules[len(datagramRules)-1].when.IsAlways(),
		"arrival":   arrivalRules[len(arrivalRules)-1].when.IsAlways(),
	} {
		if !always {
			t.Errorf("the last %s rule does not always hold", name)
		}
	}
}
