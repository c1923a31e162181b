package waits

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// maxPolled bounds the descriptors of one poll that are looked at.
const maxPolled = 64

// polled is a descriptor that a thread waits for, to write or to read.
type polled struct {
	descriptor int
	write      bool
}

// polls returns the descriptors of a call that waits for several.
func (d *descriptors) polls(t *task) []polled {
	switch t.call {
	case callPoll, unix.SYS_PPOLL:
		return d.pollSet(t.arguments[0], t.arguments[1])
	case callSelect, unix.SYS_PSELECT6:
		return d.selectSets(t.arguments[0], t.arguments[1], t.arguments[2])
	case callEpoll, unix.SYS_EPOLL_PWAIT, unix.SYS_EPOLL_PWAIT2:
		return d.epollSet(t.descriptor())
	}
	return nil
}

// pollSet reads an array of struct pollfd: descriptor, events.
func (d *descriptors) pollSet(at, n uint64) (all []polled) {
	const size = 8
	set := d.memory(at, int(min(n, maxPolled))*size)
	for ; len(set) >= size; set = set[size:] {
		events := binary.NativeEndian.Uint16(set[4:])
		if fd := int(int32(binary.NativeEndian.Uint32(set))); fd >= 0 && events != 0 {
			all = append(all, polled{fd, events&unix.POLLOUT != 0})
		}
	}
	return all
}

// selectSets reads the sets of select: a bit for each descriptor below n.
func (d *descriptors) selectSets(n, reads, writes uint64) (all []polled) {
	const word = 8
	n = min(n, 1024)
	for _, set := range []struct {
		at    uint64
		write bool
	}{{reads, false}, {writes, true}} {
		if set.at == 0 {
			continue
		}
		bits := d.memory(set.at, int(n+63)/64*word)
		for fd := 0; fd/8 < len(bits) && len(all) < maxPolled; fd++ {
			if binary.NativeEndian.Uint64(bits[fd/64*word:])>>(fd%64)&1 != 0 {
				all = append(all, polled{fd, set.write})
			}
		}
	}
	return all
}

// epollSet reads the descriptors of an epoll instance (proc_pid_fdinfo(5)).
func (d *descriptors) epollSet(instance int) (all []polled) {
	text, err := os.ReadFile(filepath.Join(d.dir, "fdinfo", strconv.Itoa(instance)))
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) < 4 || fields[0] != "tfd:" || len(all) == maxPolled {
			continue
		}
		fd, err := strconv.Atoi(fields[1])
		events, failed := strconv.ParseUint(fields[3], 16, 32)
		if err == nil && failed == nil {
			all = append(all, polled{fd, events&unix.EPOLLOUT != 0 && events&unix.EPOLLET == 0})
		}
	}
	return all
}

// memory reads the memory of the process; nil where that is not permitted.
func (d *descriptors) memory(at uint64, n int) []byte {
	file, err := os.Open(filepath.Join(d.dir, "mem"))
	if err != nil {
		return nil
	}
	defer file.Close()
	buffer := make([]byte, n)
	if _, err := file.ReadAt(buffer, int64(at)); err != nil {
		return nil
	}
	return buffer
}

// ofSeveral returns the place of a thread that waits for several descriptors. A program watches
// its connections at all times; where it waits for data from a pipe or a terminal as well, it has
// nothing to send before that comes. A local socket with a connection mostly wakes the program's own
// threads. Several of one sort leave it open which one.
func (d *descriptors) ofSeveral(t *task) (at Place, channel string) {
	var connections, others, locals []Place
	var channels []string
	local := ""
	for _, p := range d.polls(t) {
		one := task{state: t.state, function: t.function, call: unix.SYS_READ}
		one.arguments[0] = uint64(p.descriptor)
		place, pipe := d.open(&one)
		switch {
		case p.write && place.Kind == Peer && place.Object != "":
			return Place{Kind: Network}, ""
		case place.Kind == Peer && place.Object != terminal:
			if place.Object != "" { // not a listener
				connections = append(connections, place)
			}
		case place.Kind == Process && strings.HasPrefix(pipe, "socket:"):
			locals = append(locals, place)
			local = pipe
		case place.Kind == Process || place.Kind == Peer:
			others = append(others, place)
			channels = append(channels, pipe)
		}
	}
	switch {
	case len(others) == 1:
		return others[0], channels[0]
	case len(others) == 0 && len(connections) == 1:
		return connections[0], ""
	case len(others)+len(connections) == 0 && len(locals) == 1:
		return locals[0], local
	}
	return Place{Kind: Unknown}, ""
}
