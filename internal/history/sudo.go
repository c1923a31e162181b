package history

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/user"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/cli/console"
	"github.com/fullpipe-net/fullpipe/internal/config"
	"github.com/fullpipe-net/fullpipe/internal/secret"
	"github.com/fullpipe-net/fullpipe/internal/store"
)

// BehindSudo is the uid of the user who started this with sudo; "" is nobody.
func BehindSudo() string {
	if uid := os.Getenv("SUDO_UID"); uid != "0" && os.Geteuid() == 0 && os.Getenv(store.Variable) == "" &&
		os.Getenv("FULLPIPE_STATE") == "" {
		return uid
	}
	return ""
}

// BecomeCaller drops root's rights for commands that read or write the history of the user who called sudo, so that no
// file there becomes root's.
func BecomeCaller(cmd *cobra.Command) error {
	uid := BehindSudo()
	if top := topLevel(cmd); uid == "" || top != "history" && top != "recheck" && top != "ui" {
		return nil
	}
	caller, err := user.LookupId(uid)
	if err == nil {
		err = become(caller)
	}
	if err != nil {
		return fmt.Errorf("the history of the user who called sudo, SUDO_UID=%s: %w", uid, err)
	}
	for _, name := range []string{"SUDO_UID", "XDG_STATE_HOME", "XDG_CONFIG_HOME"} {
		os.Unsetenv(name)
	}
	return os.Setenv("HOME", caller.HomeDir)
}

// topLevel returns the name of the command's ancestor, or of the command itself, directly below the root.
func topLevel(cmd *cobra.Command) string {
	for ; cmd.HasParent() && cmd.Parent().HasParent(); cmd = cmd.Parent() {
	}
	return cmd.Name()
}

// KeepAs stores the record in the history of the user who called sudo.
func KeepAs(ctx context.Context, cmd *cobra.Command, uid string, doc, samples []byte) error {
	var one map[string]json.RawMessage
	if err := json.Unmarshal(doc, &one); err != nil {
		return err
	}
	if len(samples) > 0 {
		one["samples"] = samples
	}
	line, err := json.Marshal(one)
	if err != nil {
		return err
	}
	return asBehindSudo(ctx, cmd, uid, line)
}

// asBehindSudo imports documents in a process of the user who called sudo. Root thus creates no files in a home
// directory and follows no symbolic links there.
func asBehindSudo(ctx context.Context, cmd *cobra.Command, uid string, documents []byte) error {
	caller, err := user.LookupId(uid)
	if err != nil {
		return err
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	child := exec.CommandContext(ctx, program, "history", "import", "--own", "-")
	child.Stdin = bytes.NewReader(documents)
	child.Env = []string{"HOME=" + caller.HomeDir, "PATH=" + os.Getenv("PATH")}
	if url, says := StoreURL(cmd, &config.File{}); says != "history.store" { // the child reads the configuration itself
		child.Env = append(child.Env, secret.Store+"="+url)
	}
	child.Dir = "/"
	if err := asUser(child, caller); err != nil {
		return err
	}
	out, err := child.CombinedOutput()
	out = bytes.TrimSpace(out)
	if err != nil {
		return fmt.Errorf("as %s: %w: %s", caller.Username, err, out)
	}
	if len(out) > 0 {
		console.Note(cmd, "%s", out)
	}
	return nil
}
