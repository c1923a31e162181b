//go:build linux

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/lab"
	"github.com/fullpipe-net/fullpipe/internal/link"
	documents "github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// Programs that speak HTTP/2 without TLS: a server that gives its clients a window of
// http2Window bytes for each stream, and a client that posts http2Bytes to it.
const (
	http2Window = "FULLPIPE_E2E_WINDOW"
	http2Port   = "8081"
	http2Bytes  = 24 << 20
)

func http2ServerProgram() error {
	window, err := strconv.Atoi(os.Getenv(http2Window))
	if err != nil {
		return err
	}
	var plain http.Protocols
	plain.SetUnencryptedHTTP2(true)
	server := http.Server{Addr: ":" + http2Port, Protocols: &plain,
		HTTP2: &http.HTTP2Config{MaxReceiveBufferPerStream: window, MaxReceiveBufferPerConnection: 64 << 20},
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
		})}
	return server.ListenAndServe()
}

type zeroes struct{}

func (zeroes) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func http2ClientProgram() error {
	var plain http.Protocols
	plain.SetUnencryptedHTTP2(true)
	client := http.Client{Transport: &http.Transport{Protocols: &plain}}
	r, err := client.Post("http://"+os.Getenv(lineAddress)+":"+http2Port, "application/octet-stream",
		io.LimitReader(zeroes{}, http2Bytes))
	if err != nil {
		return err
	}
	defer r.Body.Close()
	if r.ProtoMajor != 2 {
		return errors.New(r.Proto)
	}
	return nil
}

// Real programs with windows of their own, captured at both ends and in the middle:
// OpenSSH's channel has 2 MiB and is named; a Go HTTP/2 server's stream has what it was told
// to give, and twice of it gives what was said.
func TestProgramsOwnWindows(t *testing.T) {
	t.Run("OpenSSH", func(t *testing.T) {
		// One session, and two side by side that send as much each: together they give what was said of one. Their
		// time is their connection's: starting programs is no part of it.
		var said, came float64
		for _, sessions := range []int{1, 2} {
			undisturbed(t, func() error {
				came = 0
				err := eachTap(t, "rate=400mbit,rtt=100ms", func(l *lab.Lab) (server, client lab.Command) {
					site, sshd := sshFiles(t, lab.FarAddr.String(), 22)
					const one = "head -c 100000000 /dev/zero | ssh far 'cat > /dev/null' & "
					return lab.Command{Args: []string{sshd, "-D", "-e", "-f", site.path("sshd.conf")}},
						lab.Command{Env: site.env, Args: []string{"sh", "-c", strings.Repeat(one, sessions) + "wait"}}
				}, func(tap string, all []documents.CapturedConnection) error {
					if len(all) != sessions {
						return fmt.Errorf("%d connections", len(all))
					}
					for _, c := range all {
						d := c.Worst()
						if err := ownWindow(d, 2<<20); err != nil {
							return err
						}
						if d.Program == nil || d.Program.Name != "ssh" {
							return fmt.Errorf("named %+v", d.Program)
						}
						if tap == "near" {
							came += *d.GoodputBps
						}
						if sessions == 1 {
							said = twice(d)
						}
					}
					return nil
				})
				t.Logf("%d sessions: %.3g Mbit/s", sessions, came/1e6)
				return err
			})
		}
		if math.Abs(said/came-1) > 0.15 {
			t.Errorf("two sessions: %.3g bit/s said, %.3g came", said, came)
		}
	})
	t.Run("HTTP2", func(t *testing.T) {
		const window = 256 << 10
		var said, came float64
		for _, k := range []int{1, 2} {
			undisturbed(t, func() error {
				return eachTap(t, "rate=200mbit,rtt=80ms", func(l *lab.Lab) (server, client lab.Command) {
					return lab.Command{Args: []string{os.Args[0]}, Stderr: os.Stderr,
							Env: []string{programVariable + "=http2-server", fmt.Sprintf("%s=%d", http2Window, k*window)}},
						lab.Command{Args: []string{os.Args[0]}, Stderr: os.Stderr, Env: []string{
							programVariable + "=http2-client", lineAddress + "=" + lab.FarAddr.String()}}
				}, func(_ string, all []documents.CapturedConnection) error {
					d := all[0].Worst()
					if k == 1 {
						said = twice(d)
					}
					came = *d.GoodputBps
					return ownWindow(d, k*window)
				})
			})
		}
		if math.Abs(said/came-1) > 0.15 {
			t.Errorf("twice the window: %.3g bit/s said, %.3g came", said, came)
		}
	})
}

// twice is what twice a program's window is said to give, bit/s.
func twice(d *documents.CapturedDirection) float64 {
	for _, e := range d.Evidence {
		if e.Code == verdict.CapturedProgramWindow {
			return e.Values["twice_bps"]
		}
	}
	return 0
}

func ownWindow(d *documents.CapturedDirection, window int) error {
	if d.Limiter != verdict.Application || d.Subtype != verdict.ProgramWindow {
		return fmt.Errorf("%s %s/%s, %v", d.Confidence, d.Limiter, d.Subtype, d.Shares)
	}
	for _, e := range d.Evidence {
		if w := e.Values["program_window_bytes"]; e.Code == verdict.CapturedProgramWindow &&
			math.Abs(w/float64(window)-1) < 0.1 {
			return nil
		}
	}
	return fmt.Errorf("no window of %d bytes in %v", window, d.Evidence)
}

// eachTap runs a server at a lab's far end and a command at its near one, and looks at what
// diagnose says of captures at either end and in the middle.
func eachTap(t *testing.T, path string, programs func(*lab.Lab) (server, client lab.Command),
	look func(tap string, all []documents.CapturedConnection) error) error {
	t.Helper()
	program, err := fullpipe()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	c := &captures{near: filepath.Join(dir, "near"), far: filepath.Join(dir, "far"), middle: filepath.Join(dir, "middle")}
	c.carryOut(t, path, programs)
	for _, file := range []string{c.near, c.far, c.middle} {
		out, err := exec.Command(program, "diagnose", "--json", file).Output()
		if err != nil {
			t.Fatal(err)
		}
		var doc documents.Diagnose
		if err := json.Unmarshal(out, &doc); err != nil {
			t.Fatal(err)
		}
		if len(doc.Connections) == 0 {
			return fmt.Errorf("%s: nothing of size in it", filepath.Base(file))
		}
		if err := look(filepath.Base(file), doc.Connections); err != nil {
			return fmt.Errorf("%s: %w", filepath.Base(file), err)
		}
	}
	return nil
}

// carryOut captures what a client does with a server over a path. The middle's capture is
// whole once the lab is gone.
func (c *captures) carryOut(t *testing.T, text string, programs func(*lab.Lab) (server, client lab.Command)) {
	t.Helper()
	path, err := link.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	tap, err := os.Create(c.middle)
	if err != nil {
		t.Fatal(err)
	}
	defer tap.Close()
	l, err := lab.Start(t.Context(), lab.Config{Path: path, Tap: tap})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	serves, client := programs(l)
	server, err := l.Far.Start(serves)
	if err != nil {
		t.Fatal(err)
	}
	l.Far.AwaitListener(t.Context(), server)
	stop, err := c.tapEnds(l)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Near.Run(client); err != nil {
		t.Fatal(err)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
}
