package cli

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/cli/console"
	"github.com/fullpipe-net/fullpipe/internal/cli/exit"
	"github.com/fullpipe-net/fullpipe/internal/cli/settings"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// TestMayDefaultNamesFlagsThatExist keeps the list of defaults from naming nothing.
func TestMayDefaultNamesFlagsThatExist(t *testing.T) {
	root := NewRoot(console.NewStreams(strings.NewReader(""), &bytes.Buffer{}, &bytes.Buffer{}))
	for command, flags := range settings.MayDefault {
		cmd, _, err := root.Find([]string{command})
		if err != nil {
			t.Error(err)
			continue
		}
		for _, flag := range flags {
			if cmd.Flags().Lookup(flag) == nil {
				t.Errorf("%s has no --%s", command, flag)
			}
		}
	}
}

// withConfig runs a command line with a configuration.
func withConfig(t *testing.T, text, line string) (status int, out, errs string) {
	t.Helper()
	dir := t.TempDir()
	name := filepath.Join(dir, "config.toml")
	must.Do(t, os.WriteFile(name, []byte(text), 0o600))
	t.Setenv(settings.Variable, name)
	t.Setenv("FULLPIPE_STATE", dir)
	var stdout, stderr bytes.Buffer
	status = run(context.Background(), strings.Fields(line), console.NewStreams(strings.NewReader(""), &stdout, &stderr))
	return status, stdout.String(), stderr.String()
}

func TestConfigurationIsUsedAndStrict(t *testing.T) {
	const far = "[far.office]\npeer = \"fullpipe://127.0.0.1:1\"\nkey-file = \"nowhere.key\"\n"
	for _, c := range []struct{ text, line, want string }{
		{far, "measure office", "nowhere.key"},
		{far, "tune office", "nowhere.key"},
		{far, "exec --to office -- true", "nowhere.key"},
		{far, "measure -c office", "nowhere.key"},
		{far, "measure office --key 1", "--key: "}, // the command line goes first
		{far + "[defaults]\ntime = \"soon\"\n", "measure office", "defaults: --time of measure: "},
		{far + "[defaults]\ntime = \"0s\"\n", "measure office", "no time to measure in"},
		{far + "[defaults.measure]\nparallel = 0\n", "measure office", "0 connections"},
		{far + "[defaults]\napply = true\n", "tune office", "no flag that may have a default"},
		{far + "[defaults]\nmax-tests = -3\n", "serve --listen 127.0.0.1:0", "--max-tests"},
		{"[fars]\n", "measure 127.0.0.1:1", "line 1: there is no setting fars (far?)"},
	} {
		status, _, errs := withConfig(t, c.text, c.line)
		if status == 0 || !strings.Contains(errs, c.want) {
			t.Errorf("%s\n%s: %d %s", c.text, c.line, status, errs)
		}
	}
	if status, _, errs := withConfig(t, "[fars]\n", "explain cpu"); status != 0 {
		t.Errorf("a command that needs no configuration: %s", errs)
	}
	// A default is no flag that was given: it does not contradict one.
	_, _, errs := withConfig(t, "[defaults]\ndirection = \"up\"\n", "measure 127.0.0.1:1 --bidir")
	if !strings.Contains(errs, "refused") {
		t.Errorf("--bidir over a default direction: %s", errs)
	}
}

// TestTheConfigurationsDocumentIsTrue reads the example that users copy.
func TestTheConfigurationsDocumentIsTrue(t *testing.T) {
	doc := must.Get(os.ReadFile("../../docs/configuration.md"))(t)
	_, rest, _ := strings.Cut(string(doc), "```toml\n")
	example, _, ok := strings.Cut(rest, "```")
	if !ok {
		t.Fatal("no example")
	}
	status, _, errs := withConfig(t, example, "measure backup --time 1s")
	if status != exit.Misused || !strings.Contains(errs, "backup.key") { // the example's key is nowhere
		t.Errorf("%d %s", status, errs)
	}
	for command, flags := range settings.MayDefault {
		for _, flag := range flags {
			if !strings.Contains(string(doc), "`"+flag+"`") {
				t.Errorf("docs/configuration.md does not name %s of %s", flag, command)
			}
		}
	}
}

// completed are the values that a shell would offer.
func completed(t *testing.T, line string) []string {
	t.Helper()
	var out, errs bytes.Buffer
	args := append([]string{cobra.ShellCompRequestCmd}, strings.Split(line, " ")...)
	if status := run(context.Background(), args, console.NewStreams(strings.NewReader(""), &out, &errs)); status != 0 {
		t.Errorf("%s: %s", line, errs.String())
	}
	var values []string
	for l := range strings.Lines(out.String()) {
		if value, _, _ := strings.Cut(strings.TrimSpace(l), "\t"); value != "" && !strings.HasPrefix(value, ":") {
			values = append(values, value)
		}
	}
	return values
}

func TestValuesAreCompleted(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "config.toml")
	must.Do(t, os.WriteFile(name, []byte("[far.office]\npeer = \"192.0.2.1\"\n"), 0o600))
	t.Setenv(settings.Variable, name)
	t.Setenv("FULLPIPE_STATE", dir)
	for line, want := range map[string]string{
		"measure off": "office", "measure lab:wan": "lab:wan-40ms", "tune --goal ": "fair",
		"iperf3 --dscp ": "af11", "measure --dscp ": "ef", "iperf3 --congestion ": "reno", "plan --target ": "linux",
		"plan --end ": "near", "plan --app ": "ssh", "plan --vpn ": "wireguard", "plan --format ": "compose",
		"plan --role ": "sender", "predict --stack ": "windows-2000", "explain rec": "receiver-window",
		"explain net.ipv4.tcp_r": "net.ipv4.tcp_rmem", "explain --system ": "linux", "lab wan": "wan-40ms",
		"measure --direction ": "both", "measure --fail-on cong": "congestion/policer", "iperf3 --format ": "K",
		"audit --collector ": "powershell", "audit --app ": "quic-go", "sweep --congestion ": "reno",
	} {
		if values := completed(t, line); !slices.Contains(values, want) {
			t.Errorf("%s offers %q", line, values[:min(len(values), 12)])
		}
	}
}

// Results until an interrupt are kept, with a configuration and without one.
func TestMeasure_KeepsInterruptedResult(t *testing.T) {
	for _, configured := range []bool{true, false} {
		dir := t.TempDir()
		name := filepath.Join(dir, "config.toml")
		must.Do(t, os.WriteFile(name, []byte("[defaults]\ntime = \"1m\"\n"), 0o600))
		t.Setenv(settings.Variable, name)
		if !configured {
			os.Unsetenv(settings.Variable)
			t.Setenv("XDG_CONFIG_HOME", filepath.Join(dir, "nothing"))
		}
		t.Setenv("FULLPIPE_STATE", dir)
		ctx, interrupt := context.WithCancel(t.Context())
		site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			for n := 0; r.Method == http.MethodGet; n++ {
				if _, err := w.Write(make([]byte, 1<<20)); err != nil {
					return
				}
				if n == 16 {
					interrupt()
				}
			}
		}))
		var out, errs bytes.Buffer
		status := run(ctx, []string{"measure", site.URL}, console.NewStreams(strings.NewReader(""), &out, &errs))
		site.Close()
		var kept bytes.Buffer
		run(t.Context(), []string{"history", "--json"}, console.NewStreams(strings.NewReader(""), &kept, &errs))
		if status != exit.Interrupted || !strings.Contains(kept.String(), `"outcome": "interrupted"`) {
			t.Errorf("configured %v: status %d\n%s%s%s", configured, status, out.String(), errs.String(), kept.String())
		}
	}
}
