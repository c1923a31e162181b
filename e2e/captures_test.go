//go:build linux

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/capture"
	"github.com/fullpipe-net/fullpipe/internal/flow"
	"github.com/fullpipe-net/fullpipe/internal/lab"
	"github.com/fullpipe-net/fullpipe/internal/verdict/timeline"
)

// captures are the files that a transfer's taps write: tcpdump at the ends and, where it
// is named, the link's own tap in the middle.
type captures struct {
	near, far, middle string
	// lost is how many packets tcpdump says the kernel could not hand to it.
	lost int
}

// tapping is a tcpdump at one end of a lab.
type tapping struct {
	process *lab.Process
	said    *said
}

// said is what a program has written until now.
type said struct {
	mu   sync.Mutex // guards text
	text bytes.Buffer
}

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// tapEnd captures headers at an end until stop.
func tapEnd(end *lab.End, file string) (*tapping, error) {
	const script = "exec tcpdump -Z root -i $(awk 'NR == 2 {print $1}' /proc/net/route) -s 128 -B 65536 " +
		"--immediate-mode -w \"$0\""
	said := &said{}
	p, err := end.Start(lab.Command{Args: []string{"sh", "-c", script, file}, Stderr: said})
	if err != nil {
		return nil, err
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for range 1000 {
		if strings.Contains(said.String(), "listening") {
			return &tapping{p, said}, nil
		}
		select {
		case <-p.Done():
			return nil, fmt.Errorf("tcpdump: %s", said.String())
		case <-tick.C:
		}
	}
	return nil, fmt.Errorf("tcpdump does not begin: %s", said.String())
}

var droppedByKernel = regexp.MustCompile(`(\d+) packets? dropped by kernel`)

// stop ends the capture and answers how many packets it lost.
func (t *tapping) stop() (lost int, err error) {
	if err := t.process.Signal(syscall.SIGINT); err != nil {
		return 0, err
	}
	if _, err := t.process.Wait(); err != nil {
		return 0, err
	}
	m := droppedByKernel.FindStringSubmatch(t.said.String())
	if m == nil {
		return 0, fmt.Errorf("tcpdump does not say what it lost: %s", t.said.String())
	}
	return strconv.Atoi(m[1])
}

// tapEnds captures at both ends; stop adds what was lost to c.
func (c *captures) tapEnds(l *lab.Lab) (stop func() error, err error) {
	nearTap, err := tapEnd(l.Near, c.near)
	if err != nil {
		return nil, err
	}
	farTap, err := tapEnd(l.Far, c.far)
	if err != nil {
		return nil, err
	}
	return func() error {
		for _, t := range []*tapping{nearTap, farTap} {
			lost, err := t.stop()
			if err != nil {
				return err
			}
			c.lost += lost
		}
		return nil
	}, nil
}

// sentFrom judges the direction of a capture that an end sent, among those beside it.
func sentFrom(file string, end netip.AddrPort) (timeline.Diagnosis, *flow.Direction, error) {
	f, err := capture.Open(file)
	if err != nil {
		return timeline.Diagnosis{}, nil, err
	}
	defer f.Close()
	a, err := capture.Analyze(context.Background(), capture.Config{Workers: 1}, f)
	if err != nil {
		return timeline.Diagnosis{}, nil, err
	}
	var asked timeline.Parallel
	var all []timeline.Parallel
	for _, c := range a.Connections {
		for _, d := range c.Directions() {
			one := timeline.Parallel{Connection: c, Direction: d}
			if d.From.AddrPort() == end {
				asked = one
			}
			if d.From.AddrPort().Addr() == end.Addr() {
				all = append(all, one)
			}
		}
	}
	if asked.Direction == nil {
		return timeline.Diagnosis{}, nil, fmt.Errorf("%s: no data from %v in it", file, end)
	}
	return timeline.Judge(asked.Connection, asked.Direction, all...), asked.Direction, nil
}

// TestSentFrom holds the taps themselves: three of them see one short transfer whole.
func TestSentFrom(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := pathPoint{10e6, 20 * time.Millisecond}.free()
	s.spec.Time, s.spec.Bytes = 0, 500_000
	s.captures = &captures{near: dir + "/near", far: dir + "/far", middle: dir + "/middle"}
	result, err := carryOut(t, s)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{s.captures.near, s.captures.far, s.captures.middle} {
		g, d, err := sentFrom(file, result.Sender().Streams[0].Local)
		if err != nil {
			t.Fatal(err)
		}
		if d.Bytes < 500_000 || s.captures.lost == 0 && d.Unseen > 0 {
			t.Errorf("%s: %d bytes, %d of them unseen; tcpdump lost %d packets", file, d.Bytes, d.Unseen, s.captures.lost)
		}
		if info, err := os.Stat(file); err != nil || g.RTT <= 0 {
			t.Errorf("%v, %v, round trip %v", info, err, g.RTT)
		}
	}
}
