package host

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/fullpipe-net/fullpipe/internal/audit"
	"github.com/fullpipe-net/fullpipe/internal/catalog"
)

func snapshot() (*audit.Snapshot, error) {
	name, err := os.Hostname()
	if err != nil {
		name = ""
	}
	s := &audit.Snapshot{Schema: audit.SnapshotSchema, TakenAt: now(), Host: name, System: catalog.Linux,
		Version:   kernelVersion(),
		PageBytes: int64(os.Getpagesize()), Values: map[string]string{}, Counters: map[string]int64{},
		Namespace: scope() != "host"}
	for _, read := range []struct {
		name string
		into func(*audit.Snapshot) error
	}{
		{"sysctls", readSysctls}, {"configuration", readConfigured}, {"memory", readMemory}, {"counters", readCounters},
		{"interfaces", readInterfaces}, {"qdiscs", readQdiscs}, {"routes", readRoutes}, {"namespaces", readNamespaces},
		{"sockets", readSockets},
	} {
		if err := read.into(s); err != nil {
			s.Unread = append(s.Unread, fmt.Sprintf("%s: %v", read.name, err))
		}
	}
	return s, nil
}

// kernelVersion returns uname's release, or "".
func kernelVersion() string {
	var name unix.Utsname
	if unix.Uname(&name) != nil {
		return ""
	}
	return unix.ByteSliceToString(name.Release[:])
}

// readSysctls reads the sysctls of the catalog.
func readSysctls(s *audit.Snapshot) error {
	store := sysctlStore{"/proc/sys"}
	for _, p := range catalog.All() {
		if p.System != catalog.Linux || p.Kind != "sysctl" {
			continue
		}
		value, err := store.read(p.Name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		s.Values[p.Name] = *value
	}
	return nil
}

// readConfigured reads the files of sysctl.d(5) in the order of loading: by name, of equal names the one in /etc, then
// /run, then /usr/lib; then sysctl.conf.
func readConfigured(s *audit.Snapshot) (err error) {
	s.Configured, err = configured("/etc/sysctl.conf", "/usr/lib/sysctl.d", "/usr/local/lib/sysctl.d", "/run/sysctl.d",
		"/etc/sysctl.d")
	return err
}

// configured returns the network settings in the files of dirs and then in last. A file replaces one of the same name
// in an earlier directory.
func configured(last string, dirs ...string) (all []audit.Configured, err error) {
	byName := map[string]string{}
	for _, dir := range dirs {
		files, err := filepath.Glob(dir + "/*.conf")
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			byName[filepath.Base(file)] = file
		}
	}
	names := make([]string, 0, len(byName))
	for name := range byName {
		names = append(names, name)
	}
	slices.Sort(names)
	files := make([]string, 0, len(names)+1)
	for _, name := range names {
		files = append(files, byName[name])
	}
	for _, file := range append(files, last) {
		if info, err := os.Stat(file); err == nil && !info.Mode().IsRegular() {
			continue // a link to /dev/null disables a file
		}
		text, err := readText(file)
		if err != nil {
			return nil, err
		}
		if text == nil {
			continue
		}
		for _, line := range strings.Split(*text, "\n") {
			name, value, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "-"), "=")
			name = strings.ReplaceAll(strings.TrimSpace(name), "/", ".")
			if ok && strings.HasPrefix(name, "net.") && !strings.ContainsAny(name, "#; ") {
				all = append(all, audit.Configured{File: file, Name: name, Value: strings.TrimSpace(value)})
			}
		}
	}
	return all, nil
}

func readMemory(s *audit.Snapshot) error {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return err
	}
	s.MemoryBytes = int64(info.Totalram) * int64(info.Unit)
	s.LimitBytes = memoryLimit()
	for _, mark := range []string{"/.dockerenv", "/run/.containerenv"} {
		if _, err := os.Stat(mark); err == nil {
			s.Container = true
		}
	}
	text, err := os.ReadFile("/proc/net/sockstat")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] != "TCP:" {
			continue
		}
		for i, word := range fields[:len(fields)-1] {
			if word == "mem" { // in pages
				pages, err := strconv.ParseInt(fields[i+1], 10, 64)
				if err != nil {
					return err
				}
				s.TCPBytes = pages * s.PageBytes
			}
		}
	}
	return nil
}

// memoryLimit returns the least memory.max of this process's cgroup and its parents; 0 is none.
func memoryLimit() int64 {
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return 0
	}
	limit := int64(0)
	for line := range strings.Lines(string(text)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		var root, file string
		switch {
		case parts[0] == "0" && parts[1] == "":
			root = "/sys/fs/cgroup"
			file = "memory.max"
		case parts[1] == "memory":
			root = "/sys/fs/cgroup/memory"
			file = "memory.limit_in_bytes"
		default:
			continue
		}
		for dir := parts[2]; ; dir = filepath.Dir(dir) {
			value, err := os.ReadFile(filepath.Join(root, dir, file))
			n, bad := strconv.ParseInt(strings.TrimSpace(string(value)), 10, 64)
			if err == nil && bad == nil && n < math.MaxInt64/2 && (limit == 0 || n < limit) {
				limit = n
			}
			if dir == "/" || dir == "." {
				break
			}
		}
	}
	return limit
}

// readCounters reads the counters of TcpExt and of UDP's buffers that are not 0, and the softnet drops.
func readCounters(s *audit.Snapshot) error {
	for _, from := range []struct{ file, group, prefix string }{{"/proc/net/netstat", "TcpExt:", ""},
		{"/proc/net/snmp", "Udp:", "Udp"}} {
		text, err := os.ReadFile(from.file)
		if err != nil {
			return err
		}
		for name, n := range groupCounters(string(text), from.group) {
			if from.prefix == "" || strings.HasSuffix(name, "bufErrors") {
				s.Counters[from.prefix+name] = n
			}
		}
	}
	if s.Namespace {
		return nil // softnet's are the host's
	}
	text, err := os.ReadFile("/proc/net/softnet_stat")
	if err != nil {
		return err
	}
	scanner := bufio.NewScanner(bytes.NewReader(text))
	for scanner.Scan() {
		if fields := strings.Fields(scanner.Text()); len(fields) > 2 {
			for i, name := range []string{"softnet_dropped", "softnet_squeezed"} {
				if n, err := strconv.ParseInt(fields[i+1], 16, 64); err == nil && n > 0 {
					s.Counters[name] += n
				}
			}
		}
	}
	return scanner.Err()
}

// groupCounters returns a group's counters that are not 0. The text has pairs of lines: names, then numbers.
func groupCounters(text, group string) map[string]int64 {
	counters := map[string]int64{}
	var names []string
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] != group {
			continue
		}
		if names == nil {
			names = fields
			continue
		}
		for i := 1; i < min(len(names), len(fields)); i++ {
			if n, err := strconv.ParseInt(fields[i], 10, 64); err == nil && n > 0 {
				counters[names[i]] = n
			}
		}
	}
	return counters
}

// readRoutes reads the main table's routes with attributes, and marks the interfaces of the default routes.
func readRoutes(s *audit.Snapshot) error {
	for _, family := range []int{unix.AF_INET, unix.AF_INET6} {
		routes, err := listRoutes(family)
		if err != nil {
			return err
		}
		for _, r := range routes {
			prefix := r.prefix().String()
			if r.prefix().Bits() == 0 {
				index := int(attribute{data: r.find(unix.RTA_OIF)}.number())
				for i := range s.Interfaces {
					if s.Interfaces[i].Name == interfaceName(index) {
						s.Interfaces[i].Default = true
					}
				}
				if family == unix.AF_INET {
					prefix = "default"
				}
			}
			if attributes := r.metricTexts(); len(attributes) > 0 {
				s.Routes = append(s.Routes, audit.Route{Prefix: prefix, Attributes: attributes})
			}
		}
	}
	return nil
}

// metricTexts returns a route's metrics by name.
func (r *route) metricTexts() map[string]string {
	all := map[string]string{}
	for name, kind := range metrics {
		value, ok := r.metric(kind)
		switch {
		case ok && kind == unix.RTAX_CC_ALGO:
			all[name] = strings.TrimRight(string(value.data), "\x00")
		case ok && value.number() > 0:
			all[name] = strconv.Itoa(int(value.number()))
		}
	}
	return all
}

func u64(b []byte, index int) int64 {
	if len(b) < 8*(index+1) {
		return 0
	}
	return int64(binary.NativeEndian.Uint64(b[8*index:]))
}
