package watch

import (
	"net/netip"
	"slices"
	"strings"
)

// Owner is the process of a connection, as far as this user may see it.
type Owner struct {
	PID       int    // 0: not known
	Parent    int    // its PID; 0: not known
	Program   string // its name in the kernel, at most 15 characters
	Script    string // the script that the program interprets; only where Match asks for processes
	Unit      string // of systemd: "nginx.service"
	Container string // the first twelve digits of its id
	// Ancestor is the nearest process that Match asks for, where that is not the owner itself: rsync's ssh has rsync.
	Ancestor *Owner
	matched  bool // Match asks for this process or for its Ancestor, by any of their names
}

// Match chooses connections; its zero value takes all but those within this host. Every
// field that is set has to fit.
type Match struct {
	PIDs      []int          // of these processes
	Ports     []uint16       // at either end
	Hosts     []netip.Prefix // far ends
	Program   string
	Unit      string
	Container string
	Name      string  // a program, a unit or a container
	MinBps    float64 // payload of both directions in a period
	// Local takes connections within this host as well: both of their ends are here.
	Local bool
}

// exe is how the files of Windows' programs end, which have the same name in any case.
const exe = ".exe"

// programNameMax is the length at which the kernel cuts a program's name (TASK_COMM_LEN less the final zero).
const programNameMax = 15

// isCalled reports whether a program or unit has the wanted name. The endings .exe and .service may be left out.
func isCalled(want, name string) bool {
	if len(name) == programNameMax && strings.HasPrefix(want, name) {
		return true
	}
	if base, ok := strings.CutSuffix(strings.ToLower(name), exe); ok {
		return base == strings.TrimSuffix(strings.ToLower(want), exe)
	}
	return want == name || name != "" && want+".service" == name
}

func isUnit(name string) bool {
	for _, kind := range []string{".service", ".scope", ".slice", ".socket"} {
		if strings.HasSuffix(name, kind) {
			return true
		}
	}
	return false
}

// withinHost reports whether both ends of a connection are on this host.
func withinHost(local, remote netip.AddrPort) bool {
	return local.Addr() == remote.Addr() || remote.Addr().IsLoopback()
}

// ends reports whether a connection's two ends match. It ignores the owner.
func (m *Match) ends(local, remote netip.AddrPort) bool {
	return (m.Local || !withinHost(local, remote)) && m.selected(local, remote)
}

// selected reports whether a connection has the ports and hosts that are asked for.
func (m *Match) selected(local, remote netip.AddrPort) bool {
	fits := func(n int, is func(i int) bool) bool {
		for i := range n {
			if is(i) {
				return true
			}
		}
		return n == 0
	}
	return fits(len(m.Ports), func(i int) bool { return m.Ports[i] == local.Port() || m.Ports[i] == remote.Port() }) &&
		fits(len(m.Hosts), func(i int) bool { return m.Hosts[i].Contains(remote.Addr()) })
}

// owned reports whether it selects by owner.
func (m *Match) owned() bool {
	return len(m.PIDs) > 0 || m.Program != "" || m.Unit != "" || m.Container != "" || m.Name != ""
}

// owner reports whether it asks for connections of an owner.
func (m *Match) owner(o Owner) bool { return o.matched || m.named(&o, o.Program) }

// named reports whether it asks for an owner whose program has these names.
func (m *Match) named(o *Owner, programs ...string) bool {
	if len(m.PIDs) > 0 && !slices.Contains(m.PIDs, o.PID) {
		return false
	}
	fits := func(want string, have ...string) bool {
		return want == "" || slices.ContainsFunc(have, func(name string) bool { return isCalled(want, name) })
	}
	return fits(m.Program, programs...) && fits(m.Unit, o.Unit) &&
		(m.Container == "" || isOf(m.Container, o.Container)) &&
		(fits(m.Name, programs...) || fits(m.Name, o.Unit) || isOf(m.Name, o.Container))
}

// idDigitsMin is the number of digits from which a container's id may be cut short, as its runtime's commands allow.
const idDigitsMin = 4

// isOf reports whether id, whole or a prefix, is a container's. Of the container the first 12 digits are known.
func isOf(id, container string) bool {
	return len(id) >= idDigitsMin && container != "" &&
		(strings.HasPrefix(container, id) || strings.HasPrefix(id, container))
}

// unitOf names the unit and the container of a cgroup's path.
func unitOf(path string) (unit, container string) {
	parts := strings.Split(path, "/")
	for i := len(parts) - 1; i >= 0; i-- {
		part := parts[i]
		if container == "" {
			container = containerOf(part)
		}
		if unit == "" && isUnit(part) {
			unit = part
		}
	}
	return unit, container
}

// containerOf finds the id in "docker-ID.scope", "cri-containerd-ID.scope", "libpod-ID" or
// a directory that is named by the id alone.
func containerOf(part string) string {
	id := strings.TrimSuffix(part, ".scope")
	id = id[strings.LastIndexByte(id, '-')+1:]
	if len(id) != 64 || strings.Trim(id, "0123456789abcdef") != "" {
		return ""
	}
	return id[:12]
}
