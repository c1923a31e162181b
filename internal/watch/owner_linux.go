package watch

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/sockdiag"
	"github.com/fullpipe-net/fullpipe/internal/socket"
)

const (
	// ownersEvery is the least time between two walks of /proc, and ownersPart how many times
	// as long as the last one took it is: walking takes at most that part of a core. Where one
	// owner is asked for, which `why` does for some seconds, askedPart.
	ownersEvery = 500 * time.Millisecond
	ownersPart  = 200
	askedPart   = 20
	maxGroups   = 4096 // cgroups that are remembered
	// manySockets is the number from which eBPF is faster: loading its program takes some 20 ms.
	manySockets = 2000
)

// owners finds the owner of a socket: the process that has it open, else the cgroup in which it was created. An
// accepted socket has its listener's cgroup, so the process has precedence.
type owners struct {
	match     *Match            // selects owners by name; the others need not be found
	namespace os.FileInfo       // the network namespace that is watched; nil: not known
	processes map[uint32]*Owner // by the socket's inode
	sockets   sockdiag.Holders
	many      bool             // there are more sockets than manySockets
	tasks     *sockdiag.Tasks  // nil: owners are found by a walk of /proc
	opened    bool             // an attempt to open tasks was made
	asked     map[int]*process // all processes at the last walk; nil: Match asks for no owner
	groups    map[uint64]string
	walked    time.Duration // when the last walk began; before the watch: none was made
	partly    bool          // the last walk skipped processes of other network namespaces
	next      time.Duration // earliest time of the next walk
}

func newOwners(match *Match, namespace string) *owners {
	o := &owners{match: match, processes: map[uint32]*Owner{}, groups: map[uint64]string{}, walked: -1}
	o.namespace, _ = os.Stat(cmp.Or(namespace, "/proc/thread-self/ns/net"))
	return o
}

func (w *watcher) owner(c *Connection) Owner {
	if c.Owner != (Owner{}) {
		return c.Owner
	}
	w.owners.many = w.account.Len() >= manySockets
	asked := w.unowned
	if w.netns != nil { // those of other namespaces are asked for after these
		asked = nil
	}
	return w.owners.of(&c.Snapshot, c.opened, w.now(), asked)
}

// findFillers finds the owners of the connections that fill queues. A watch of some programs has not looked for theirs.
func (w *watcher) findFillers(v *View) {
	var all *owners
	for i := range v.Connections {
		f := v.Connections[i].Filler
		if f == nil || f.Owner != (Owner{}) || v.Anonymized {
			continue
		}
		if all == nil {
			all = newOwners(&Match{}, w.cfg.Namespace)
			defer all.close()
		}
		f.Owner = all.of(&f.Snapshot, f.opened, w.now(), nil)
	}
}

// unowned returns the inodes of sockets that moved in this period and have no known owner.
func (w *watcher) unowned() map[uint32]bool {
	inodes := map[uint32]bool{}
	w.account.moved(func(c *Connection) {
		if c.Inode != 0 && c.Owner == (Owner{}) {
			inodes[c.Inode] = true
		}
	})
	return inodes
}

// of returns the owner of a connection that was first seen open at a time. It walks /proc, not too often, where no
// earlier walk could have found the owner. asked returns the inodes of all sockets whose owners are needed now: the
// walk ends when all are found; nil: there may be others.
func (o *owners) of(t *Snapshot, opened, now time.Duration, asked func() map[uint32]bool) Owner {
	found, ok := o.processes[t.Inode]
	if !ok && t.Inode != 0 && (opened > o.walked || o.partly) && now >= o.next {
		before, _ := socket.ProcessCPU()
		o.walk(t.Inode, asked)
		after, _ := socket.ProcessCPU()
		part := time.Duration(ownersPart)
		if o.match.owned() {
			part = askedPart
		}
		o.walked = now
		o.next = now + max(ownersEvery, part*(after-before))
		found, ok = o.processes[t.Inode]
	}
	if ok {
		return *found
	}
	var owner Owner
	if t.Cgroup > 1 {
		owner.Unit, owner.Container = unitOf(o.group(t.Cgroup))
	}
	return owner
}

// close closes the iterator.
func (o *owners) close() {
	if o.tasks != nil {
		_ = o.tasks.Close() // it has been read from, no more
	}
}

// ask maps the sockets of all processes by eBPF. It returns false where that is not possible.
func (o *owners) ask() bool {
	if o.many && !o.opened {
		o.opened = true
		o.tasks, _ = sockdiag.OpenTasks() // where it is not permitted, or not known, /proc is walked
	}
	if o.tasks == nil {
		return false
	}
	known := map[int]*Owner{}
	for pid, p := range o.asked {
		known[pid] = &p.Owner
	}
	return o.tasks.Each(func(pid int, inode uint32) {
		owner := known[pid]
		if owner == nil {
			owner = readOwner(pid)
			known[pid] = owner
		}
		if o.processes[inode] == nil { // of several the oldest
			o.processes[inode] = owner
		}
	}) == nil
}

// walk maps the inodes of sockets to their processes, as far as this user may look. A process of
// another network namespace seldom has a socket of this one: those are read only where nobody
// else has the socket that is wanted.
func (o *owners) walk(wanted uint32, asked func() map[uint32]bool) {
	o.processes = map[uint32]*Owner{}
	o.partly = false
	pids, err := sockdiag.Processes()
	if err != nil {
		return
	}
	if o.match.owned() {
		o.asked = readProcesses(procfs, pids, o.match)
	}
	if o.ask() {
		return
	}
	var ours, others []*holder
	for _, pid := range pids {
		if in, err := os.Stat("/proc/" + strconv.Itoa(pid) + "/ns/net"); err == nil && o.namespace != nil &&
			!os.SameFile(in, o.namespace) {
			others = append(others, &holder{pid: pid})
			continue
		}
		ours = append(ours, &holder{pid: pid})
	}
	var left map[uint32]bool
	if asked != nil {
		left = asked()
		left[wanted] = true
	}
	o.partly = o.read(ours, left)
	if o.processes[wanted] != nil {
		o.partly = o.partly || len(others) > 0
		return
	}
	o.partly = o.read(others, left)
}

// holder is a process whose descriptors are being read.
type holder struct {
	pid   int
	at    int64 // see sockdiag.Holders.Some
	owner *Owner
}

// read finds the owners of sockets. It reads a part of each process in turn, because one process may have as many
// sockets as all others together. It stops and returns true when every inode in left is found.
func (o *owners) read(of []*holder, left map[uint32]bool) (partly bool) {
	for counted := len(left) > 0; len(of) > 0; {
		if counted && len(left) == 0 {
			return true
		}
		of = slices.DeleteFunc(of, func(h *holder) bool { return !o.some(h, left) })
	}
	return false
}

// some reads some of a process's descriptors and reports whether there are more. It skips processes that Match does not
// ask for, since descriptors take most of the time.
func (o *owners) some(h *holder, left map[uint32]bool) (more bool) {
	if h.owner == nil && o.match.owned() {
		p := o.asked[h.pid]
		if p == nil || !p.matched {
			return false
		}
		h.owner = &p.Owner
	}
	// Another user's process is refused, and one may be gone: its sockets are nobody's then.
	next, err := o.sockets.Some(h.pid, h.at, func(_ int, inode uint32) {
		if h.owner == nil {
			h.owner = readOwner(h.pid)
		}
		if known := o.processes[inode]; known == nil || h.pid < known.PID { // of several the oldest
			o.processes[inode] = h.owner
		}
		delete(left, inode)
	})
	h.at = next
	return err == nil && next >= 0
}

// group returns the path of a cgroup v2 by its inode; "" where it is not found.
func (o *owners) group(id uint64) string {
	if path, ok := o.groups[id]; ok {
		return path
	}
	if len(o.groups) > maxGroups {
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

// matches reports whether Match asks for a connection's owner.
func (w *watcher) matches(c *Connection) bool {
	if w.cfg.followsNeighbours() && !w.cfg.Match.ends(c.Local, c.Remote) {
		return false
	}
	if !w.cfg.Match.owned() {
		return true
	}
	c.Owner = w.owner(c)
	return w.cfg.Match.owner(c.Owner)
}
