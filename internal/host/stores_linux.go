package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

func stores() map[Kind]store {
	return map[Kind]store{Sysctl: sysctlStore{root: "/proc/sys"}, Route: routeStore{}, Qdisc: qdiscStore{},
		File: fileStore{PersistFile}}
}

// sysctlStore is the store of the sysctls of the caller's network namespace.
type sysctlStore struct{ root string }

// path returns the file of a sysctl. Only sysctls below net may be changed: a plan from a file must not reach others.
func (s sysctlStore) path(name string) (string, error) {
	for _, part := range strings.Split(name, ".") {
		if part == "" || strings.ContainsFunc(part, func(r rune) bool {
			return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-')
		}) {
			return "", fmt.Errorf("%q is not a sysctl's name", name)
		}
	}
	if !strings.HasPrefix(name, "net.") {
		return "", fmt.Errorf("%s is not one of the network's sysctls", name)
	}
	return filepath.Join(s.root, strings.ReplaceAll(name, ".", "/")), nil
}

func (sysctlStore) normal(value string) string { return strings.Join(strings.Fields(value), " ") }

func (s sysctlStore) read(name string) (*string, error) {
	path, err := s.path(name)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("this kernel or network namespace has no %s: %w", name, err)
	}
	if err != nil {
		return nil, err
	}
	value := s.normal(string(text))
	return &value, nil
}

func (s sysctlStore) write(name string, value *string) error {
	path, err := s.path(name)
	if err != nil {
		return err
	}
	if value == nil {
		return fmt.Errorf("%s always has a value", name)
	}
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = file.WriteString(*value + "\n")
	return errors.Join(err, file.Close())
}

// soNetnsCookie is SO_NETNS_COOKIE (Linux 5.14): a number that is unique to a network namespace during a boot.
const soNetnsCookie = 71

// scope returns "host", or the name of this network namespace. Each scope has a journal.
func scope() string {
	// Only the initial network namespace has this file.
	if _, err := os.Stat("/proc/sys/net/core/netdev_max_backlog"); err == nil {
		return "host"
	}
	return namespaces() + netnsID()
}

// namespaces returns the prefix of the scopes of this boot's network namespaces.
func namespaces() string {
	boot := strings.ReplaceAll(bootID(), "-", "")
	return "netns-" + boot[:min(8, len(boot))] + "-"
}

func netnsID() string {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		defer unix.Close(fd)
		if cookie, err := unix.GetsockoptUint64(fd, unix.SOL_SOCKET, soNetnsCookie); err == nil {
			return fmt.Sprint(cookie)
		}
	}
	link, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		return "unknown"
	}
	return strings.Trim(link, "net:[]")
}

var bootID = sync.OnceValue(func() string {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
})

// stateDir returns /var/lib/fullpipe for the host's settings and for root, and the user's state directory in an
// ordinary user's network namespace.
func stateDir() string {
	const system = "/var/lib/fullpipe"
	if scope() == "host" || os.Geteuid() == 0 && firstUserNamespace() {
		return system
	}
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "fullpipe")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return system
	}
	return filepath.Join(home, ".local", "state", "fullpipe")
}

func firstUserNamespace() bool {
	text, err := os.ReadFile("/proc/self/uid_map")
	return err == nil && strings.Join(strings.Fields(string(text)), " ") == "0 0 4294967295"
}

// writable returns an error if this process may not write sysctls.
func writable() error {
	const path = "/proc/sys/net/ipv4/tcp_wmem"
	if err := unix.Access(path, unix.W_OK); err != nil {
		return &fs.PathError{Op: "write", Path: path, Err: err}
	}
	return nil
}
