package watch

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Owner is whose a connection is, as far as this user may see.
type Owner struct {
	PID       int    // 0: not known
	Program   string // the kernel's name of it, at most 15 letters
	Unit      string // of systemd: "nginx.service"
	Container string // the first twelve digits of its id
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

// ParseTarget reads what `why` is asked about: a process, a :PORT, a HOST[:PORT], or the
// name of a unit, program or container. A HOST that is no address is resolved by lookup.
func ParseTarget(target string, lookup func(string) ([]netip.Addr, error)) (Match, error) {
	m := Match{Local: true}
	if pid, err := strconv.Atoi(target); err == nil && pid > 0 {
		m.PIDs = []int{pid}
		return m, nil
	}
	host := target
	port := ""
	if at, err := netip.ParseAddr(strings.Trim(target, "[]")); err == nil {
		m.Hosts = []netip.Prefix{netip.PrefixFrom(at.Unmap(), at.Unmap().BitLen())}
		return m, nil
	}
	if p, err := netip.ParsePrefix(target); err == nil {
		m.Hosts = []netip.Prefix{p.Masked()}
		return m, nil
	}
	if i := strings.LastIndexByte(target, ':'); i >= 0 {
		host = target[:i]
		port = target[i+1:]
	}
	if port != "" || host == "" {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			return m, fmt.Errorf("%q is not a port from 1 to 65535", port)
		}
		m.Ports = []uint16{uint16(n)}
	}
	switch {
	case host == "":
		return m, nil
	case port == "" && !strings.Contains(host, ".") || isUnit(host) || strings.HasSuffix(strings.ToLower(host), exe):
		m.Name = host
		return m, nil
	}
	if at, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		m.Hosts = []netip.Prefix{netip.PrefixFrom(at.Unmap(), at.Unmap().BitLen())}
		return m, nil
	}
	all, err := lookup(host)
	if err != nil {
		return m, err
	}
	for _, at := range all {
		m.Hosts = append(m.Hosts, netip.PrefixFrom(at.Unmap(), at.Unmap().BitLen()))
	}
	return m, nil
}

// exe is how the files of Windows' programs end, which have the same name in any case.
const exe = ".exe"

// isCalled says that a program or unit has the name that is asked for; endings may be left out.
func isCalled(want, name string) bool {
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

// ends says whether a connection's ends fit; what it belongs to is not looked at.
func (m *Match) ends(local, remote netip.AddrPort) bool {
	if !m.Local && (local.Addr() == remote.Addr() || remote.Addr().IsLoopback()) {
		return false
	}
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

// owned says whether it asks whose a connection is.
func (m *Match) owned() bool {
	return len(m.PIDs) > 0 || m.Program != "" || m.Unit != "" || m.Container != "" || m.Name != ""
}

func (m *Match) owner(o Owner) bool {
	for i, pid := range m.PIDs {
		if pid == o.PID {
			break
		}
		if i == len(m.PIDs)-1 {
			return false
		}
	}
	named := func(want string, have ...string) bool {
		return want == "" || slices.ContainsFunc(have, func(name string) bool { return isCalled(want, name) })
	}
	return named(m.Program, o.Program) && named(m.Unit, o.Unit) && (m.Container == "" || isOf(m.Container, o.Container)) &&
		(named(m.Name, o.Program, o.Unit) || isOf(m.Name, o.Container))
}

// fewestOfID are the digits from which on a container's id may be cut short, as its runtime's commands allow.
const fewestOfID = 4

// isOf says that id, whole or its beginning, is of a container, of which the first 12 digits are known.
func isOf(id, container string) bool {
	return len(id) >= fewestOfID && container != "" &&
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
