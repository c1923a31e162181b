package watch

import (
	"fmt"
	"net/netip"
	"path"
	"slices"
	"strconv"
	"strings"
)

// UnknownTargetError reports a name that no process here has and no host can have.
type UnknownTargetError struct{ Name string }

// Error returns the message.
func (e *UnknownTargetError) Error() string {
	return "no program, script, unit or container of that name is running"
}

// ParseTarget parses the TARGET of `why`: a PID, :PORT, HOST[:PORT], or the name of a program, a script, a unit or a
// container. A name that runs reports as running here is never resolved; runs is nil where processes cannot be listed.
// Other names that can be hosts are passed to resolve; the rest return an UnknownTargetError.
func ParseTarget(target string, runs func(name string) bool, resolve func(host string) ([]netip.Addr, error)) (Match,
	error) {
	m := Match{Local: true}
	pid, err := strconv.Atoi(target)
	if err == nil && pid > 0 {
		m.PIDs = []int{pid}
		return m, nil
	}
	if at, err := netip.ParseAddr(strings.Trim(target, "[]")); err == nil {
		m.Hosts = []netip.Prefix{single(at)}
		return m, nil
	}
	if p, err := netip.ParsePrefix(target); err == nil {
		m.Hosts = []netip.Prefix{p.Masked()}
		return m, nil
	}
	host := target
	port := ""
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
	if host == "" {
		return m, nil
	}
	if at, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		m.Hosts = []netip.Prefix{single(at)}
		return m, nil
	}
	name := path.Base(host)
	isName := port == "" && !CanBeHost(host)
	switch {
	case runs == nil && (isName || strings.HasSuffix(strings.ToLower(host), exe)), runs != nil && runs(name):
		m.Name = name
		return m, nil
	case isName || !isHostname(host):
		return m, &UnknownTargetError{name}
	}
	all, err := resolve(host)
	if err != nil {
		return m, err
	}
	for _, at := range all {
		m.Hosts = append(m.Hosts, single(at))
	}
	return m, nil
}

// single returns the prefix of one address.
func single(at netip.Addr) netip.Prefix {
	at = at.Unmap().WithZone("")
	return netip.PrefixFrom(at, at.BitLen())
}

// scriptEndings are endings of programs' and scripts' files. None of them but py is a top-level domain, and the hosts
// of Paraguay have names of three labels; pl and sh, which many hosts have, are not listed.
var scriptEndings = []string{"py", "pyz", "js", "mjs", "cjs", "rb", "php", "lua", "tcl", "jar", "war", "exe", "bin"}

// CanBeHost reports whether a name without a port may be the name of a host: labels of letters, digits and hyphens
// (RFC 1123 section 2.1), at least two of them or a dot at the end, and no ending of a file or a unit.
func CanBeHost(name string) bool {
	if strings.HasSuffix(name, ".") { // a complete name
		return isHostname(name)
	}
	labels := strings.Split(name, ".")
	if len(labels) == 2 && slices.Contains(scriptEndings, strings.ToLower(labels[1])) {
		return false
	}
	return len(labels) > 1 && isHostname(name) && !isUnit(name)
}

// isHostname reports whether a name has the form of a hostname. The last label of one is not a number, so that
// "10.0.0.300" is none.
func isHostname(name string) bool {
	const nameMax, labelMax = 253, 63 // RFC 1035 section 2.3.4
	name = strings.TrimSuffix(name, ".")
	labels := strings.Split(name, ".")
	for _, label := range labels {
		if label == "" || len(label) > labelMax || label[0] == '-' || label[len(label)-1] == '-' ||
			strings.Trim(strings.ToLower(label), "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
			return false
		}
	}
	return len(name) <= nameMax && strings.Trim(labels[len(labels)-1], "0123456789") != ""
}
