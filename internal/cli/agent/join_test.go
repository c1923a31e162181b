package agent

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/secret"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// TestJoinToken checks where the token comes from. Of the command line, which other users see, a note says so.
func TestJoinToken(t *testing.T) {
	file := filepath.Join(t.TempDir(), "join")
	must.Do(t, os.WriteFile(file, []byte("of a file"), 0o600))
	for name, c := range map[string]struct {
		flags       flags
		environment string
		want, note  string
	}{
		"file":           {flags{joinFile: file}, "", "of a file", ""},
		"standard input": {flags{joinFile: "-"}, "", "of a pipe", ""},
		"no file":        {flags{joinFile: file + "x"}, "", "", ""},
		"environment":    {flags{}, "of the environment", "of the environment", ""},
		"command line":   {flags{join: "of a flag"}, "of the environment", "of a flag", "other users"},
		"none":           {flags{}, "", "", ""},
	} {
		t.Setenv(secret.Join, c.environment)
		var errs bytes.Buffer
		cmd := &cobra.Command{}
		cmd.SetContext(t.Context())
		cmd.SetIn(strings.NewReader("of a pipe"))
		cmd.SetErr(&errs)
		text, err := c.flags.joinToken(cmd)
		if text != c.want || (err != nil) != (c.want == "") || !strings.Contains(errs.String(), c.note) ||
			(c.note == "") != (errs.Len() == 0) {
			t.Errorf("%s: %q, %v, note %q", name, text, err, errs.String())
		}
	}
}
