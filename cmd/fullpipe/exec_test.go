package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/cli/console"
	"github.com/fullpipe-net/fullpipe/internal/cli/exit"
	"github.com/fullpipe-net/fullpipe/internal/peer"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/steer"
	"github.com/fullpipe-net/fullpipe/internal/store"
	"github.com/fullpipe-net/fullpipe/internal/testenv"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

func TestExecRules(t *testing.T) {
	f := execFlags{all: socketFlags{send: "16MiB", receive: "auto", congestion: "bbr"},
		rules: []string{"10.0.0.0/8,receive-buffer=4MiB,pacing=100mbit", "2001:db8::1,mss=1200,window=64KiB"}}
	got, err := f.parse()
	want := []steer.Rule{
		{Socket: transfer.Socket{SendBuffer: 16 << 20, Congestion: "bbr"}},
		{To: netip.MustParsePrefix("10.0.0.0/8"), Socket: transfer.Socket{ReceiveBuffer: 4 << 20, PacingBps: 100e6}},
		{To: netip.MustParsePrefix("2001:db8::1/128"), Socket: transfer.Socket{MSS: 1200, Clamp: 64 << 10}},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	for text, message := range map[string]string{
		"host,mss=1":               "neither an address nor a prefix",
		"10.0.0.1":                 "sets nothing",
		"10.0.0.1,buffer=1":        "KEY=VALUE",
		"10.0.0.1,mss":             "KEY=VALUE",
		"10.0.0.1,send-buffer=2x":  "unknown unit",
		"10.0.0.1,send-buffer=0":   "not between",
		"10.0.0.1,send-buffer=2GB": "not between",
		"10.0.0.1,pacing=fast":     "not a number",
	} {
		f := execFlags{rules: []string{text}}
		var usage *exit.UsageError
		if _, err := f.parse(); !errors.As(err, &usage) || !strings.Contains(err.Error(), message) || usage.Try == "" {
			t.Errorf("--rule %s: %v, want %q and what to try", text, err, message)
		}
	}
	for want, f := range map[string]execFlags{
		"--pacing":                 {all: socketFlags{pacing: "40gbit"}},
		"--congestion":             {all: socketFlags{congestion: "longer-than-any-name"}},
		"--rule 10.0.0.0/8,pacing": {rules: []string{"10.0.0.0/8,pacing=40gbit"}},
		"--rule ::/0":              {all: socketFlags{mss: "1200"}, rules: []string{"::/0,mss=1300"}},
	} {
		_, err := f.parse()
		if usage, is := errors.AsType[*exit.UsageError](err); !is || usage.Argument != want || usage.Try == "" {
			t.Errorf("%v, want it to name %s", err, want)
		}
	}
}

func TestExecKeepsSecretsFromPrograms(t *testing.T) {
	key, url := peer.KeyVariable+"="+strings.Repeat("ab", 32), store.URLVariable+"=postgres://u:secret@127.0.0.1/d"
	if got := peer.WithoutSecrets([]string{"A=1", key, peer.KeyVariable + "S=kept", url, "B=2"}); !reflect.DeepEqual(got,
		[]string{"A=1", peer.KeyVariable + "S=kept", "B=2"}) {
		t.Errorf("%q", got)
	}
	testenv.Need(t, testenv.Root, testenv.BPF, testenv.Cgroup)
	cmd := program(t, "exec", "--", "sh", "-c", "env; tr '\\0' '\\n' </proc/$$/environ")
	cmd.Env = append(cmd.Env, key, url)
	out, err := cmd.Output()
	if err != nil || strings.Contains(string(out), peer.KeyVariable) || strings.Contains(string(out), "secret") ||
		!strings.Contains(string(out), "PATH=") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestLabKeepsTheStoreFromPrograms: both ends of a lab share the key by their environment.
func TestLabKeepsTheStoreFromPrograms(t *testing.T) {
	t.Parallel()
	testenv.Need(t, testenv.Lab)
	cmd := program(t, "lab", "lan-100m", "--far", "env >&2", "--", "sh", "-c", "env; tr '\\0' '\\n' </proc/$$/environ")
	cmd.Env = append(cmd.Env, peer.KeyVariable+"=shared", store.URLVariable+"=postgres://u:secret@127.0.0.1/d")
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if all := string(out) + errs.String(); err != nil || strings.Contains(all, "secret") ||
		!strings.Contains(string(out), peer.KeyVariable+"=shared\n") {
		t.Errorf("%v\n%s", err, all)
	}
}

func TestExecStatusAndReport(t *testing.T) {
	testenv.Need(t, testenv.Root, testenv.BPF, testenv.Cgroup)
	file := filepath.Join(t.TempDir(), "report.json")
	for _, tt := range []struct {
		command []string
		status  int
	}{
		{[]string{"sh", "-c", "echo to standard output; exit 7"}, 7},
		{[]string{"true"}, 0},
		{[]string{"sh", "-c", "kill -9 $$"}, 137},
		{[]string{"no-such-program"}, 127},
		{[]string{"/"}, 126},
	} {
		os.Remove(file)
		var out, errs strings.Builder
		args := append([]string{"exec", "--report", file, "--"}, tt.command...)
		if got := run(context.Background(), args, console.NewStreams(nil, &out, &errs)); got != tt.status {
			t.Errorf("%v: status %d, want %d\n%s", tt.command, got, tt.status, errs.String())
		}
		if tt.status == 7 && out.String() != "to standard output\n" {
			t.Errorf("standard output is the program's alone: %q", out.String())
		}
		text, err := os.ReadFile(file)
		if ran := tt.status < 126 || tt.status > 127; !ran {
			if !strings.HasPrefix(errs.String(), "fullpipe: ") {
				t.Errorf("%v: no word about why: %q", tt.command, errs.String())
			}
			continue
		}
		var doc record.Exec
		if err := errors.Join(err, json.Unmarshal(text, &doc)); err != nil || doc.Status != tt.status ||
			doc.Schema != "fullpipe/exec/v1" {
			t.Errorf("%v: report %s, %v", tt.command, text, err)
		}
	}
}
