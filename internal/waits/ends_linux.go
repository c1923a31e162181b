package waits

import (
	"encoding/binary"
	"encoding/hex"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// maxTable is the maximum of bytes read from a table of sockets in /proc: some 25,000 lines.
const maxTable = 4 << 20

// remote returns the far end of a process's TCP socket by its inode; "" if it is none, or a
// listener.
func remote(dir, inode string) string {
	for _, name := range []string{"tcp", "tcp6"} {
		// sl local_address rem_address st queues timer retransmits uid timeout inode
		fields := socketLine(filepath.Join(dir, "net", name), inode, 9)
		if fields == nil {
			continue
		}
		if far, ok := parseAddress(fields[2]); ok && far.Port() != 0 {
			return far.String()
		}
		return ""
	}
	return ""
}

// isLocal reports whether a socket of a process has its far end on this host (unix(7)).
func isLocal(dir, inode string) bool {
	const at = 6 // Num RefCount Protocol Flags Type St Inode
	return socketLine(filepath.Join(dir, "net/unix"), inode, at) != nil
}

// socketLine returns the fields of a socket's line in a table of sockets: the one whose field has
// the inode.
func socketLine(table, inode string, field int) []string {
	file, err := os.Open(table)
	if err != nil {
		return nil
	}
	text, err := io.ReadAll(io.LimitReader(file, maxTable))
	file.Close()
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) > field && fields[field] == inode {
			return fields
		}
	}
	return nil
}

// parseAddress reads an address of /proc/net/tcp: words in the host's byte order, in hexadecimal,
// and the port.
func parseAddress(text string) (netip.AddrPort, bool) {
	host, port, _ := strings.Cut(text, ":")
	raw, err := hex.DecodeString(host)
	number, failed := strconv.ParseUint(port, 16, 16)
	if err != nil || failed != nil {
		return netip.AddrPort{}, false
	}
	for i := 0; i+4 <= len(raw); i += 4 {
		binary.BigEndian.PutUint32(raw[i:], binary.NativeEndian.Uint32(raw[i:]))
	}
	addr, ok := netip.AddrFromSlice(raw)
	return netip.AddrPortFrom(addr.Unmap(), uint16(number)), ok
}

// otherEnd finds the process at the other end of a pipe, by its name such as "pipe:[4026]": one that
// has it open to write where reads is set, else to read. Of several it is the oldest, for which the
// others work. It returns 0 if none is seen.
func otherEnd(pipe string, reads bool, self int) int {
	processes, err := os.ReadDir("/proc")
	if err != nil {
		return 0
	}
	mode := os.FileMode(0o400) // the access mode, in the mode of a descriptor's link
	if reads {
		mode = 0o200
	}
	oldest := 0
	for _, p := range processes {
		pid, err := strconv.Atoi(p.Name())
		if err != nil || pid == self || oldest != 0 && pid > oldest {
			continue
		}
		dir := filepath.Join("/proc", p.Name(), "fd")
		open, err := os.ReadDir(dir)
		if err != nil {
			continue
		}
		for _, fd := range open {
			link := filepath.Join(dir, fd.Name())
			if target, err := os.Readlink(link); err != nil || target != pipe {
				continue
			}
			if info, err := os.Lstat(link); err == nil && info.Mode()&mode != 0 {
				oldest = pid
				break
			}
		}
	}
	return oldest
}

// child returns the newest child of a thread; 0 if it has none, or the kernel does not list them
// (proc_pid_children(5)).
func child(dir string) int {
	text, err := os.ReadFile(filepath.Join(dir, "children"))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text))
	if len(fields) == 0 {
		return 0
	}
	pid, err := strconv.Atoi(fields[len(fields)-1])
	if err != nil {
		return 0
	}
	return pid
}

// program returns a process's name.
func program(pid int) string {
	name, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "comm"))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(name))
}

// initialGroups is the first namespace of control groups (PROC_CGROUP_INIT_INO): another one hides
// the groups above its own.
const initialGroups = "cgroup:[4026531835]"

// quota counts how long a process's control groups were out of their quota of processor time.
type quota struct {
	groups []string
	known  bool  // all of the process's groups are readable
	last   int64 // ns, at the last call of since
}

// newQuota finds the groups of a process.
func newQuota(pid int) *quota {
	q := &quota{}
	groups, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cgroup"))
	if err != nil {
		return q
	}
	namespace, err := os.Readlink("/proc/self/ns/cgroup")
	q.known = err == nil && namespace == initialGroups
	for line := range strings.Lines(string(groups)) {
		_, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		controllers, path, _ := strings.Cut(rest, ":")
		roots := []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"}
		switch {
		case controllers == "":
		case strings.HasPrefix(controllers, "cpu,"), controllers == "cpu":
			roots = []string{"/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"}
		default:
			continue
		}
		for ; path != "." && path != "/" && path != ""; path = filepath.Dir(path) { // the first group has no quota
			group := groupIn(roots, path)
			q.known = q.known && group != ""
			q.groups = append(q.groups, group)
		}
	}
	q.since()
	return q
}

// since returns the time since the call before. The process may have ended.
func (q *quota) since() time.Duration {
	now := int64(0)
	for _, group := range q.groups {
		spent, _ := throttledBy(group)
		now += spent
	}
	before := q.last
	q.last = now
	return time.Duration(max(now-before, 0))
}

// groupIn returns the directory of a control group below the first root that has it; "" if none
// has. A mount namespace of `ip netns exec` has none, but the first process's root does.
func groupIn(roots []string, path string) string {
	for _, below := range []string{"/", "/proc/1/root"} {
		for _, root := range roots {
			group := filepath.Join(below, root, path)
			if _, known := throttledBy(group); known {
				return group
			}
		}
	}
	return ""
}

// throttledBy reads how long a control group was out of its quota: in each throttled period until
// its end, as long as a period at most (Documentation/admin-guide/cgroup-v2.rst,
// scheduler/sched-bwc.rst). Linux 6.18 itself counts a fourth to a third of that time only.
func throttledBy(group string) (spent int64, known bool) {
	text, err := os.ReadFile(filepath.Join(group, "cpu.stat"))
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if n, err := strconv.ParseInt(value, 10, 64); err == nil && name == "nr_throttled" {
			return n * period(group), true
		}
	}
	return 0, true // without the controller
}

// period returns the period of a control group's quota in nanoseconds.
func period(group string) int64 {
	text, err := os.ReadFile(filepath.Join(group, "cpu.cfs_period_us"))
	if err != nil {
		text, err = os.ReadFile(filepath.Join(group, "cpu.max")) // quota and period
	}
	fields := strings.Fields(string(text))
	if err != nil || len(fields) == 0 {
		return 0
	}
	us, err := strconv.ParseInt(fields[len(fields)-1], 10, 64)
	if err != nil {
		return 0
	}
	return us * 1000
}
