package autobuf

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/lab"
	"github.com/fullpipe-net/fullpipe/internal/link"
	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/testenv"
)

func TestMain(m *testing.M) {
	lab.Engine()
	if job := os.Getenv("AUTOBUF_TEST_JOB"); job != "" {
		if err := work(job); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// order is the task of a program in the lab, and outcome its result.
type order struct {
	Plain bool // net.Dialer and net.ListenConfig
	Config
	Bytes int64
}

type outcome struct {
	Seconds float64 // from the first byte written to the last one read at the far end
	Send    int     // send buffer at the end, as granted
	Log     string
}

// sharedText is a log that is read while autobuf still follows the connection.
type sharedText struct {
	mu   sync.Mutex // guards text
	text bytes.Buffer
}

func (s *sharedText) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(b)
}

func (s *sharedText) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// work is the program at either end of a lab: the near one sends, the far one receives and then sends one byte.
func work(job string) error {
	var o order
	if err := json.Unmarshal([]byte(os.Getenv("AUTOBUF_TEST_ORDER")), &o); err != nil {
		return err
	}
	var log sharedText
	o.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	if job == "far" {
		return receiveAll(o)
	}
	d := Dialer{Config: o.Config}
	dial := d.Dial
	if o.Plain {
		dial = (&net.Dialer{}).Dial
	}
	conn, err := dial("tcp", net.JoinHostPort(os.Getenv("FULLPIPE_FAR"), "9000"))
	if err != nil {
		return err
	}
	start := time.Now()
	if _, err := io.Copy(conn, io.LimitReader(zeros{}, o.Bytes)); err != nil {
		return err
	}
	var out outcome
	if raw, err := rawConn(conn); err == nil {
		out.Send, _, _ = socket.Buffers(raw)
	}
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		return err
	}
	if _, err := io.ReadFull(conn, make([]byte, 1)); err != nil {
		return err
	}
	out.Seconds, out.Log = time.Since(start).Seconds(), log.String()
	conn.Close()
	return json.NewEncoder(os.Stdout).Encode(out)
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { return len(b), nil }

func receiveAll(o order) error {
	lc := ListenConfig{Config: o.Config}
	listen := lc.Listen
	if o.Plain {
		listen = (&net.ListenConfig{}).Listen
	}
	l, err := listen(context.Background(), "tcp", ":9000")
	if err != nil {
		return err
	}
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer c.Close()
			if _, err := io.Copy(io.Discard, c); err == nil {
				c.Write([]byte{1})
			}
		}()
	}
}

// send runs one transfer through a lab.
func send(t testing.TB, l *lab.Lab, o order) outcome {
	t.Helper()
	var out, problems bytes.Buffer
	status, err := l.Near.Run(lab.Command{Args: []string{"/proc/self/exe"}, Env: env(t, "near", o), Stdout: &out,
		Stderr: &problems})
	var got outcome
	if err == nil && status != 0 {
		err = fmt.Errorf("status %d: %s", status, &problems)
	}
	if err == nil {
		err = json.Unmarshal(out.Bytes(), &got)
	}
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func env(t testing.TB, job string, o order) []string {
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return []string{"AUTOBUF_TEST_JOB=" + job, "AUTOBUF_TEST_ORDER=" + string(text)}
}

// startLab starts a lab with the receiving program at its far end.
func startLab(t testing.TB, path string, far order) *lab.Lab {
	t.Helper()
	testenv.Need(t, testenv.Lab)
	p, err := link.Parse(path)
	if err != nil {
		t.Fatal(err)
	}
	l, err := lab.Start(context.Background(), lab.Config{Path: p})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	if _, err := l.Far.Start(lab.Command{Args: []string{"/proc/self/exe"}, Env: env(t, "far", far),
		Stderr: os.Stderr}); err != nil {
		t.Fatal(err)
	}
	for {
		listening, err := l.Far.Listening()
		if err != nil {
			t.Fatal(err)
		}
		if listening {
			return l
		}
	}
}

// narrow limits the near host's automatic send buffers to 64 KiB.
func narrow(t testing.TB, l *lab.Lab) {
	t.Helper()
	if _, err := l.Near.Output("sh", "-c", "echo 4096 16384 65536 >/proc/sys/net/ipv4/tcp_wmem"); err != nil {
		t.Fatal(err)
	}
}

func TestTuner_GrowsBuffers(t *testing.T) {
	t.Parallel()
	l := startLab(t, "rate=20mbit,rtt=100ms,queue=1bdp,stack=linux-6.18", order{Plain: true})
	narrow(t, l)
	got := send(t, l, order{Bytes: 2 << 20})
	if got.Send <= 65536 || !strings.Contains(got.Log, "too small") {
		t.Errorf("unknown path: the send buffer ended at %d\n%s", got.Send, got.Log)
	}
	stated := Config{Path: Path{Bps: 20e6, RTT: 100 * time.Millisecond}}
	got = send(t, l, order{Bytes: 1 << 20, Config: stated})
	if want := 2 * stated.Path.Window(); got.Send < want {
		t.Errorf("stated path: the send buffer ended at %d, want at least %d\n%s", got.Send, want, got.Log)
	}
}

func TestTuner_WithoutWindowScaling(t *testing.T) {
	t.Parallel()
	l := startLab(t, "rate=20mbit,rtt=100ms,strip=wscale,stack=linux-6.18", order{Plain: true})
	narrow(t, l)
	got := send(t, l, order{Bytes: 1 << 20, Config: Config{Path: Path{Bps: 20e6, RTT: 100 * time.Millisecond}}})
	if got.Send != 2*65535 || !strings.Contains(got.Log, "does not scale") {
		t.Errorf("the send buffer ended at %d, want %d\n%s", got.Send, 2*65535, got.Log)
	}
}

func TestTuner_LimitsUnsentBytes(t *testing.T) {
	t.Parallel()
	l := startLab(t, "rate=20mbit,rtt=20ms,stack=linux-6.18", order{Plain: true})
	for unsent, want := range map[time.Duration]bool{0: true, -1: false} {
		got := send(t, l, order{Bytes: 2 << 20, Config: Config{Unsent: unsent,
			Path: Path{Bps: 1e9, RTT: 100 * time.Millisecond}}})
		if strings.Contains(got.Log, "unsent bytes") != want {
			t.Errorf("Unsent %v: %s", unsent, got.Log)
		}
	}
}
