//go:build linux

package harness

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
	"github.com/fullpipe-net/fullpipe/internal/link"
	"github.com/fullpipe-net/fullpipe/internal/verdict/timeline"
)

// Captures names the capture files of a transfer: tcpdump's at both ends and, unless Middle is "", the link's own.
type Captures struct {
	Near, Far, Middle string
	// Lost is the number of packets that the kernel dropped before tcpdump, by tcpdump's own count.
	Lost int
}

// tcpdump is a running tcpdump at one end of a lab.
type tcpdump struct {
	process *lab.Process
	output  *lockedBuffer
}

// lockedBuffer collects the output of a running program.
type lockedBuffer struct {
	mu   sync.Mutex // guards text
	text bytes.Buffer
}

func (s *lockedBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *lockedBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// startTcpdump captures headers at one end of a lab and returns once tcpdump listens.
func startTcpdump(end *lab.End, file string) (*tcpdump, error) {
	const script = "exec tcpdump -Z root -i $(awk 'NR == 2 {print $1}' /proc/net/route) -s 128 -B 65536 " +
		"--immediate-mode -w \"$0\""
	said := &lockedBuffer{}
	p, err := end.Start(lab.Command{Args: []string{"sh", "-c", script, file}, Stderr: said})
	if err != nil {
		return nil, err
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for range 1000 {
		if strings.Contains(said.String(), "listening") {
			return &tcpdump{p, said}, nil
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

// stop ends the capture and returns how many packets the kernel dropped.
func (t *tcpdump) stop() (lost int, err error) {
	if err := t.process.Signal(syscall.SIGINT); err != nil {
		return 0, err
	}
	if _, err := t.process.Wait(); err != nil {
		return 0, err
	}
	m := droppedByKernel.FindStringSubmatch(t.output.String())
	if m == nil {
		return 0, fmt.Errorf("tcpdump does not say what it lost: %s", t.output.String())
	}
	return strconv.Atoi(m[1])
}

// tapEnds starts captures at both ends. The returned stop ends them and adds the dropped packets to c.Lost.
func (c *Captures) tapEnds(l *lab.Lab) (stop func() error, err error) {
	nearTap, err := startTcpdump(l.Near, c.Near)
	if err != nil {
		return nil, err
	}
	farTap, err := startTcpdump(l.Far, c.Far)
	if err != nil {
		return nil, err
	}
	return func() error {
		for _, t := range []*tcpdump{nearTap, farTap} {
			lost, err := t.stop()
			if err != nil {
				return err
			}
			c.Lost += lost
		}
		return nil
	}, nil
}

// DiagnoseSender diagnoses the direction in a capture file that end sent, with that host's other connections as
// context.
func DiagnoseSender(file string, end netip.AddrPort) (timeline.Diagnosis, *flow.Direction, error) {
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

// CaptureTransfer runs a server and a client in a lab with this path and captures their traffic. The middle
// capture is complete when it returns.
func (c *Captures) CaptureTransfer(t *testing.T, text string, programs func(*lab.Lab) (server, client lab.Command)) {
	t.Helper()
	path, err := link.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	tap, err := os.Create(c.Middle)
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
