package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/cli/settings"
	"github.com/fullpipe-net/fullpipe/internal/probe"
	"github.com/fullpipe-net/fullpipe/internal/server"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// mcpSession is `fullpipe mcp` as a process of its own.
type mcpSession struct {
	t     *testing.T
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines chan string // closed at the end of the output
	home  string      // empty, and HOME
	id    int
}

type mcpResult struct {
	Content           []struct{ Type, Text string }
	StructuredContent map[string]any
	IsError           bool
}

// startMCP starts the server, with initialize done.
func startMCP(t *testing.T, env []string, args ...string) *mcpSession {
	t.Helper()
	s := &mcpSession{t: t, home: t.TempDir(), lines: make(chan string, 100)}
	s.cmd = exec.Command(os.Args[0], append([]string{"mcp"}, args...)...)
	s.cmd.Env = append(os.Environ(), asProgram+"=1", settings.Variable+"=", "HOME="+s.home, "XDG_STATE_HOME=",
		"FULLPIPE_STATE="+filepath.Join(s.home, "state"))
	s.cmd.Env = append(s.cmd.Env, env...)
	s.cmd.Stderr = t.Output()
	in := must.Get(s.cmd.StdinPipe())(t)
	s.in = in
	out := must.Get(s.cmd.StdoutPipe())(t)
	must.Do(t, s.cmd.Start())
	t.Cleanup(func() { s.cmd.Process.Kill() })
	go func() {
		lines := bufio.NewScanner(out)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			s.lines <- lines.Text()
		}
		close(s.lines)
	}()
	s.ask("initialize", map[string]any{"protocolVersion": "2025-06-18", "capabilities": struct{}{},
		"clientInfo": map[string]any{"name": "test", "version": "1"}}, nil)
	fmt.Fprintln(s.in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return s
}

// send sends a request and returns its id.
func (s *mcpSession) send(method string, params any) int {
	s.t.Helper()
	s.id++
	text, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": s.id, "method": method, "params": params})
	if err != nil {
		s.t.Fatal(err)
	}
	fmt.Fprintf(s.in, "%s\n", text)
	return s.id
}

// ask sends a request and decodes its result.
func (s *mcpSession) ask(method string, params, result any) {
	s.t.Helper()
	id := s.send(method, params)
	var r struct {
		ID     int
		Error  any
		Result json.RawMessage
	}
	select {
	case line := <-s.lines:
		if err := json.Unmarshal([]byte(line), &r); err != nil || r.ID != id || r.Error != nil {
			s.t.Fatalf("%s: %v: %.400q", method, err, line)
		}
	case <-time.After(2 * time.Minute):
		s.t.Fatalf("%s: no response", method)
	}
	if result == nil {
		return
	}
	if err := json.Unmarshal(r.Result, result); err != nil {
		s.t.Fatal(err)
	}
}

func (s *mcpSession) call(name string, arguments any) (r mcpResult) {
	s.t.Helper()
	s.ask("tools/call", map[string]any{"name": name, "arguments": arguments}, &r)
	for _, part := range r.Content[1:] {
		for line := range strings.SplitSeq(part.Text, "\n") {
			if !strings.HasPrefix(line, "| ") {
				s.t.Errorf("%s: a line without its mark: %q", name, line)
			}
		}
	}
	return r
}

// ends waits for the end of the process, which must be a success without further output.
func (s *mcpSession) ends() {
	s.t.Helper()
	for line := range s.lines {
		s.t.Errorf("left over: %.200s", line)
	}
	done := make(chan error, 1)
	go func() { done <- s.cmd.Wait() }()
	select {
	case err := <-done:
		if err != nil {
			s.t.Error(err)
		}
	case <-time.After(30 * time.Second):
		s.t.Error("it does not end")
	}
}

// serveHere serves fullpipe clients and reports the begin and the end of tests.
func serveHere(t *testing.T) (address, key string, events chan server.Event) {
	t.Helper()
	k := probe.NewKey()
	events = make(chan server.Event, 100)
	far := must.Get(server.New(t.Context(), server.Config{Address: "127.0.0.1:0", Key: k,
		Event: func(e server.Event) { events <- e }}))(t)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- far.Serve(ctx) }()
	t.Cleanup(func() { stop(); <-done })
	return far.Addr().String(), k.String(), events
}

// busyPort returns the target :PORT of a connection within this host that moves payload.
func busyPort(t *testing.T) string {
	t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { l.Close() })
	near := must.Get(net.Dial("tcp", l.Addr().String()))(t)
	far := must.Get(l.Accept())(t)
	go io.Copy(io.Discard, far)
	go func() {
		for {
			if _, err := near.Write(make([]byte, 1000)); err != nil {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
	}()
	t.Cleanup(func() { near.Close(); far.Close() })
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return ":" + port
}

// TestMCP_Tools calls each tool with all of its parameters over standard input and output. Nothing is written.
func TestMCP_Tools(t *testing.T) {
	t.Parallel()
	address, key, _ := serveHere(t)
	dir := t.TempDir()
	capture := must.Get(os.ReadFile("../diagnose/testdata/cases/tiny-response.pcap.zst"))(t)
	must.Do(t, os.WriteFile(filepath.Join(dir, "a.pcap.zst"), capture, 0o600))
	snapshot, err := program(t, "audit", "--collect").Output()
	if err != nil {
		t.Fatal(err)
	}
	must.Do(t, os.WriteFile(filepath.Join(dir, "host.json"), snapshot, 0o600))
	s := startMCP(t, []string{"FULLPIPE_KEY=" + key}, "--files", dir)
	var list struct {
		Tools []struct {
			Name        string
			InputSchema struct {
				Type       string
				Properties map[string]any
			}
			OutputSchema struct {
				Type       string
				Required   []string
				Properties map[string]any
			}
			Annotations struct{ ReadOnlyHint, DestructiveHint bool }
		}
	}
	s.ask("tools/list", struct{}{}, &list)
	calls := map[string]map[string]any{
		"measure": {"peer": address, "direction": "both", "seconds": 0.5, "max_megabytes": 50, "streams": 2,
			"congestion": "", "receive_buffer": "1MiB", "send_buffer": "1MiB"},
		"diagnose": {"file": "a.pcap.zst", "host": "", "port": 80, "top": 1},
		"why":      {"target": busyPort(t), "seconds": 1},
		"explain":  {"name": "receiver-window", "system": "linux"},
		"plan": {"rate": "1gbit", "rtt": "40ms", "jitter": "1ms", "target": "linux-6.1", "role": "sender", "connections": 2,
			"memory": "8GiB", "vpn": "wireguard", "app": "ssh"},
		"predict": {"path": "wan-40ms", "rate": "1gbit", "rtt": "40ms", "loss": "0.01%", "queue": "1bdp",
			"stack": "linux-6.1", "direction": "down", "receive_buffer": "1MiB", "send_buffer": "1MiB", "window": "1MiB",
			"write_size": "64KiB", "congestion": "cubic", "connections": 2, "bytes": "1GB", "app": "ssh"},
		"audit": {"snapshot": "host.json", "rate": "1gbit", "rtt": "40ms", "connections": 2},
	}
	requests := map[string]any{"peer": address, "seconds": 0.5, "requests": "rr", "requests_per_s": 20}
	want := []string{"measure", "diagnose", "why", "explain", "plan", "predict", "audit", "history"}
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
		if !tool.Annotations.ReadOnlyHint || tool.Annotations.DestructiveHint || tool.InputSchema.Type != "object" ||
			tool.OutputSchema.Type != "object" {
			t.Errorf("%+v", tool)
		}
		arguments, known := calls[tool.Name]
		if !known {
			continue
		}
		for name := range tool.InputSchema.Properties {
			_, given := arguments[name]
			if _, other := requests[name]; !given && !(tool.Name == "measure" && other) {
				t.Errorf("%s: the test does not give %s", tool.Name, name)
			}
		}
		if runtime.GOOS != "linux" && tool.Name == "why" {
			continue
		}
		r := s.call(tool.Name, arguments)
		if r.IsError || r.StructuredContent["schema"] != "fullpipe/"+tool.Name+"/v1" {
			t.Errorf("%s: %.600v", tool.Name, r)
		}
		for _, key := range tool.OutputSchema.Required {
			if _, has := r.StructuredContent[key]; !has {
				t.Errorf("%s: the result has no %q", tool.Name, key)
			}
		}
	}
	if r := s.call("measure", requests); r.IsError || r.StructuredContent["requests_per_s"] == nil {
		t.Errorf("requests: %.600v", r)
	}
	if !slices.Equal(names, want) {
		t.Errorf("%v", names)
	}
	if r := s.call("history", struct{}{}); !r.IsError || !strings.Contains(r.Content[1].Text, "no result is stored") {
		t.Errorf("%v", r)
	}
	s.in.Close()
	s.ends()
	err = filepath.WalkDir(s.home, func(path string, _ fs.DirEntry, err error) error {
		if path != s.home {
			t.Errorf("%s was written", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestMCP_KeepsResultsOnRequest checks --record and the tool history.
func TestMCP_KeepsResultsOnRequest(t *testing.T) {
	t.Parallel()
	address, key, _ := serveHere(t)
	s := startMCP(t, []string{"FULLPIPE_KEY=" + key}, "--record")
	s.call("measure", map[string]any{"peer": address, "seconds": 0.5, "max_megabytes": 1})
	r := s.call("history", map[string]any{"peer": address, "hours": 1, "limit": 5})
	if runs, _ := r.StructuredContent["runs"].([]any); len(runs) != 1 {
		t.Errorf("%.600v", r)
	}
	s.in.Close()
	s.ends()
}

// TestMCP_EndsRunningCalls checks that a measurement ends with its cancellation, with the input and with SIGTERM.
func TestMCP_EndsRunningCalls(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(s *mcpSession, id int){
		"input":   func(s *mcpSession, _ int) { s.in.Close() },
		"SIGTERM": func(s *mcpSession, _ int) { s.cmd.Process.Signal(syscall.SIGTERM) },
		"cancelled": func(s *mcpSession, id int) {
			fmt.Fprintf(s.in, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`+"\n", id)
		},
	} {
		if name == "SIGTERM" && runtime.GOOS == "windows" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address, key, events := serveHere(t)
			s := startMCP(t, []string{"FULLPIPE_KEY=" + key})
			id := s.send("tools/call", map[string]any{"name": "measure", "arguments": map[string]any{"peer": address,
				"seconds": 30, "max_megabytes": 10000, "direction": "down"}})
			awaitChild(t, s.cmd.Process.Pid, true)
			time.Sleep(300 * time.Millisecond) // into the transfer
			end(s, id)
			awaitChild(t, s.cmd.Process.Pid, false)
			if name == "cancelled" {
				if r := s.call("explain", map[string]any{"name": "cpu"}); r.IsError {
					t.Errorf("%v", r)
				}
				s.in.Close()
			}
			s.ends()
			for len(events) > 0 {
				<-events
			}
		})
	}
}

// awaitChild waits until a process has a child, or has none. Systems without /proc are not looked at.
func awaitChild(t *testing.T, pid int, want bool) {
	t.Helper()
	tasks := fmt.Sprintf("/proc/%d/task", pid)
	if _, err := os.Stat(tasks); err != nil {
		return
	}
	for until := time.Now().Add(30 * time.Second); time.Now().Before(until); time.Sleep(20 * time.Millisecond) {
		var children string
		threads, _ := os.ReadDir(tasks) // none: it has ended
		for _, one := range threads {
			text, _ := os.ReadFile(filepath.Join(tasks, one.Name(), "children"))
			children += string(text)
		}
		if (children != "") == want {
			return
		}
	}
	t.Errorf("process %d has children: %v is expected", pid, want)
}
