//go:build linux

package e2e

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unicode"
)

// hostileOnce builds the program that plays all hostile far ends (see its list).
var hostileOnce = builds("hostile", "./hostile", &hostileBuilt)

// hostileBuilt says whether any test asked for it.
var hostileBuilt bool

func hostileProgram(t *testing.T) string {
	t.Helper()
	path, err := hostileOnce()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// farEnds are the corpus, each name's kind.
func farEnds(t *testing.T) map[string]string {
	t.Helper()
	out, err := exec.Command(hostileProgram(t), "list").Output()
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]string{}
	for line := range strings.Lines(string(out)) {
		name, kind, _ := strings.Cut(strings.TrimSpace(line), " ")
		kinds[name] = kind
	}
	if len(kinds) < 265 {
		t.Fatalf("the corpus has %d far ends; it only grows", len(kinds))
	}
	return kinds
}

// hostileKey is what native far ends of the corpus share with their victims.
const hostileKey = "5eb63bbbe01eeed093cb22bb8f5acdc35eb63bbbe01eeed093cb22bb8f5acdc3"

// victims are the commands that a kind's far ends are tried against; FAR stands for the
// address or the file, PAGE for a file that may be written.
var victims = map[string][]string{
	"native": {"measure fullpipe://FAR -t 300ms -d up --write-rate 20mbit", "--json measure fullpipe://FAR -t 300ms " +
		"-d down --write-rate 20mbit", "measure fullpipe://FAR --udp --rate 1mbit -t 300ms -d up"},
	"iperf3": {"measure iperf3://FAR -t 1s -d up --write-rate 20mbit", "--json measure iperf3://FAR -t 1s -d down",
		"iperf3 -c FAR -t 1 -b 20M", "measure iperf3://FAR --udp --rate 1mbit -t 1s -d up"},
	"http": {"measure http://FAR/x -t 300ms", "--json measure http://FAR/x -t 300ms"},
	"ndt7": {"measure ndt7://FAR -t 300ms -d down", "--json measure ndt7://FAR -t 300ms -d up",
		"measure ndt7://FAR -t 300ms -i 100ms"},
	"ssh": {"measure ssh://nowhere.invalid -t 300ms", "--json measure --tunnel ssh://nowhere.invalid -t 300ms"},
	"postgres": {"history --store postgres://u:hunter2@FAR/d?sslmode=disable",
		"--json history changes --store postgres://u:hunter2@FAR/d?sslmode=disable"},
	"capture": {"diagnose FAR", "--json diagnose FAR --html PAGE"},
	"plan":    {"apply --dry-run FAR", "--json apply --dry-run FAR", "show FAR"},
	"journal": {"status", "--json status"},
	"record": {"show FAR", "--json show FAR", "show FAR --html PAGE", "plan --path FAR", "history import FAR",
		"show FAR --anonymize"},
	"snapshot": {"audit FAR", "--json audit FAR"},
	"ping":     {"plan --rate 1gbit --ping FAR", "--json plan --rate 1gbit --ping FAR"},
}

// mostResident bounds the memory of a command whatever the far end says. A document may
// have 64 MiB and is in memory twice while it is read.
var mostResident = map[string]int64{"record": 512 << 20}

// obeyed says what of a program's output a terminal would obey, or who reads lines believe;
// "" is nothing.
func obeyed(said string) string {
	if at := strings.IndexFunc(said, func(r rune) bool {
		return r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp))
	}); at >= 0 {
		return fmt.Sprintf("a control passes: %q", said[max(0, at-80):min(len(said), at+20)])
	}
	if strings.Contains(said, "\nFORGED") {
		return fmt.Sprintf("a line is forged: %q", said)
	}
	return ""
}

// attacked runs one command against one far end and holds it to what every command owes:
// an end, no panic, bounded memory, and no control characters or forged lines on either
// stream. Where it is still waiting after patience it is interrupted, and has to end.
func attacked(t *testing.T, name, kind, line string, patience time.Duration) {
	t.Helper()
	program, err := fullpipe()
	if err != nil {
		t.Error(err)
		return
	}
	dir := t.TempDir()
	env := append(os.Environ(), "FULLPIPE_KEY="+hostileKey, "FULLPIPE_STATE="+filepath.Join(dir, "state"),
		"XDG_STATE_HOME="+dir, "SSH_ASKPASS=")
	far := filepath.Join(dir, "far")
	switch kind {
	case "native", "iperf3", "http", "ndt7", "postgres":
		server := exec.Command(hostileProgram(t), name)
		server.Env = env
		server.Stderr = os.Stderr
		in, ierr := server.StdinPipe()
		out, oerr := server.StdoutPipe()
		if err := errors.Join(ierr, oerr, server.Start()); err != nil {
			t.Error(err)
			return
		}
		defer server.Wait()
		defer server.Process.Kill()
		defer in.Close()
		text, err := bufio.NewReader(out).ReadString('\n')
		if err != nil {
			t.Errorf("%s did not come up: %v", name, err)
			return
		}
		far = strings.TrimSpace(text)
	case "ssh":
		script := "#!/bin/sh\nexec " + hostileProgram(t) + " " + name + " \"$@\"\n"
		if err := os.WriteFile(filepath.Join(dir, "ssh"), []byte(script), 0o755); err != nil {
			t.Error(err)
			return
		}
		env = append(env, "PATH="+dir+":"+os.Getenv("PATH"))
	default:
		content, err := exec.Command(hostileProgram(t), name).Output()
		if kind == "journal" {
			far = filepath.Join(dir, "state", "journal-host.json")
		}
		if err := errors.Join(err, os.MkdirAll(filepath.Dir(far), 0o700), os.WriteFile(far, content, 0o600)); err != nil {
			t.Error(err)
			return
		}
	}
	page := filepath.Join(dir, "page.html")
	args := strings.Fields(strings.NewReplacer("FAR", far, "PAGE", page).Replace(line))
	if tool := args[0]; tool == "iperf3" {
		host, port, _ := strings.Cut(args[2], ":")
		args = append([]string{tool, "-c", host, "-p", port}, args[3:]...)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = env
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) }
	cmd.WaitDelay = 60 * time.Second // then it is killed, which is the failure; the machine may be busy
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		t.Error(err)
		return
	}
	time.AfterFunc(patience, cancel) // counts from here, since a busy machine starts programs late
	err = cmd.Wait()
	status := cmd.ProcessState.Sys().(syscall.WaitStatus)
	said := errs.String() + out.String()
	what := name + ": " + line
	switch {
	case errors.Is(err, exec.ErrWaitDelay), status.Signaled() && status.Signal() == syscall.SIGKILL:
		t.Errorf("%s: an interrupt did not end it: %v", what, err)
	case strings.Contains(said, "goroutine ") || strings.Contains(said, "panic:"):
		t.Errorf("%s: %s", what, said)
	case len(said) == 0 && kind != "record" && !status.Signaled():
		t.Errorf("%s: nothing was said, %v", what, err)
	case strings.Contains("native iperf3 ssh postgres", kind) && err == nil && name != "native-result-twice":
		t.Errorf("%s: it is called a success: %s", what, said)
	}
	if most := max(mostResident[kind], 160<<20); cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss<<10 > most {
		t.Errorf("%s: %d MiB", what, cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss>>10)
	}
	if problem := obeyed(said); problem != "" {
		t.Errorf("%s: %s", what, problem)
	}
	if text, err := os.ReadFile(page); err == nil && bytes.Contains(text, []byte("<img src=x")) {
		t.Errorf("%s: markup reaches the page", what)
	}
}

// tryAll tries every far end that is met by a command against one of its victims, in turn,
// or against all of them.
func tryAll(t *testing.T, all bool, patience time.Duration) (tried int) {
	var trying sync.WaitGroup
	places := make(chan struct{}, 64) // most of them only wait
	kinds := farEnds(t)
	for i, name := range slices.Sorted(maps.Keys(kinds)) {
		kind := kinds[name]
		if kind == "stranger" || kind == "visitor" {
			continue
		}
		lines := victims[kind]
		if len(lines) == 0 {
			t.Fatalf("nothing meets %s", name)
		}
		if !all {
			lines = lines[i%len(lines):][:1]
		}
		for _, line := range lines {
			tried++
			places <- struct{}{}
			trying.Go(func() {
				defer func() { <-places }()
				attacked(t, name, kind, line, patience)
			})
		}
	}
	trying.Wait()
	return tried
}

// TestHostileFarEnds tries each of them; who still waits after a moment is interrupted.
func TestHostileFarEnds(t *testing.T) {
	t.Parallel()
	t.Logf("%d commands", tryAll(t, false, time.Second))
}
