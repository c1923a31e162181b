package watch

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const (
	// ownersEvery is the least time between two walks of /proc, and ownersPart how many times
	// as long as the last one took it is: walking takes at most that part of a core. Where one
	// owner is asked for, which `why` does for some seconds, askedPart.
	ownersEvery = 500 * time.Millisecond
	ownersPart  = 200
	askedPart   = 20
	mostGroups  = 4096 // cgroups that are remembered
)

// owners finds whose a socket is: the process that has it open, else the cgroup in which
// it was made. A socket that was accepted has its listener's cgroup, so where both are
// known the process is believed.
type owners struct {
	match     *Match           // the only owners that are asked for, where it names any
	processes map[uint32]Owner // by the socket's inode
	groups    map[uint64]string
	walked    time.Duration // when the last walk began; before the watch: none was made
	next      time.Duration // when another may be made
}

func newOwners(match *Match) *owners {
	return &owners{match: match, processes: map[uint32]Owner{}, groups: map[uint64]string{}, walked: -1}
}

// of is the owner of a connection that was first seen open at a time. It walks /proc where no
// walk could have found it, and not too often.
func (o *owners) of(t *Told, opened, now time.Duration) Owner {
	found, ok := o.processes[t.Inode]
	if !ok && t.Inode != 0 && opened > o.walked && now >= o.next {
		began := time.Now()
		o.walk()
		part := time.Duration(ownersPart)
		if o.match.owned() {
			part = askedPart
		}
		o.walked, o.next = now, now+max(ownersEvery, part*time.Since(began))
		found, ok = o.processes[t.Inode]
	}
	if !ok && t.Cgroup > 1 {
		found.Unit, found.Container = unitOf(o.group(t.Cgroup))
	}
	return found
}

// walk maps the inodes of all sockets to their processes, as far as this user may look.
// Files of processes that are not asked for are not read: those are what takes time.
func (o *owners) walk() {
	o.processes = map[uint32]Owner{}
	processes, err := os.ReadDir("/proc")
	if err != nil {
		return
	}
	for _, p := range processes {
		pid, err := strconv.Atoi(p.Name())
		if err != nil {
			continue
		}
		dir := "/proc/" + p.Name()
		var owner *Owner
		if o.match.owned() {
			if owner = describe(pid, dir); !o.match.owner(*owner) {
				continue
			}
		}
		files, err := os.ReadDir(dir + "/fd")
		if err != nil {
			continue // another user's, or gone
		}
		for _, f := range files {
			target, err := os.Readlink(dir + "/fd/" + f.Name())
			number, isSocket := strings.CutPrefix(target, "socket:[")
			if err != nil || !isSocket {
				continue
			}
			inode, err := strconv.ParseUint(strings.TrimSuffix(number, "]"), 10, 32)
			if err != nil {
				continue
			}
			if owner == nil {
				owner = describe(pid, dir)
			}
			if _, known := o.processes[uint32(inode)]; !known { // of several, the oldest
				o.processes[uint32(inode)] = *owner
			}
		}
	}
}

func describe(pid int, dir string) *Owner {
	owner := &Owner{PID: pid}
	if name, err := os.ReadFile(dir + "/comm"); err == nil {
		owner.Program = strings.TrimSpace(string(name))
	}
	groups, err := os.ReadFile(dir + "/cgroup")
	if err != nil {
		return owner
	}
	for line := range strings.Lines(string(groups)) {
		// 0::/system.slice/x.service, or with version 1 12:name=systemd:/system.slice/x.service
		number, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		kind, path, _ := strings.Cut(rest, ":")
		if number != "0" && kind != "name=systemd" {
			continue
		}
		if unit, container := unitOf(path); unit != "" || container != "" {
			owner.Unit, owner.Container = unit, container
		}
	}
	return owner
}

// group is the path of a cgroup v2 by its inode; "" where it is not to be found.
func (o *owners) group(id uint64) string {
	if path, ok := o.groups[id]; ok {
		return path
	}
	if len(o.groups) > mostGroups {
		o.groups = map[uint64]string{}
	}
	o.groups[id] = ""
	for _, root := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} {
		if _, err := os.Stat(root + "/cgroup.procs"); err != nil {
			continue
		}
		_ = filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
			if err != nil || !entry.IsDir() {
				return nil
			}
			if info, err := entry.Info(); err == nil {
				o.groups[inodeOf(info)] = strings.TrimPrefix(path, root)
			}
			return nil
		})
	}
	return o.groups[id]
}
