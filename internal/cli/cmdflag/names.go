package cmdflag

import (
	"fmt"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/catalog"
	"github.com/fullpipe-net/fullpipe/internal/cli/exit"
	"github.com/fullpipe-net/fullpipe/internal/link"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// LimiterNames returns the names of all limiters.
func LimiterNames() (all []string) {
	for _, n := range verdict.Names() {
		all = append(all, string(n))
	}
	return all
}

// FindProgram is the program of --app; the zero one if none was asked for.
func FindProgram(name string) (catalog.Program, error) {
	program, ok := catalog.FindProgram(name)
	if name != "" && !ok {
		return program, exit.Usage("--app", fmt.Sprintf("%q is no program that is known", name),
			strings.Join(catalog.ProgramNames(), ", "))
	}
	return program, nil
}

// StackNames returns the names of all stacks that a lab can imitate.
func StackNames() (names []string) {
	for _, s := range link.Stacks() {
		names = append(names, s.Name)
	}
	return names
}
