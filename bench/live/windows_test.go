//go:build linux

package live

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
	"github.com/fullpipe-net/fullpipe/internal/lab"
	"github.com/fullpipe-net/fullpipe/internal/lab/stalltest"
	documents "github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// TestProgramsOwnWindows captures real programs with windows of their own at both ends and in the middle. OpenSSH's
// channel has 2 MiB and is named. A Go HTTP/2 server's stream has its configured window, and twice that window gives
// the predicted rate.
func TestProgramsOwnWindows(t *testing.T) {
	t.Run("OpenSSH", func(t *testing.T) {
		// One session, and two concurrent ones that send as much each: together they reach the rate predicted from one. The
		// time is the connections' own, without starting the programs.
		var said, came float64
		for _, sessions := range []int{1, 2} {
			stalltest.Undisturbed(t, func() error {
				came = 0
				err := eachTap(t, "rate=400mbit,rtt=100ms", func(l *lab.Lab) (server, client lab.Command) {
					site, sshd := harness.NewSSHFiles(t, lab.FarAddr.String(), 22)
					const one = "head -c 100000000 /dev/zero | ssh far 'cat > /dev/null' & "
					return lab.Command{Args: []string{sshd, "-D", "-e", "-f", site.Path("sshd.conf")}},
						lab.Command{Env: site.Env, Args: []string{"sh", "-c", strings.Repeat(one, sessions) + "wait"}}
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
			stalltest.Undisturbed(t, func() error {
				return eachTap(t, "rate=200mbit,rtt=80ms", func(l *lab.Lab) (server, client lab.Command) {
					return lab.Command{Args: []string{os.Args[0]}, Stderr: os.Stderr,
							Env: []string{harness.ProgramVariable + "=http2-server", fmt.Sprintf("%s=%d", harness.HTTP2WindowVariable,
								k*window)}},
						lab.Command{Args: []string{os.Args[0]}, Stderr: os.Stderr, Env: []string{
							harness.ProgramVariable + "=http2-client", harness.LineAddressVariable + "=" + lab.FarAddr.String()}}
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

// twice returns the predicted rate with twice the program's window, in bit/s.
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

// eachTap runs a server at a lab's far end and a command at its near one, and checks diagnose's results on captures
// at either end and in the middle.
func eachTap(t *testing.T, path string, programs func(*lab.Lab) (server, client lab.Command),
	look func(tap string, all []documents.CapturedConnection) error) error {
	t.Helper()
	program := harness.Program(t)
	dir := t.TempDir()
	c := &harness.Captures{Near: filepath.Join(dir, "near"), Far: filepath.Join(dir, "far"), Middle: filepath.Join(dir,
		"middle")}
	c.CaptureTransfer(t, path, programs)
	for _, file := range []string{c.Near, c.Far, c.Middle} {
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
