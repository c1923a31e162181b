package sockops

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// cgroup is the cgroup of one program.
type cgroup struct {
	path   string
	parent string // surviving processes return to it
	id     uint64 // sock_diag's cgroup filter
	dir    *os.File
}

const cgroupPrefix = "fullpipe-exec-"

func newCgroup() (*cgroup, error) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, err
	}
	parent, err := ownCgroup(string(mounts), string(own))
	if err != nil {
		return nil, &NotSupported{Feature: "cgroup v2", Err: err}
	}
	sweep(parent)
	path, err := os.MkdirTemp(parent, cgroupPrefix+strconv.Itoa(os.Getpid())+"-")
	switch {
	case errors.Is(err, fs.ErrPermission), errors.Is(err, unix.EROFS):
		return nil, &NotPermitted{Action: "make a cgroup", Err: err}
	case err != nil:
		return nil, err
	}
	g := &cgroup{path: path, parent: parent}
	g.dir, err = os.Open(path)
	if err == nil {
		var st unix.Stat_t
		err = unix.Fstat(int(g.dir.Fd()), &st)
		g.id = st.Ino
	}
	if err != nil {
		g.remove()
		return nil, err
	}
	return g, nil
}

// ownCgroup returns this process's cgroup v2 directory from the content of /proc/self/mountinfo and
// /proc/self/cgroup.
func ownCgroup(mounts, own string) (string, error) {
	path := "/"
	for line := range strings.Lines(own) {
		if p, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "0::"); ok {
			path = strings.TrimSuffix(p, " (deleted)")
		}
	}
	for line := range strings.Lines(mounts) {
		// 36 35 98:0 /root /mount/point options - type source
		before, after, _ := strings.Cut(line, " - ")
		fields := strings.Fields(before)
		if !strings.HasPrefix(after, "cgroup2 ") || len(fields) < 5 {
			continue
		}
		mount := unescape(fields[4])
		below, err := filepath.Rel(unescape(fields[3]), path)
		if err != nil || strings.HasPrefix(below, "..") {
			return mount, nil // the process's own is not visible from here
		}
		return filepath.Join(mount, below), nil
	}
	return "", errNoCgroup
}

// unescape decodes the octal escapes of mountinfo (proc_pid_mountinfo(5)).
func unescape(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}

// sweep frees programs whose steering process and supervisor were killed.
func sweep(parent string) {
	left, _ := filepath.Glob(filepath.Join(parent, cgroupPrefix+"*"))
	for _, path := range left {
		pid, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(path), cgroupPrefix), "-")
		if n, err := strconv.Atoi(pid); err == nil && errors.Is(unix.Kill(n, 0), unix.ESRCH) {
			g := &cgroup{path: path, parent: parent}
			if _, err := g.leave(); err == nil {
				_ = g.remove()
			}
		}
	}
}

// leave moves remaining processes to the parent cgroup and returns their number.
func (g *cgroup) leave() (int, error) {
	moved := 0
	for range 100 { // a process may fork while it is moved
		text, err := os.ReadFile(filepath.Join(g.path, "cgroup.procs"))
		if err != nil {
			return moved, err
		}
		pids := strings.Fields(string(text))
		if len(pids) == 0 {
			return moved, nil
		}
		for _, pid := range pids {
			err := os.WriteFile(filepath.Join(g.parent, "cgroup.procs"), []byte(pid), 0)
			switch {
			case err == nil:
				moved++
			case !errors.Is(err, unix.ESRCH):
				return moved, err
			}
		}
	}
	return moved, fmt.Errorf("%s: processes are made faster than they can be moved", g.path)
}

// remove deletes the cgroup; its programs are detached with it.
func (g *cgroup) remove() error {
	if g.dir != nil {
		g.dir.Close()
	}
	var err error
	for range 50 { // a process counts as a member until it is reaped
		err = unix.Rmdir(g.path)
		if !errors.Is(err, unix.EBUSY) {
			return err
		}
		time.Sleep(2 * time.Millisecond)
	}
	return fmt.Errorf("cgroup %s remains: %w", g.path, err)
}
