//go:build linux

package harness

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
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

// HostileCases returns the kind of each hostile far end by its name.
func HostileCases(t *testing.T) map[string]string {
	t.Helper()
	out, err := exec.Command(HostileProgram(t), "list").Output()
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]string{}
	for line := range strings.Lines(string(out)) {
		name, kind, _ := strings.Cut(strings.TrimSpace(line), " ")
		kinds[name] = kind
	}
	if len(kinds) < 350 {
		t.Fatalf("the corpus has %d far ends; it only grows", len(kinds))
	}
	return kinds
}

// HostileKey is the key that native hostile servers share with the commands that measure to them.
const HostileKey = "5eb63bbbe01eeed093cb22bb8f5acdc35eb63bbbe01eeed093cb22bb8f5acdc3"

// hostileVictims are the commands that are tried against each kind of far end. FAR is replaced by its address or
// file, PAGE by a file that may be written.
var hostileVictims = map[string][]string{
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
	"hub": {"agent --join FAR --name victim --listen 127.0.0.1:0 --address 192.0.2.9 --limits LIMITS",
		"--json agent --join FAR --name victim --listen 127.0.0.1:0 --address 192.0.2.9 --limits LIMITS"},
	"ping": {"plan --rate 1gbit --ping FAR", "--json plan --rate 1gbit --ping FAR"},
}

// agentLimits are the limits of the agent that hostile hubs meet. Their orders are beyond them.
const agentLimits = "day-bytes = \"1GB\"\nday-time = \"1m\"\nmost-time = \"5s\"\nmost-rate = \"100mbit\"\n" +
	"peers = [\"192.0.2.0/24\"]\n"

// hubPatience is the time for a hostile hub's attack, which begins when an agent has joined.
const hubPatience = 60 * time.Second

// filePatience is the time for a command that reads a file: it waits for nobody.
const filePatience = 60 * time.Second

// maxResidentBytes limits the memory of a command. A document may have 64 MiB and is in memory twice while it is
// read. diagnose collects its garbage rarely.
var maxResidentBytes = map[string]int64{"record": 512 << 20, "capture": 256 << 20}

// UnsafeOutput describes a control character or a forged line in a program's output. It returns "" if there is
// none.
func UnsafeOutput(said string) string {
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

// HostileServer is a running server of the corpus.
type HostileServer struct {
	Address string // a hub's is the token for its agent
	cmd     *exec.Cmd
	in      io.Closer
	rest    chan string // its output after the address
}

// StartHostile starts a server of the corpus. over is called when it prints that its attack is over.
func StartHostile(program, name string, env []string, over func()) (*HostileServer, error) {
	s := &HostileServer{cmd: exec.Command(program, name), rest: make(chan string, 1)}
	s.cmd.Env = env
	s.cmd.Stderr = os.Stderr
	in, ierr := s.cmd.StdinPipe()
	out, oerr := s.cmd.StdoutPipe()
	if err := errors.Join(ierr, oerr, s.cmd.Start()); err != nil {
		return nil, err
	}
	s.in = in
	lines := bufio.NewReader(out)
	text, err := lines.ReadString('\n')
	s.Address = strings.TrimSpace(text)
	go func() {
		said := ""
		for err == nil {
			text, err = lines.ReadString('\n')
			said += text
			if text == "OVER\n" {
				over()
			}
		}
		s.rest <- said
	}()
	if s.Address == "" {
		s.End()
		return nil, errors.New("it printed no address")
	}
	return s, nil
}

// End ends a server and returns its output after the address.
func (s *HostileServer) End() string {
	s.in.Close()
	killing := time.AfterFunc(10*time.Second, func() { s.cmd.Process.Kill() })
	defer killing.Stop()
	said := <-s.rest
	_ = s.cmd.Wait() // its output has ended
	return said
}

// tryHostileCase runs one command against one far end. The command has to end without a panic, within its memory
// limit, and without control characters or forged lines in its output. After patience it is interrupted and has to
// end.
func tryHostileCase(t *testing.T, program, name, kind, line string, patience time.Duration) {
	t.Helper()
	dir := t.TempDir()
	env := append(os.Environ(), "FULLPIPE_KEY="+HostileKey, "FULLPIPE_STATE="+filepath.Join(dir, "state"),
		"XDG_STATE_HOME="+dir, "SSH_ASKPASS=")
	far := filepath.Join(dir, "far")
	if kind == "hub" {
		patience = hubPatience
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	switch kind {
	case "native", "iperf3", "http", "ndt7", "postgres", "hub":
		server, err := StartHostile(HostileProgram(t), name, env, cancel)
		if err != nil {
			t.Errorf("%s did not come up: %v", name, err)
			return
		}
		defer func() {
			said := server.End()
			if kind == "hub" && !strings.Contains(said, "OVER") && ctx.Err() != nil {
				t.Errorf("%s: its attack did not take place", name)
			}
			if strings.Contains(said, "ADMITTED") {
				t.Errorf("%s: %s", name, said)
			}
		}()
		far = server.Address
	case "ssh":
		script := "#!/bin/sh\nexec " + HostileProgram(t) + " " + name + " \"$@\"\n"
		if err := os.WriteFile(filepath.Join(dir, "ssh"), []byte(script), 0o755); err != nil {
			t.Error(err)
			return
		}
		env = append(env, "PATH="+dir+":"+os.Getenv("PATH"))
	default:
		patience = filePatience
		content, err := exec.Command(HostileProgram(t), name).Output()
		if kind == "journal" {
			far = filepath.Join(dir, "state", "journal-host.json")
		}
		if err := errors.Join(err, os.MkdirAll(filepath.Dir(far), 0o700), os.WriteFile(far, content, 0o600)); err != nil {
			t.Error(err)
			return
		}
	}
	page := filepath.Join(dir, "page.html")
	limits := filepath.Join(dir, "limits.toml")
	if err := os.WriteFile(limits, []byte(agentLimits), 0o600); err != nil {
		t.Error(err)
		return
	}
	args := strings.Fields(strings.NewReplacer("FAR", far, "PAGE", page, "LIMITS", limits).Replace(line))
	if tool := args[0]; tool == "iperf3" {
		host, port, _ := strings.Cut(args[2], ":")
		args = append([]string{tool, "-c", host, "-p", port}, args[3:]...)
	}
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = env
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) }
	cmd.WaitDelay = 60 * time.Second // then it is killed, which is the failure; the machine may be busy
	var out, errs bytes.Buffer
	cmd.Stdout = &out
	cmd.Stderr = &errs
	if err := cmd.Start(); err != nil {
		t.Error(err)
		return
	}
	time.AfterFunc(patience, cancel) // counts from here, since a busy machine starts programs late
	err := cmd.Wait()
	status := cmd.ProcessState.Sys().(syscall.WaitStatus)
	said := errs.String() + out.String()
	attempt := name + ": " + line
	switch {
	case errors.Is(err, exec.ErrWaitDelay), status.Signaled() && status.Signal() == syscall.SIGKILL:
		t.Errorf("%s: an interrupt did not end it: %v", attempt, err)
	case strings.Contains(said, "goroutine ") || strings.Contains(said, "panic:"):
		t.Errorf("%s: %s", attempt, said)
	case len(said) == 0 && !status.Signaled():
		t.Errorf("%s: nothing was said, %v", attempt, err)
	case strings.Contains("native iperf3 ssh postgres", kind) && err == nil && name != "native-result-twice":
		t.Errorf("%s: it is called a success: %s", attempt, said)
	}
	if most := max(maxResidentBytes[kind], 160<<20); cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss<<10 > most {
		t.Errorf("%s: %d MiB", attempt, cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss>>10)
	}
	if problem := UnsafeOutput(said); problem != "" {
		t.Errorf("%s: %s", attempt, problem)
	}
	if text, err := os.ReadFile(page); err == nil && bytes.Contains(text, []byte("<img src=x")) {
		t.Errorf("%s: markup reaches the page", attempt)
	}
}

// TryHostileCases runs one command against each hostile far end, or each command that its kind can meet if all is
// set, and returns how many it ran.
func TryHostileCases(t *testing.T, all bool, patience time.Duration) (tried int) {
	var trying sync.WaitGroup
	places := make(chan struct{}, 64) // most of them only wait
	kinds := HostileCases(t)
	program := Program(t)
	for i, name := range slices.Sorted(maps.Keys(kinds)) {
		kind := kinds[name]
		if kind == "stranger" || kind == "visitor" || kind == "agent" {
			continue
		}
		lines := hostileVictims[kind]
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
				tryHostileCase(t, program, name, kind, line, patience)
			})
		}
	}
	trying.Wait()
	return tried
}
