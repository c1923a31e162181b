//go:build linux

package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// cpuGroup is a control group whose programs have so much of a processor together.
type cpuGroup struct {
	dir   string
	first bool // of the first version of control groups
}

// newCPUGroup makes one without a limit, under this process's own where the first version of
// control groups holds. The programs that are in it have to end before the test does.
func newCPUGroup(t *testing.T) *cpuGroup {
	t.Helper()
	root, under := "/sys/fs/cgroup", ""
	own, err := os.ReadFile("/proc/self/cgroup")
	g := &cpuGroup{}
	for line := range strings.Lines(string(own)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) == 3 && slices.Contains(strings.Split(parts[1], ","), "cpu") {
			g.first, root, under = true, "/sys/fs/cgroup/cpu", parts[2]
		}
	}
	if err == nil {
		g.dir, err = os.MkdirTemp(filepath.Join(root, under), "fullpipe-test-")
	}
	if err != nil {
		t.Skipf("no control group: %v", err)
	}
	t.Cleanup(func() {
		for range 100 { // its last processes may still be on their way out
			if os.Remove(g.dir) == nil {
				return
			}
			time.Sleep(50 * time.Millisecond)
		}
		t.Errorf("%s is left", g.dir)
	})
	return g
}

// slowedTo is a group that has a share of one processor.
func slowedTo(t *testing.T, share float64) *cpuGroup {
	t.Helper()
	g := newCPUGroup(t)
	if err := g.slow(share, 100*time.Millisecond); err != nil {
		t.Skipf("no share of a processor: %v", err)
	}
	return g
}

// slow gives the group's programs a share of one processor, anew in each period.
func (g *cpuGroup) slow(share float64, period time.Duration) error {
	write := func(file, value string) error { return os.WriteFile(filepath.Join(g.dir, file), []byte(value), 0) }
	whole := period.Microseconds()
	quota := int64(share * float64(whole))
	if g.first {
		return errors.Join(write("cpu.cfs_period_us", fmt.Sprint(whole)), write("cpu.cfs_quota_us", fmt.Sprint(quota)))
	}
	return write("cpu.max", fmt.Sprint(quota, " ", whole))
}

// procs is the file that takes processes in.
func (g *cpuGroup) procs() string { return filepath.Join(g.dir, "cgroup.procs") }
