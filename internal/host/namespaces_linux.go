package host

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/fullpipe-net/fullpipe/internal/audit"
)

const maxNamespaces = 64

// readNamespaces reads the host's other network namespaces through one process of each. Only root of the host may.
func readNamespaces(s *audit.Snapshot) error {
	if os.Geteuid() != 0 || !firstUserNamespace() || s.Namespace {
		return nil
	}
	own, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		return err
	}
	links, err := filepath.Glob("/proc/[0-9]*/ns/net")
	if err != nil {
		return err
	}
	seen := map[string]bool{own: true}
	for _, link := range links {
		name, err := os.Readlink(link)
		if err != nil || seen[name] || len(s.Namespaces) >= maxNamespaces {
			continue // the process is gone
		}
		seen[name] = true
		values, err := valuesIn(link)
		pid, bad := strconv.Atoi(strings.Split(link, "/")[2])
		if err != nil || bad != nil {
			continue
		}
		program, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "comm"))
		s.Namespaces = append(s.Namespaces, audit.Namespace{PID: pid, Program: strings.TrimSpace(string(program)),
			Values: values})
	}
	return nil
}

// valuesIn reads the sysctls that bound windows in another network namespace.
func valuesIn(link string) (values map[string]string, err error) {
	onThrowawayThread(func() { values, err = enterAndRead(link) })
	return values, err
}

// onThrowawayThread runs do on a thread that ends afterwards, because do enters a namespace. The main thread cannot
// end, and /proc/self shows its namespaces: if the scheduler chooses it, it stays locked until another thread has run
// do.
func onThrowawayThread(do func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			onThrowawayThread(do)
			runtime.UnlockOSThread()
			return
		}
		do()
	}()
	<-done
}

func enterAndRead(link string) (map[string]string, error) {
	file, err := os.Open(link)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if err := unix.Setns(int(file.Fd()), unix.CLONE_NEWNET); err != nil {
		return nil, err
	}
	values := map[string]string{}
	for _, name := range []string{"net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem", "net.ipv4.tcp_moderate_rcvbuf",
		"net.ipv4.tcp_window_scaling", "net.ipv4.tcp_congestion_control"} {
		value, err := sysctlStore{"/proc/sys"}.read(name)
		if err != nil {
			return nil, err
		}
		values[name] = *value
	}
	return values, nil
}
