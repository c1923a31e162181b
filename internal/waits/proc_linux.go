package waits

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// task is what /proc shows of a thread.
type task struct {
	onCPU, queued time.Duration // since it began
	state         byte
	function      string // of the kernel, in which it waits
	call          int    // -1: in no call, or it may not be read
	arguments     [3]uint64
	at            portion // where it waited last
	pipe          string  // or local socket of that wait
}

// descriptor is a call's first argument, where that is a descriptor.
func (t *task) descriptor() int { return int(int32(t.arguments[0])) }

// readTask reads a thread's state. An ordinary user may read the calls of own programs only, and
// not where the kernel guards them (kernel.yama.ptrace_scope).
func readTask(dir string) (t task, err error) {
	t.call = -1
	stat, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return t, err
	}
	// The program's name, in parentheses, may contain any character.
	if at := bytes.LastIndexByte(stat, ')'); at >= 0 && at+2 < len(stat) {
		t.state = stat[at+2]
	}
	times, err := os.ReadFile(filepath.Join(dir, "schedstat"))
	if err != nil {
		return t, err
	}
	var onCPU, queued int64
	if _, err := fmt.Sscan(string(times), &onCPU, &queued); err != nil {
		return t, fmt.Errorf("%s/schedstat: %w", dir, err)
	}
	t.onCPU = time.Duration(onCPU)
	t.queued = time.Duration(queued)
	if t.state == 'R' {
		return t, nil
	}
	if name, err := os.ReadFile(filepath.Join(dir, "wchan")); err == nil {
		t.function = string(name)
	}
	if call, err := os.ReadFile(filepath.Join(dir, "syscall")); err == nil {
		t.call, t.arguments = parseCall(string(call))
	}
	return t, nil
}

// parseCall reads the number of a system call and its first arguments from /proc/PID/syscall; -1 is
// no call.
func parseCall(text string) (number int, arguments [3]uint64) {
	fields := strings.Fields(text)
	if len(fields) <= len(arguments) {
		return -1, arguments
	}
	number, err := strconv.Atoi(fields[0])
	if err != nil || number < 0 {
		return -1, arguments
	}
	for i := range arguments {
		arguments[i], err = strconv.ParseUint(fields[1+i], 0, 64)
		if err != nil {
			return -1, arguments
		}
	}
	return number, arguments
}

// calls are the system calls that wait, by kind. An entry of "" waits for what its
// descriptor is.
var calls = map[int]Kind{
	unix.SYS_READ: "", unix.SYS_PREAD64: "", unix.SYS_READV: "", unix.SYS_PREADV: "",
	unix.SYS_PREADV2: "", unix.SYS_RECVFROM: "", unix.SYS_RECVMSG: "", unix.SYS_RECVMMSG: "",
	unix.SYS_ACCEPT4: "", unix.SYS_SPLICE: "", unix.SYS_WRITE: "", unix.SYS_PWRITE64: "",
	unix.SYS_WRITEV: "", unix.SYS_PWRITEV: "", unix.SYS_PWRITEV2: "", unix.SYS_SENDTO: "",
	unix.SYS_SENDFILE: "", unix.SYS_SENDMSG: "", unix.SYS_SENDMMSG: "", unix.SYS_FTRUNCATE: "",
	unix.SYS_FALLOCATE: "", unix.SYS_COPY_FILE_RANGE: "", unix.SYS_GETDENTS64: "",
	unix.SYS_READAHEAD: "",
	unix.SYS_FSYNC:     Disk, unix.SYS_FDATASYNC: Disk, unix.SYS_SYNC_FILE_RANGE: Disk,
	unix.SYS_SYNCFS: Disk, unix.SYS_OPENAT: Disk, unix.SYS_NEWFSTATAT: Disk, unix.SYS_STATX: Disk,
	unix.SYS_UNLINKAT: Disk, unix.SYS_RENAMEAT2: Disk, unix.SYS_MKDIRAT: Disk,
	unix.SYS_FLOCK: Lock, unix.SYS_FCNTL: Lock, unix.SYS_FUTEX: Lock,
	unix.SYS_WAIT4: Process, unix.SYS_WAITID: Process,
	unix.SYS_NANOSLEEP: Sleep, unix.SYS_CLOCK_NANOSLEEP: Sleep,
}

// sends are those of them that wait for room, not for data.
var sends = map[int]bool{unix.SYS_WRITE: true, unix.SYS_WRITEV: true, unix.SYS_SENDTO: true, unix.SYS_SENDMSG: true,
	unix.SYS_SENDMMSG: true, unix.SYS_SENDFILE: true}

// writes are the calls that change a file.
var writes = map[int]bool{unix.SYS_WRITE: true, unix.SYS_PWRITE64: true, unix.SYS_WRITEV: true,
	unix.SYS_PWRITEV: true, unix.SYS_PWRITEV2: true, unix.SYS_FSYNC: true, unix.SYS_FDATASYNC: true,
	unix.SYS_SYNC_FILE_RANGE: true, unix.SYS_SYNCFS: true, unix.SYS_FTRUNCATE: true, unix.SYS_FALLOCATE: true,
	unix.SYS_UNLINKAT: true, unix.SYS_RENAMEAT2: true, unix.SYS_MKDIRAT: true}

// functions are the kernel's functions that wait, by the beginnings of their names, for threads
// whose calls may not be read. Linux 6.18, kernel/ and fs/; the names of pipes changed in 6.15.
var functions = []struct {
	begins string
	kind   Kind
}{
	{"anon_pipe_", Process}, {"pipe_", Process}, {"unix_", Process}, {"do_wait", Process},
	{"sk_stream_wait_memory", Network}, {"sk_wait_data", Peer}, {"wait_woken", Peer}, {"inet_csk_accept", Peer},
	{"locks_", Lock}, {"hrtimer_nanosleep", Sleep},
	{"folio_wait", Disk}, {"io_schedule", Disk}, {"submit_bio_wait", Disk}, {"blk_", Disk}, {"__iomap_dio", Disk},
	{"iomap_", Disk}, {"jbd2_", Disk}, {"wait_on_", Disk}, {"balance_dirty_pages", Disk}, {"xfs_", Disk},
	{"btrfs_", Disk}, {"ext4_", Disk}, {"request_wait_answer", Disk}, {"rpc_wait", Disk}, {"nfs_", Disk},
	{"try_to_free", Memory}, {"mem_cgroup", Memory}, {"shrink_", Memory}, {"do_swap_page", Memory},
	{"reclaim_throttle", Memory},
}

// kindOf returns what a thread waits for where its descriptor does not say it.
func kindOf(t *task) Kind {
	if kind := calls[t.call]; kind != "" {
		return kind
	}
	for _, f := range functions {
		if strings.HasPrefix(t.function, f.begins) {
			return f.kind
		}
	}
	return Unknown
}

// descriptors finds what the descriptors of a process are. It remembers, since the same ones are
// asked for at each sample.
type descriptors struct {
	dir    string // /proc/PID
	places map[string]Place
	known  map[call]portion // of descriptors that may be closed now
}

// maxKnown bounds the calls that are remembered.
const maxKnown = 1024

func (d *descriptors) remember(c call, p portion) {
	if len(d.known) < maxKnown {
		d.known[c] = p
	}
}

// isPoll reports whether a call waits for several descriptors.
func isPoll(call int) bool {
	return call == callPoll || call == callSelect || call == unix.SYS_PPOLL || call == unix.SYS_PSELECT6 || isEpoll(call)
}

func isEpoll(call int) bool {
	return call == callEpoll || call == unix.SYS_EPOLL_PWAIT || call == unix.SYS_EPOLL_PWAIT2
}

// place returns what a sleeping thread waits for. The second result is the name of the pipe or local
// socket.
func (d *descriptors) place(t *task) (at Place, channel string) {
	if isPoll(t.call) {
		return d.ofSeveral(t)
	}
	at, channel = d.one(t)
	at.Write = at.Kind == Disk && writes[t.call]
	return at, channel
}

// one returns what a thread waits for in a call about one thing.
func (d *descriptors) one(t *task) (at Place, channel string) {
	kind, waits := calls[t.call]
	if !waits || kind != "" && kind != Disk {
		at.Kind = kindOf(t)
		if t.call == unix.SYS_FUTEX {
			at.Object = futex
		}
		return at, ""
	}
	if kind == Disk && t.call != unix.SYS_FSYNC && t.call != unix.SYS_FDATASYNC { // the first argument is no file
		return Place{Kind: Disk}, ""
	}
	return d.open(t)
}

// terminal is the object of a program that waits for its user.
const terminal = "terminal"

// open returns what a thread waits for at its call's descriptor.
func (d *descriptors) open(t *task) (at Place, channel string) {
	link := filepath.Join(d.dir, "fd", strconv.Itoa(t.descriptor()))
	target, err := os.Readlink(link)
	if err != nil {
		return Place{Kind: kindOf(t)}, ""
	}
	switch {
	case strings.HasPrefix(target, "pipe:"):
		return Place{Kind: Process}, target
	case strings.HasPrefix(target, "socket:") && t.state == 'D': // sendfile reads
		return Place{Kind: Disk}, ""
	case strings.HasPrefix(target, "socket:"):
		return d.socket(t, target)
	case strings.HasPrefix(target, "/dev/pts/") || target == "/dev/tty":
		return Place{Kind: Peer, Object: terminal}, ""
	case !strings.HasPrefix(target, "/"): // an event of the kernel's
		return Place{Kind: Unknown}, ""
	}
	at, known := d.places[target]
	if !known {
		at = Place{Kind: Disk, Object: device(link)}
		d.places[target] = at
	}
	return at, ""
}

// socket returns what a thread waits for at a socket.
func (d *descriptors) socket(t *task, name string) (at Place, channel string) {
	if at, known := d.places[name]; known {
		return d.asSender(t, at), ""
	}
	inode := strings.Trim(name, "socket:[]")
	if isLocal(d.dir, inode) {
		return Place{Kind: Process}, name
	}
	at = Place{Kind: Peer, Object: remote(d.dir, inode)}
	d.places[name] = at
	return d.asSender(t, at), ""
}

func (*descriptors) asSender(t *task, at Place) Place {
	if sends[t.call] {
		return Place{Kind: Network}
	}
	return at
}

// device returns the name of the block device below an open file, or the file system's.
func device(file string) string {
	var stat unix.Stat_t
	if unix.Stat(file, &stat) != nil {
		return ""
	}
	number := stat.Dev
	if stat.Mode&unix.S_IFMT == unix.S_IFBLK {
		number = stat.Rdev
	}
	link, err := os.Readlink(fmt.Sprintf("/sys/dev/block/%d:%d", unix.Major(number), unix.Minor(number)))
	if err == nil {
		return "/dev/" + filepath.Base(link)
	}
	return fileSystem(unix.Major(number), unix.Minor(number))
}

// fileSystem returns the source of a mounted file system without a block device, such as NFS's.
func fileSystem(major, minor uint32) string {
	mounts, err := os.ReadFile("/proc/self/mountinfo") // proc_pid_mountinfo(5)
	if err != nil {
		return ""
	}
	number := fmt.Sprintf("%d:%d", major, minor)
	for line := range strings.Lines(string(mounts)) {
		before, after, _ := strings.Cut(line, " - ")
		kind := strings.Fields(after)
		if fields := strings.Fields(before); len(fields) > 4 && fields[2] == number && len(kind) > 1 {
			return kind[0] + " " + kind[1]
		}
	}
	return ""
}
