//go:build linux

package harness

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

// CPUGroup is a control group whose processes share a CPU quota.
type CPUGroup struct {
	dir  string
	isV1 bool // of the first version of control groups
}

// NewCPUGroup makes a control group without a limit. Its processes have to end before the test does.
func NewCPUGroup(t *testing.T) *CPUGroup {
	t.Helper()
	root := "/sys/fs/cgroup"
	under := ""
	own, err := os.ReadFile("/proc/self/cgroup")
	g := &CPUGroup{}
	for line := range strings.Lines(string(own)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) == 3 && slices.Contains(strings.Split(parts[1], ","), "cpu") {
			g.isV1 = true
			root = "/sys/fs/cgroup/cpu"
			under = parts[2]
		}
	}
	if err == nil {
		g.dir, err = os.MkdirTemp(filepath.Join(root, under), "fullpipe-test-")
	}
	if err != nil {
		t.Fatalf("make a control group: %v", err)
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

// Limit sets the quota to a share of one CPU in each period.
func (g *CPUGroup) Limit(share float64, period time.Duration) error {
	write := func(file, value string) error { return os.WriteFile(filepath.Join(g.dir, file), []byte(value), 0) }
	whole := period.Microseconds()
	quota := int64(share * float64(whole))
	if g.isV1 {
		return errors.Join(write("cpu.cfs_period_us", fmt.Sprint(whole)), write("cpu.cfs_quota_us", fmt.Sprint(quota)))
	}
	return write("cpu.max", fmt.Sprint(quota, " ", whole))
}

// ProcsFile returns the file to which a process writes its PID to join.
func (g *CPUGroup) ProcsFile() string { return filepath.Join(g.dir, "cgroup.procs") }
