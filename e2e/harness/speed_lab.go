//go:build linux

package harness

import (
	"fmt"
	"io"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/lab"
)

// SpeedLab is a lab with `serve --web` at its far end and a browser at its near end.
type SpeedLab struct {
	*lab.Lab
	events chan BrowserResult
}

// SpeedPort is the port of `serve --web`.
const SpeedPort = "8080"

// NewSpeedLab starts a lab with a path.
func NewSpeedLab(t *testing.T, path string) *SpeedLab {
	t.Helper()
	l, _ := StartLab(t, path)
	s := &SpeedLab{l, make(chan BrowserResult, 4)}
	read, write := io.Pipe()
	_, err := l.Far.Start(lab.Command{Args: []string{Program(t), "serve", "--web", ":" + SpeedPort, "--json"},
		Stdout: write, Stderr: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	go ReadWebEvents(read, func(one BrowserResult) { s.events <- one })
	s.next(t) // it is ready
	return s
}

// next returns the server's next event.
func (s *SpeedLab) next(t *testing.T) BrowserResult {
	t.Helper()
	select {
	case one := <-s.events:
		return one
	case <-time.After(2 * time.Minute):
		t.Fatal("the browser came to no result")
	}
	return BrowserResult{}
}

// RunTest runs the page's test in a browser and returns the server's result. slow, unless 0, is the share of a CPU
// that the browser has once it shows the page.
func (s *SpeedLab) RunTest(t *testing.T, query string, slow float64) BrowserResult {
	t.Helper()
	args := ChromiumCommand(t, fmt.Sprintf("http://%s:%s/test?start&%s", lab.FarAddr, SpeedPort, query))
	var device *CPUGroup
	if slow > 0 {
		device = NewCPUGroup(t)
		args = append([]string{"sh", "-euc", "echo 0 > " + device.ProcsFile() + `; exec "$@"`, "sh"}, args...)
	}
	browser, err := s.Near.Start(lab.Command{Args: args, Stdout: io.Discard, Stderr: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	defer browser.Signal(os.Kill)
	if device != nil {
		s.slowOnceShown(t, device, slow)
	}
	return s.next(t)
}

// pageBytes is more than connections carry without the page, and less than the page.
const pageBytes = 8 << 10

// slowOnceShown limits the browser's CPU once the page was sent: before, its start would take minutes.
func (s *SpeedLab) slowOnceShown(t *testing.T, device *CPUGroup, share float64) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(time.Minute); ; <-tick.C {
		_, down, err := s.Counters()
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("the browser does not ask for the page: %v", err)
		}
		if down.DeliveredBytes > pageBytes {
			break
		}
	}
	if err := device.Limit(share, 10*time.Millisecond); err != nil {
		t.Fatal(err)
	}
}

// SpeedCase is a limiter that the browser speed test has to name.
type SpeedCase struct {
	Name           string
	Paths          []string // a run takes one of them
	Upload         bool
	CPUShare       float64 // the device's share of a processor; 0: all
	Limiters       []string
	MinBps, MaxBps float64 // bit/s: the goodput that the cause allows
}

// Query returns the page's query for a test of ms milliseconds.
func (c *SpeedCase) Query(ms int) string {
	only := "download"
	if c.Upload {
		only = "upload"
	}
	return fmt.Sprintf("only=%s&many=0&ms=%d", only, ms)
}

// Judge returns the result's direction, whether it names the limiter, and whether it leaves the limiter open.
func (c *SpeedCase) Judge(t *testing.T, result BrowserResult) (d BrowserDirection, right, open bool) {
	t.Helper()
	if len(result.Directions) != 1 || (result.Directions[0].Direction == "down") != c.Upload {
		t.Fatalf("%+v", result)
	}
	d = result.Directions[0]
	right = slices.Contains(c.Limiters, d.Limiter)
	among := slices.ContainsFunc(d.Candidates, func(one string) bool { return slices.Contains(c.Limiters, one) })
	return d, right, d.Limiter == "unknown" || d.Confidence == "low" && among
}

// CauseActed reports whether the goodput is what the limiter leaves.
func (c *SpeedCase) CauseActed(d BrowserDirection) bool {
	return d.GoodputBps >= c.MinBps && d.GoodputBps <= c.MaxBps
}
