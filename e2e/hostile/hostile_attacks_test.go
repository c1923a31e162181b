//go:build linux

package hostile

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
	"github.com/fullpipe-net/fullpipe/internal/probe"
	"github.com/fullpipe-net/fullpipe/internal/testenv"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// site is a running serve with a parsed log.
type site struct {
	address string
	server  *exec.Cmd
	errs    *bytes.Buffer // standard error, once the server was waited for
	pid     int           // of the program, or of what wraps it
	key     probe.Key
	mu      sync.Mutex // guards clients
	clients int        // admitted clients in the log
}

func newSite(t *testing.T, wrap ...string) *site {
	t.Helper()
	program := harness.Program(t)
	args := append(wrap, program, "serve", "--iperf3", "--listen", "127.0.0.1:0", "--json")
	server := exec.Command(args[0], args[1:]...)
	out, err := server.StdoutPipe()
	s := &site{server: server, errs: &bytes.Buffer{}}
	server.Stderr = s.errs
	if err := errors.Join(err, server.Start()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Process.Kill(); server.Wait() })
	lines := json.NewDecoder(out)
	var ready struct{ Listen, Key string }
	if err := lines.Decode(&ready); err != nil {
		t.Fatal(err)
	}
	s.address, s.pid = ready.Listen, server.Process.Pid
	if s.key, err = probe.ParseKey(ready.Key); err != nil {
		t.Fatal(err)
	}
	go func() {
		for event := (struct{ Event string }{}); lines.Decode(&event) == nil; {
			if event.Event == "client" {
				s.mu.Lock()
				s.clients++
				s.mu.Unlock()
			}
		}
	}()
	return s
}

func (s *site) admitted() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.clients
}

// honest measures once as a client with the key.
func (s *site) honest(t *testing.T) {
	t.Helper()
	c, err := probe.Connect(t.Context(), s.address, s.key)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := transfer.Run(t.Context(), c, transfer.Spec{Direction: transfer.Up, Bytes: 10_000}, nil); err != nil {
		t.Fatal(err)
	}
}

// recorded forwards one client's connection to a server and keeps the data of both.
func recorded(t *testing.T, to string) (address string, said func() (client, server []byte)) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	var client, server bytes.Buffer
	over := make(chan struct{})
	go func() {
		defer close(over)
		near, err := l.Accept()
		if err != nil {
			return
		}
		defer near.Close()
		far, err := net.Dial("tcp", to)
		if err != nil {
			return
		}
		defer far.Close()
		var passing sync.WaitGroup
		pass := func(to, from net.Conn, copy io.Writer) {
			io.Copy(to, io.TeeReader(from, copy))
			to.(*net.TCPConn).CloseWrite()
		}
		passing.Go(func() { pass(far, near, &client) })
		passing.Go(func() { pass(near, far, &server) })
		passing.Wait()
	}()
	return l.Addr().String(), func() ([]byte, []byte) { <-over; return client.Bytes(), server.Bytes() }
}

// TestRecordedHandshakesAdmitNobody replays a client's data to a server, whole, cut, at once or in step with the
// server's replies: nobody is admitted. A replay of a server's data deceives no client.
func TestRecordedHandshakesAdmitNobody(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	through, said := recorded(t, s.address)
	c, err := probe.Connect(t.Context(), through, s.key)
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	client, server := said()
	if len(client) < 300 || len(server) < 300 || s.admittedAfter(t, 1) != 1 {
		t.Fatalf("%d and %d bytes were recorded, %d clients admitted", len(client), len(server), s.admitted())
	}
	first := probe.PrefaceSize
	for _, steps := range [][][]byte{{client}, {client[:first], client[first:]}, {client[:len(client)/2],
		client[len(client)/2:]}, {client, client}} {
		conn, err := net.Dial("tcp", s.address)
		if err != nil {
			t.Fatal(err)
		}
		conn.SetDeadline(time.Now().Add(20 * time.Second))
		for i, step := range steps {
			conn.Write(step)
			if i == 0 && len(steps) > 1 {
				conn.Read(make([]byte, 1)) // the server's answer to the marker
			}
		}
		conn.(*net.TCPConn).CloseWrite()
		answer, err := io.ReadAll(conn)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("the server keeps a replaying client")
		}
		if len(answer) > len(server) {
			t.Errorf("%d bytes are answered to a recorded handshake, %d to the one recorded", len(answer), len(server))
		}
		conn.Close()
	}
	s.honest(t) // its "client" comes behind all that the log had to say
	if n := s.admittedAfter(t, 2); n != 2 {
		t.Errorf("%d clients were admitted; two had the key", n)
	}

	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		io.ReadFull(conn, make([]byte, first))
		conn.Write(server)
		io.Copy(io.Discard, conn)
	}()
	if _, err := probe.Connect(t.Context(), l.Addr().String(), s.key); err == nil {
		t.Error("a client takes a recording for the server")
	}
}

// admittedAfter waits until the log reports n clients.
func (s *site) admittedAfter(t *testing.T, n int) int {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); s.admitted() < n && time.Now().Before(deadline); {
		time.Sleep(5 * time.Millisecond)
	}
	return s.admitted()
}

// TestSpoofedDatagramsReachNobody sends datagrams with forged source addresses to a server's UDP port: no traffic
// reaches those addresses, and a UDP test works meanwhile.
func TestSpoofedDatagramsReachNobody(t *testing.T) {
	t.Parallel()
	program := harness.Program(t)
	script := `ip link set lo up
"$F" serve --iperf3 --quiet --listen 127.0.0.1:5201 & server=$!
trap 'kill $server; wait $server' EXIT
until "$F" measure iperf3://127.0.0.1:5201 --udp --rate 1mbit -t 300ms >/dev/null 2>&1; do kill -0 $server; done
"$H" udp-spoof 127.0.0.1:5201 127.0.0.3:4000
"$F" measure iperf3://127.0.0.1:5201 --udp --rate 1mbit -t 300ms >/dev/null
"$F" measure fullpipe://127.0.0.1:5201 --udp --rate 1mbit -t 300ms >/dev/null`
	cmd := exec.CommandContext(t.Context(), "unshare", "-Urn", "sh", "-euc", script)
	cmd.Env = append(os.Environ(), "F="+program, "H="+harness.HostileProgram(t), "FULLPIPE_KEY="+harness.HostileKey,
		"FULLPIPE_STATE="+
			t.TempDir(), "XDG_STATE_HOME="+t.TempDir())
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil || strings.TrimSpace(string(out)) != "0" {
		t.Errorf("%v: the victim got %q bytes; %s", err, out, errs.String())
	}
}

// TestClocksThatDiffer checks that a test gives the same figures when the clocks of the two ends differ by days, as
// after a suspend (the monotonic one and the one since boot).
func TestClocksThatDiffer(t *testing.T) {
	t.Parallel()
	testenv.Need(t, testenv.TimeNamespace)
	s := newSite(t, "unshare", "-T", "--fork", "--kill-child", "--boottime", "2000000", "--monotonic", "1000000")
	program := harness.Program(t)
	for _, args := range []string{"fullpipe://FAR -d up", "fullpipe://FAR -d down",
		"fullpipe://FAR --udp --rate 5mbit -d up",
		"fullpipe://FAR --udp --rate 5mbit -d down", "iperf3://FAR --udp --rate 5mbit -d up", "iperf3://FAR -d down"} {
		line := append([]string{"measure", "--json", "--write-rate", "20mbit", "-t", "1s"},
			strings.Fields(strings.Replace(args, "FAR", s.address, 1))...)
		if strings.Contains(args, "udp") {
			line = slices.Delete(line, 2, 4)
		}
		cmd := exec.CommandContext(t.Context(), program, line...)
		cmd.Env = append(os.Environ(), "FULLPIPE_KEY="+s.key.String(), "XDG_STATE_HOME="+t.TempDir())
		out, err := cmd.Output()
		var doc struct {
			Directions []struct {
				GoodputBps float64 `json:"goodput_bps"`
				Duration   float64 `json:"duration_s"`
				Jitter     float64 `json:"jitter_s"`
			}
		}
		if uerr := json.Unmarshal(out, &doc); err != nil || uerr != nil || len(doc.Directions) == 0 {
			t.Errorf("%s: %v, %v: %s", args, err, uerr, out)
			continue
		}
		for _, d := range doc.Directions {
			if d.GoodputBps <= 0 || d.GoodputBps > 25e6 || d.Duration > 30 || d.Jitter > 10 {
				t.Errorf("%s: %+v", args, d)
			}
		}
	}
}
