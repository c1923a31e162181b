package fullpipe_test

import (
	"go/ast"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/secret"
)

// harmlessVariables are the environment variables without secrets.
var harmlessVariables = []string{"FULLPIPE_STATE", "FULLPIPE_HISTORY", "FULLPIPE_CONFIG", "FULLPIPE_DETACHED",
	"FULLPIPE_SENDER_RULE", "FULLPIPE_RECEIVER_RULE", "FULLPIPE_LAB", "FULLPIPE_LAB_ACCOUNT", "FULLPIPE_NEAR",
	"FULLPIPE_FAR", "FULLPIPE_FAR_OUTSIDE", "FULLPIPE_FEATURES", "FULLPIPE_LEAVE_OUT", "FULLPIPE_TESTENV_INSIDE",
	"FULLPIPE_BANK", "FULLPIPE_TEST_CLUSTER"}

var variableName = regexp.MustCompile(`^FULLPIPE_[A-Z0-9_]+$`)

// TestVariables_AreSecretOrHarmless checks that somebody has decided about each environment variable.
func TestVariables_AreSecretOrHarmless(t *testing.T) {
	eachProductFile(t, func(name string, file *ast.File) {
		ast.Inspect(file, func(n ast.Node) bool {
			text, is := n.(*ast.BasicLit)
			if !is || text.Kind != token.STRING {
				return true
			}
			variable, _ := strconv.Unquote(text.Value)
			if variableName.MatchString(variable) && !slices.Contains(harmlessVariables, variable) &&
				!slices.Contains(secret.Variables, variable) {
				t.Errorf("%s: is %s a secret? add it to internal/secret or to harmlessVariables", name, variable)
			}
			if slices.Contains(secret.Variables, variable) && name != "internal/secret/secret.go" {
				t.Errorf("%s: use internal/secret for %s", name, variable)
			}
			return true
		})
	})
}

// ownPrograms are files that start nothing but fullpipe itself or tests' programs, with an environment of their own.
var ownPrograms = []string{"internal/lab/start_linux.go", "internal/history/sudo.go", "internal/lab/spawn_linux.go",
	"internal/store/pgtest/", "internal/testenv/"}

// TestPrograms_GetNoSecrets checks that each file which starts programs takes the secrets from their environment.
func TestPrograms_GetNoSecrets(t *testing.T) {
	starts := map[string]bool{}
	eachProductFile(t, func(name string, file *ast.File) {
		name = filepath.ToSlash(name)
		removes := false
		started := 0
		ast.Inspect(file, func(n ast.Node) bool {
			s, is := n.(*ast.SelectorExpr)
			if !is {
				return true
			}
			for _, start := range [][2]string{{"exec", "Command"}, {"exec", "CommandContext"}, {"os", "StartProcess"},
				{"syscall", "Exec"}, {"syscall", "ForkExec"}, {"syscall", "StartProcess"}} {
				if isOf(s, start[0], start[1]) {
					started++
				}
			}
			removes = removes || isOf(s, "secret", "Without")
			return true
		})
		own := slices.ContainsFunc(ownPrograms, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
		if started > 0 && !removes && !own {
			t.Errorf("%s starts a program with the secrets in its environment: use secret.Without", name)
		}
		starts[name] = started > 0
	})
	if len(starts) == 0 {
		t.Error("no file starts a program")
	}
}
