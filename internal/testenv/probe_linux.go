package testenv

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Namespaces returns what starts a process in new namespaces: those of the CLONE_NEW... flags, and a user
// namespace in which it is root unless it is root here.
func Namespaces(flags uintptr) *syscall.SysProcAttr {
	// With Unshareflags, Go makes the mounts private: none reaches the parent's namespace.
	attr := &syscall.SysProcAttr{Cloneflags: flags &^ unix.CLONE_NEWNS, Unshareflags: flags & unix.CLONE_NEWNS,
		Pdeathsig: syscall.SIGKILL}
	if os.Geteuid() != 0 {
		attr.Cloneflags |= syscall.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Geteuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getegid(), Size: 1}}
	}
	return attr
}

// run returns the error of a shell command in new namespaces, with what the command printed.
func run(flags uintptr, script string) error {
	// Pdeathsig is about the thread that starts the process.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd := exec.Command("sh", "-c", script)
	cmd.SysProcAttr = Namespaces(flags)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w %s", script, err, strings.TrimSpace(string(out)))
	}
	return nil
}

func probeNetworkNamespace() error { return run(unix.CLONE_NEWNET, "true") }

func probeMountNamespace() error { return run(unix.CLONE_NEWNS, "mount -t tmpfs none /tmp") }

func probeVXLAN() error {
	return run(unix.CLONE_NEWNET, "ip link add v0 type vxlan id 7 remote 127.0.0.1 dstport 4789")
}

func probeTimeNamespace() error { return run(0, "unshare -T --boottime 1 true") }

func probeRoot() error {
	if os.Geteuid() != 0 {
		return fmt.Errorf("the user is %d", os.Geteuid())
	}
	text, err := os.ReadFile("/proc/self/uid_map")
	if err == nil && strings.Join(strings.Fields(string(text)), " ") != "0 0 4294967295" {
		return errors.New("root of a user namespace only")
	}
	return err
}

func probeLab() error {
	file, err := os.OpenFile("/dev/net/tun", os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(file.Close(), probeNetworkNamespace())
}

func probeICMP() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, unix.IPPROTO_ICMP)
	if err != nil {
		return fmt.Errorf("ICMP socket: %w", err)
	}
	return unix.Close(fd)
}

func probeManyFiles() error {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return err
	}
	if limit.Max < 20000 {
		return fmt.Errorf("%d open files are allowed", limit.Max)
	}
	return nil
}

// probeBPF loads a program of a kind that needs CAP_BPF and CAP_PERFMON: "r0 = 0; exit".
func probeBPF() error {
	if _, err := os.Stat("/sys/kernel/btf/vmlinux"); err != nil {
		return err
	}
	program := [...]uint64{0xb7, 0x95}
	licence := [...]byte{'G', 'P', 'L', 0}
	attr := struct { // union bpf_attr of BPF_PROG_LOAD
		kind, count                    uint32
		program, licence               uint64
		logLevel, logSize              uint32
		log                            uint64
		kernelVersion, flags           uint32
		name                           [16]byte
		interfaceIndex, expectedAttach uint32
	}{kind: unix.BPF_PROG_TYPE_KPROBE, count: uint32(len(program)), program: uint64(uintptr(unsafe.Pointer(&program))),
		licence: uint64(uintptr(unsafe.Pointer(&licence)))}
	fd, _, errno := unix.Syscall(unix.SYS_BPF, unix.BPF_PROG_LOAD, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr))
	runtime.KeepAlive(&program)
	runtime.KeepAlive(&licence)
	if errno != 0 {
		return fmt.Errorf("load a BPF program: %w", errno)
	}
	return unix.Close(int(fd))
}

func probeCgroup() error {
	root, err := cgroup2()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp(root, "fullpipe-testenv-")
	if err != nil {
		return err
	}
	return os.Remove(dir)
}

// cgroup2 returns where the cgroup2 file system is mounted.
func cgroup2() (string, error) {
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(mounts)) {
		if words := strings.Fields(line); len(words) > 2 && words[2] == "cgroup2" {
			return words[1], nil
		}
	}
	return "", errors.New("no cgroup2 file system is mounted")
}

func probeCPUQuota() error {
	if root, err := cgroup2(); err == nil {
		controllers, _ := os.ReadFile(filepath.Join(root, "cgroup.controllers"))
		if strings.Contains(" "+strings.TrimSpace(string(controllers))+" ", " cpu ") {
			return probeCgroup()
		}
	}
	dir, err := os.MkdirTemp("/sys/fs/cgroup/cpu", "fullpipe-testenv-")
	if err != nil {
		return err
	}
	_, err = os.Stat(filepath.Join(dir, "cpu.cfs_quota_us"))
	return errors.Join(err, os.Remove(dir))
}
